#pragma once
// The rows of all files of a dataset, one after the other, as what they say. For this room alone.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/row_source.h"

namespace snug {

class ExampleReader {
 public:
  // Throws Error where there are no files. `request` must outlive it.
  explicit ExampleReader(const DatasetRequest& request);

  // To the next row; false if there is none. The first one settles the format. Throws Error.
  bool advance();

  // Of the row: its place, and what it says. take throws Error, without a place, for a bad row.
  std::string where() const { return source_->where(); }
  Example take();

  // None before the first row.
  std::optional<RowFormat> format() const { return interpreter_.format(); }

 private:
  void open(const std::filesystem::path& file);
  void settle(const std::vector<std::string>& columns, const std::string& where);

  std::vector<std::filesystem::path> files_;
  size_t next_file_ = 0;
  std::unique_ptr<RowSource> source_;
  RowInterpreter interpreter_;
  SourceRow row_;
};

}  // namespace snug
