#pragma once
// Rows of a Parquet file, one after the other, from the columns that are wanted: nested lists, objects and maps are put
// together from their leaves' levels. Memory: a page and a dictionary for each leaf below the wanted columns, and one row.
// Knows nothing of what the columns mean. Source: S. Melnik et al., "Dremel: interactive analysis of web-scale datasets",
// 2010.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/json_value.h"
#include "data/parquet/column_reader.h"

namespace snug::parquet {

class ParquetReader {
 public:
  static constexpr int64_t kMostPageBytes = int64_t{256} << 20;
  static constexpr int64_t kMostRowBytes = int64_t{64} << 20;

  // Reads the footer. Throws Error naming the file.
  explicit ParquetReader(const std::filesystem::path& file, int64_t most_page_bytes = kMostPageBytes);

  // Names of the top-level columns.
  std::vector<std::string> columns() const;

  // The columns that rows shall have; to be called before `next`. Throws Error if one is missing.
  void select(const std::vector<std::string>& names);

  // The next row as an object of the wanted columns; false at the end. `problem` says what is wrong with this row alone
  // (text that is not UTF-8, a row too large), and is empty if nothing is. Throws Error if the file is damaged.
  bool next(JsonValue& row, std::string& problem);

  // The number of the row that `next` gave last, from 1.
  int64_t row_number() const { return row_number_; }

 private:
  bool open_group();
  JsonValue assemble(const Node& node);
  JsonValue leaf(const Node& node);
  JsonValue object(const Node& node);
  JsonValue list(const Node& node);
  void pass(const Node& node);
  void require_agreement(const Node& node, int definition, int repetition) const;
  void spend(size_t bytes);
  ColumnReader& reader_of(const Node& leaf) { return *readers_[static_cast<size_t>(leaf.first_leaf)]; }

  std::string where_;
  InputFile file_;
  int64_t most_page_bytes_;
  FileMetadata metadata_;
  std::vector<Node> schema_;
  std::vector<const Node*> wanted_;
  std::vector<std::unique_ptr<ColumnReader>> readers_;  // by leaf; null where it is not wanted
  size_t next_group_ = 0;
  int64_t rows_left_ = 0, row_number_ = 0;
  size_t row_bytes_ = 0;
  std::string problem_;
};

}  // namespace snug::parquet
