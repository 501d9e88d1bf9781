#pragma once
// Rows of a data file, whatever its kind: JSON Lines (plain, gzip, Zstandard), a file that is one JSON array, CSV, Parquet,
// Arrow. The kind is told by the first bytes, CSV by the file's name. Rows come as trees; what their fields mean is not
// known here.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/json_value.h"

namespace snug {

struct SourceRow {
  JsonValue fields;     // an object of the wanted columns
  std::string problem;  // what is wrong with this row as it stands in the file; empty if nothing is
  std::string mend;
};

class RowSource {
 public:
  RowSource() = default;
  RowSource(const RowSource&) = delete;
  RowSource& operator=(const RowSource&) = delete;
  virtual ~RowSource() = default;

  // The columns, where the file names them before its rows (CSV, Parquet, Arrow).
  virtual std::optional<std::vector<std::string>> columns() const { return std::nullopt; }

  // The columns that rows shall have; all, unless this is called. A row may lack some of them, but Parquet and Arrow
  // refuse a column that they do not have unless it is one of `optional`.
  virtual void select(const std::vector<std::string>& columns, const std::vector<std::string>& optional) = 0;

  // The next row; false at the end. Throws Error where the file cannot be read on.
  virtual bool next(SourceRow& row) = 0;

  // Where the last row stands: "data.jsonl:17", "data.parquet: row 17".
  virtual std::string where() const = 0;
};

// Throws Error for files that cannot be opened and for kinds that are not supported (ZIP, Avro, …), with the way out.
std::unique_ptr<RowSource> open_row_source(const std::filesystem::path& file);

// Rows of JSON text in memory, which must outlive them.
std::unique_ptr<RowSource> json_row_source(std::string_view text, const std::string& name);

// The names in `data`: itself, or where there is no such file what its commas divide. Throws Error for one that is empty or
// stands twice.
std::vector<std::string> named_data(const std::string& data);

// The files that `data` means, of each of its names in their order: a file; a directory's data files in the order of their
// names; those that match the asterisk in the last part of the path; or those of a data set as `datasets` leaves it (see
// saved_dataset.h), by its directory or, in its cache, by its name. Throws Error if there is none, if they are of several
// kinds or splits, or if a numbered part
// (-00001-of-00003) is missing.
std::vector<std::filesystem::path> find_data_files(const std::filesystem::path& data);

}  // namespace snug
