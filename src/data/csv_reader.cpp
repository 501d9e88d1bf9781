#include "data/csv_reader.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "data/line_reader.h"

namespace snug {

namespace {

constexpr size_t kBuffer = size_t{1} << 16, kMostFields = size_t{1} << 16;
constexpr const char* kNames = "the first line names the columns, such as prompt,completion";

}  // namespace

CsvReader::CsvReader(std::unique_ptr<ByteStream> stream, std::string file, char separator)
    : stream_(std::move(stream)), file_(std::move(file)), separator_(separator), buffer_(kBuffer) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (stream_->peek(kMark.size()) == kMark)
    for (size_t i = 0; i < kMark.size(); ++i) take();
  if (!next(columns_, problem_)) throw Error("holds no line", file_, kNames);
  if (!problem_.empty()) throw Error("its first line " + problem_, file_, kNames);
  for (auto name = columns_.begin(); name != columns_.end(); ++name) {
    if (name->empty()) throw Error("a column has no name", file_, kNames);
    if (std::find(columns_.begin(), name, *name) != name) throw Error("names " + quote(*name) + " twice", file_, kNames);
  }
}

std::optional<char> CsvReader::look() {
  if (begin_ == end_) {
    begin_ = 0;
    end_ = stream_->read(std::as_writable_bytes(std::span(buffer_)));
    if (end_ == 0) return std::nullopt;
  }
  return buffer_[begin_];
}

std::optional<char> CsvReader::take() {
  const std::optional<char> c = look();
  if (!c) return c;
  ++begin_;
  const bool whole_end = *c == '\n' || (*c == '\r' && look() != '\n');  // CR LF counts once
  if (whole_end) ++line_;
  return c;
}

void CsvReader::keep(std::string& field, char c) {
  if (++record_bytes_ <= kMostRowBytes) field += c;
}

bool CsvReader::quoted(std::string& field) {
  while (const std::optional<char> c = take()) {
    if (*c != '"') {
      keep(field, *c);
    } else if (look() == '"') {
      keep(field, *take());
    } else {
      return true;
    }
  }
  return false;
}

// Fields up to the end of a line that is not empty; false at the end of the file.
bool CsvReader::record(std::vector<std::string>& fields) {
  while (look() == '\n' || look() == '\r') take();
  if (!look()) return false;
  record_line_ = line_;
  record_bytes_ = 0;
  fields.assign(1, {});
  bool at_start = true;
  while (const std::optional<char> c = take()) {
    if (*c == '"' && at_start) {
      if (!quoted(fields.back())) problem_ = "has a quotation mark that nothing closes";
      at_start = false;
    } else if (*c == separator_) {
      if (fields.size() == kMostFields) problem_ = "has more than 65536 fields";
      if (fields.size() < kMostFields) fields.emplace_back();
      at_start = true;
    } else if (*c == '\n' || *c == '\r') {
      if (*c == '\r' && look() == '\n') take();
      break;
    } else {
      keep(fields.back(), *c);
      at_start = false;
    }
  }
  return true;
}

bool CsvReader::next(std::vector<std::string>& fields, std::string& problem) {
  problem_.clear();
  if (!record(fields)) return false;
  if (problem_.empty() && record_bytes_ > kMostRowBytes) problem_ = "is longer than 64 MiB";
  if (problem_.empty() && !std::ranges::all_of(fields, is_utf8)) problem_ = "is not UTF-8";
  if (problem_.empty() && !columns_.empty() && &fields != &columns_ && fields.size() != columns_.size())
    problem_ =
        "has " + std::to_string(fields.size()) + " fields, and there are " + std::to_string(columns_.size()) + " columns";
  problem = problem_;
  return true;
}

}  // namespace snug
