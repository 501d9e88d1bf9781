#include "data/row_source.h"

#include <algorithm>

#include "base/error.h"
#include "data/arrow/arrow_reader.h"
#include "data/byte_stream.h"
#include "data/csv_reader.h"
#include "data/json_row.h"
#include "data/line_reader.h"
#include "data/parquet/parquet_reader.h"

namespace snug {
namespace {

constexpr const char* kOtherKinds =
    "snug reads .jsonl, .json (one array), .csv, .parquet and .arrow; convert it, for example with pandas";

class JsonSource final : public RowSource {
 public:
  JsonSource(std::unique_ptr<PieceReader> pieces, std::string file) : pieces_(std::move(pieces)), file_(std::move(file)) {}

  void select(const std::vector<std::string>& columns, const std::vector<std::string>& optional) override {
    wanted_ = columns;
    wanted_.insert(wanted_.end(), optional.begin(), optional.end());
  }

  bool next(SourceRow& row) override {
    std::optional<std::string_view> piece;
    do {
      piece = pieces_->next();
      if (!piece) return false;
    } while (!pieces_->too_long() && piece->find_first_not_of(" \t\r") == std::string_view::npos);
    row.problem.clear();
    row.mend.clear();
    if (pieces_->too_long()) {
      row.problem = "the line is longer than 64 MiB";
      row.mend = "split the row";
      return true;
    }
    try {
      row.fields = parser_.parse(*piece, wanted_);
    } catch (const Error& error) {
      row.problem = error.problem();
      row.mend = error.mend();
      bad_ = true;
      return true;
    }
    bad_ = false;
    return true;
  }

  // Where the text itself is bad, the place of its first byte helps to find it in an editor or with tail -c.
  std::string where() const override {
    std::string place = file_ + ":" + std::to_string(pieces_->line_number());
    if (bad_) place += " (from byte " + std::to_string(pieces_->byte_offset()) + ")";
    return place;
  }

 private:
  std::unique_ptr<PieceReader> pieces_;
  std::string file_;
  std::vector<std::string> wanted_;
  JsonRowParser parser_;
  bool bad_ = false;
};

// Every value is a text; one that is empty is nothing.
class CsvSource final : public RowSource {
 public:
  CsvSource(std::unique_ptr<ByteStream> stream, const std::string& file, char separator)
      : reader_(std::move(stream), file, separator), file_(file) {
    select(reader_.columns(), {});
  }

  std::optional<std::vector<std::string>> columns() const override { return reader_.columns(); }

  void select(const std::vector<std::string>& columns, const std::vector<std::string>& optional) override {
    const auto holds = [](const std::vector<std::string>& names, const std::string& name) {
      return std::ranges::find(names, name) != names.end();
    };
    wanted_.clear();
    for (size_t i = 0; i < reader_.columns().size(); ++i)
      if (const std::string& name = reader_.columns()[i]; holds(columns, name) || holds(optional, name))
        wanted_.push_back(i);
  }

  bool next(SourceRow& row) override {
    row.mend.clear();
    if (!reader_.next(fields_, row.problem)) return false;
    if (!row.problem.empty()) {
      row.problem = "the line " + row.problem;
      row.mend = "put fields that hold commas, quotation marks or line ends in quotation marks";
      return true;
    }
    JsonValue::Object members;
    for (const size_t index : wanted_) members.push_back({reader_.columns()[index], JsonValue(std::move(fields_[index]))});
    row.fields = JsonValue(std::move(members));
    return true;
  }

  std::string where() const override { return file_ + ":" + std::to_string(reader_.line_number()); }

 private:
  CsvReader reader_;
  std::string file_;
  std::vector<size_t> wanted_;
  std::vector<std::string> fields_;
};

// In Parquet every object of a column has all fields of all of them: one that is null was not there. Only `content` keeps
// its null, which chat templates ask for.
void drop_nulls(JsonValue& value) {
  if (JsonValue::List* items = value.list())
    for (JsonValue& item : *items) drop_nulls(item);
  JsonValue::Object* members = value.object();
  if (members == nullptr) return;
  std::erase_if(*members, [](const JsonMember& member) { return member.value.is_null() && member.name != "content"; });
  for (JsonMember& member : *members) drop_nulls(member.value);
}

// Rows of a file that names its columns before them, from the reader of its kind.
template <typename Reader>
class ColumnSource : public RowSource {
 public:
  explicit ColumnSource(const std::filesystem::path& file) : reader_(file), file_(file.string()) {
    reader_.select(reader_.columns());
  }

