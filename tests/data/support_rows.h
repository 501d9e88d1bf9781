#pragma once
// What tests of row sources share: trees as text, and all rows of a source.

#include <filesystem>
#include <string>
#include <vector>

#include "data/row_source.h"
#include "tokenizer/support.h"

namespace snug::test {

// A tree as compact JSON; floating point with all digits that matter.
std::string json_of(const JsonValue& value);

// What a source gives, one line a row: its JSON, or "bad: " and the problem.
std::vector<std::string> rows_of(RowSource& source);
std::vector<std::string> rows_of(const std::string& json_text);

// The same of a reader of columns, Parquet's or Arrow's, of these or of all.
template <class Reader>
std::vector<std::string> rows_of_columns(Reader& reader, const std::vector<std::string>& columns) {
  reader.select(columns.empty() ? reader.columns() : columns);
  JsonValue row;
  std::string problem;
  std::vector<std::string> rows;
  while (reader.next(row, problem)) rows.push_back(problem.empty() ? json_of(row) : "bad: " + problem);
  return rows;
}

// Tells of the first row that differs.
void expect_same_rows(const std::vector<std::string>& rows, const std::vector<std::string>& wanted,
                      const std::filesystem::path& where);

}  // namespace snug::test
