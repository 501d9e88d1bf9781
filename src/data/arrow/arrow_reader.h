#pragma once
// Rows of an Arrow file, one after the other, from the columns that are wanted: a stream of record batches, as `datasets`
// keeps them, or the file format around one. Memory: a window of each buffer below the wanted columns, their dictionaries,
// and one row. Knows nothing of what the columns mean. Source: arrow/docs/source/format/Columnar.rst.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/arrow/array.h"
#include "data/arrow/dictionary.h"
#include "data/json_row.h"
#include "data/json_value.h"

namespace snug::arrow {

class ArrowReader {
 public:
  static constexpr size_t kMostRowBytes = size_t{64} << 20;

  // Reads the schema. Throws Error naming the file.
  explicit ArrowReader(const std::filesystem::path& file);

  // Names of the top-level columns.
  std::vector<std::string> columns() const;

  // The columns that rows shall have; to be called before `next`. Throws Error if one is missing.
  void select(const std::vector<std::string>& names);

  // The next row as an object of the wanted columns; false at the end. Below a column, a field that is null is left out,
  // since every object has all fields of all of them; only `content` keeps its null, which chat templates ask for. `problem`
  // says what is wrong with this row alone (text that is not UTF-8 or not the JSON that it should be, a row too large), and
  // is empty if nothing is. Throws Error if the file is damaged, or has a value that rows cannot have (binary, a date, …).
  bool next(JsonValue& row, std::string& problem);

  // The number of the row that `next` gave last, from 1.
  int64_t row_number() const { return row_number_; }

 private:
  bool open_batch();
  void open_arrays(const Message& message);
  void open_dictionary(const Message& message);
  void want_dictionaries(const Field& field);
  JsonValue value(Array& array, int64_t i);
  JsonValue text(Array& array, int64_t i);
  JsonValue list(Array& array, int64_t i);
  JsonValue object(Array& array, int64_t i);
  JsonValue map(Array& array, int64_t i);
  bool spend(size_t bytes);

  std::string where_;
  InputFile file_;
  std::vector<Field> schema_;
  std::unique_ptr<MessageReader> messages_;     // behind the schema
  std::vector<size_t> wanted_;                  // places in the schema
  std::vector<std::optional<Array>> arrays_;    // of this batch, by place; none where it is not wanted
  std::map<int64_t, Field> dictionary_fields_;  // what the dictionaries hold that wanted columns need
  std::map<int64_t, Dictionary> dictionaries_;
  JsonRowParser json_;
  bool at_end_ = false;
  int64_t batch_rows_ = 0, batch_row_ = 0;  // of this batch, and how many of them have been given
  int64_t row_number_ = 0;
  size_t row_bytes_ = 0;
  std::string problem_;
};

}  // namespace snug::arrow
