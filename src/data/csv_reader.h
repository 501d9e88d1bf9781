#pragma once
// Records of a CSV or TSV file in bounded memory, as RFC 4180 and Python's csv module have them: the first one names the
// columns; a field in quotation marks may hold separators, line ends and doubled marks; a line ends in LF, CR or both; empty
// lines are passed over, and so is a byte-order mark.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/byte_stream.h"

namespace snug {

class CsvReader {
 public:
  // Reads the first record. `file` names the source in errors. Throws Error where it names no columns, or one twice.
  CsvReader(std::unique_ptr<ByteStream> stream, std::string file, char separator);

  const std::vector<std::string>& columns() const { return columns_; }

  // The next record's fields, or what is wrong with it (its fields are then of no use); false at the end.
  bool next(std::vector<std::string>& fields, std::string& problem);

  // The line on which the last record began, from 1.
  int64_t line_number() const { return record_line_; }

 private:
  std::optional<char> take();  // none at the end
  std::optional<char> look();  // the same without taking it
  bool record(std::vector<std::string>& fields);
  bool quoted(std::string& field);  // behind the first mark, to the one that ends it; false if there is none
  void keep(std::string& field, char c);

  std::unique_ptr<ByteStream> stream_;
  std::string file_;
  char separator_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0, record_bytes_ = 0;
  int64_t line_ = 1, record_line_ = 0;
  std::string problem_;
  std::vector<std::string> columns_;
};

}  // namespace snug
