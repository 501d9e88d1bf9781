#pragma once
// One column of one row group, entry by entry: the repetition and definition level and, where it is defined, the value.
// Holds one page and the dictionary. Knows nothing of other columns.

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/parquet/schema.h"
#include "data/parquet/values.h"

namespace snug::parquet {

class ColumnReader {
 public:
  // `file` must outlive it; `name` is the column's in errors. A page may unpack to at most `most_page_bytes`. Throws Error.
  ColumnReader(const InputFile& file, std::string name, const ColumnChunk& chunk, const Node& leaf, int64_t most_page_bytes);

  // True behind the last entry.
  bool at_end() const { return at_end_; }

  // Levels of the entry ahead; at the end 0.
  int repetition() const { return repetition_; }
  int definition() const { return definition_; }

  // The value of the entry ahead, once, where definition() is the leaf's. Holds until `advance`.
  Scalar value();

  // Goes on to the next entry. Throws Error, also at the end.
  void advance();

 private:
  struct Levels {
    void open(Encoding encoding, int highest, Bytes bytes);
    int next();
    int most = 0;
    bool legacy = false;
    RunDecoder runs;
    BigEndianBits bits;
  };

  void load_page();
  PageHeader next_header();
  void read_body(const PageHeader& header);
  void open_dictionary(const PageHeader& header);
  void open_data(const PageHeader& header);
  void open_data_v2(const PageHeader& header);
  void open_values(const PageHeader& header, Bytes values);
  Bytes unpack(const PageHeader& header, Bytes compressed, int64_t bytes);
  void read_entry();

  const InputFile& file_;
  std::string name_;
  ColumnChunk chunk_;
  Physical type_;
  int64_t type_length_, most_page_bytes_;
  int64_t offset_, end_;                 // of the next page, of all pages
  int64_t values_left_, page_left_ = 0;  // entries of the chunk and of the page that have not been read
  std::vector<std::byte> header_, compressed_, page_, dictionary_page_;
  Dictionary dictionary_;
  bool has_dictionary_ = false;
  Levels repetitions_, definitions_;
  std::unique_ptr<ValueDecoder> decoder_;
  int repetition_ = 0, definition_ = 0;
  bool at_end_ = false;
};

}  // namespace snug::parquet