  std::optional<std::vector<std::string>> columns() const override { return reader_.columns(); }

  void select(const std::vector<std::string>& columns, const std::vector<std::string>& optional) override {
    std::vector<std::string> wanted = columns;
    const std::vector<std::string> there = reader_.columns();
    for (const std::string& name : optional)
      if (std::ranges::find(there, name) != there.end()) wanted.push_back(name);
    reader_.select(wanted);
  }

  bool next(SourceRow& row) override {
    row.mend.clear();
    if (!reader_.next(row.fields, row.problem)) return false;
    if (!row.problem.empty()) row.mend = "repair the row or remove it";
    return true;
  }

  std::string where() const override { return file_ + ": row " + std::to_string(reader_.row_number()); }

 private:
  Reader reader_;
  std::string file_;
};

using ArrowSource = ColumnSource<arrow::ArrowReader>;

class ParquetSource final : public ColumnSource<parquet::ParquetReader> {
 public:
  using ColumnSource::ColumnSource;

  bool next(SourceRow& row) override {
    if (!ColumnSource::next(row)) return false;
    for (JsonMember& member : *row.fields.object()) drop_nulls(member.value);
    return true;
  }
};

// A stream of Arrow begins with four bytes that no text begins with; before Arrow 0.15 with nothing that tells it.
bool is_arrow(std::string_view front, const std::filesystem::path& file) {
  return front.starts_with("\xFF\xFF\xFF\xFF") || front.starts_with("ARROW1") || file.extension() == ".arrow";
}

void refuse_other_kinds(std::string_view front, const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& what) { throw Error(what + " is not supported", file.string(), kOtherKinds); };
  if (front.starts_with("FEA1")) refuse("Feather, version 1,");
  if (front.starts_with("PK\x03\x04")) refuse("ZIP");
  if (front.starts_with("Obj\x01")) refuse("Avro");
  if (front.starts_with("ORC")) refuse("ORC");
}

// By its name alone, less what packs it (data.csv.gz): such text has no beginning of its own. 0: none.
char separator_of(std::filesystem::path file) {
  if (file.extension() == ".gz" || file.extension() == ".zst") file.replace_extension();
  return file.extension() == ".csv" ? ',' : file.extension() == ".tsv" ? '\t' : '\0';
}

std::unique_ptr<RowSource> open_json(std::unique_ptr<ByteStream> stream, const std::string& name) {
  constexpr size_t kLook = 4096;
  const std::string_view front = stream->peek(kLook);
  const size_t first = front.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  const bool array = first != std::string_view::npos && front[first] == '[';
  if (array) return std::make_unique<JsonSource>(std::make_unique<ArrayReader>(std::move(stream), name), name);
  return std::make_unique<JsonSource>(std::make_unique<LineReader>(std::move(stream), name), name);
}

}  // namespace

std::unique_ptr<RowSource> open_row_source(const std::filesystem::path& file) {
  std::unique_ptr<ByteStream> stream = open_byte_stream(file);
  const std::string_view front = stream->peek(8);
  if (front.starts_with("PAR1") || front.starts_with("PARE")) return std::make_unique<ParquetSource>(file);
  refuse_other_kinds(front, file);
  if (is_arrow(front, file)) return std::make_unique<ArrowSource>(file);
  if (const char separator = separator_of(file); separator != '\0')
    return std::make_unique<CsvSource>(std::move(stream), file.string(), separator);
  return open_json(std::move(stream), file.string());
}

std::unique_ptr<RowSource> json_row_source(std::string_view text, const std::string& name) {
  return open_json(stream_of(text), name);
}

}  // namespace snug
