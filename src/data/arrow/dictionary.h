#pragma once
// The strings of a dictionary-encoded column, held in memory: values name them in any order.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/arrow/array.h"

namespace snug::arrow {

class Dictionary {
 public:
  static constexpr size_t kMostBytes = size_t{256} << 20;  // all strings, and what each costs beside its text

  // Takes the values of the array, behind those that are there. Throws Error if there are too many.
  void append(Array values);

  // None is null. Throws damaged() for an index that no value has.
  const std::optional<std::string>& at(int64_t index) const;

 private:
  std::vector<std::optional<std::string>> values_;
  size_t bytes_ = 0;
};

}  // namespace snug::arrow
