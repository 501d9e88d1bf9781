#pragma once
// Many rows encoded at once, on several threads; what comes out does not depend on how many. Memory is bounded by the
// batch, which keeps its space for the next one.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/example_encoder.h"

namespace snug {

class RowBatch {
 public:
  struct Item {
    std::string where;             // the row's place, for errors
    std::optional<Error> problem;  // what is wrong with it
    Example example;
    EncodedRow encoded;
  };

  // An empty item at the end.
  Item& add(std::string where);
  // True at 256 rows or about 4 MiB.
  bool is_full();
  std::span<Item> items() { return std::span(items_).first(used_); }
  void clear();

 private:
  std::vector<Item> items_;
  size_t used_ = 0;
  size_t counted_ = 0, bytes_ = 0;  // rows whose bytes have been counted, and those
};

class BatchEncoder {
 public:
  // The arguments must outlive it. Uses request.threads.
  BatchEncoder(const DatasetRequest& request, const Tokenizer& tokenizer, const ChatRenderer& renderer);

  // Encodes the items that have no problem; those that turn out to have one get it.
  void encode(RowBatch& batch);

 private:
  std::vector<ExampleEncoder> encoders_;  // by thread
};

}  // namespace snug
