#include "data/jsonl.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/quote.h"

namespace snug {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kChunk = size_t{256} << 10;
constexpr size_t kMaxLine = size_t{64} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

struct RowParser::State {
  std::string file;
  std::optional<RowFormat> format;
  dom::parser parser;
  std::string line;  // with room for simdjson to read beyond the end
  std::string where;

  [[noreturn]] void refuse(const std::string& what, const std::string& mend) const { throw Error(what, where, mend); }

  // The string at `key`; none if the row has no such key.
  std::optional<std::string_view> find(dom::object row, std::string_view key) const {
    dom::element value;
    if (row.at_key(key).get(value) != simdjson::SUCCESS) return std::nullopt;
    std::string_view text;
    if (value.get(text) == simdjson::SUCCESS) return text;
    const std::string name = quote(key);
    if (value.is_array())
      refuse(name + " is a list; chat messages are not supported", "write the conversation out as one string");
    refuse(name + " is not a string", "give a string");
  }

  RowFormat detect(dom::object row) const {
    const bool text = row.at_key("text").error() == simdjson::SUCCESS;
    const bool pair =
        row.at_key("prompt").error() == simdjson::SUCCESS || row.at_key("completion").error() == simdjson::SUCCESS;
    if (text && pair) refuse("the row has \"text\" beside \"prompt\" or \"completion\"", "keep one form");
    if (!text && !pair) {
      const bool chat = row.at_key("messages").error() == simdjson::SUCCESS;
      refuse(
          chat ? "\"messages\" (chat) is not supported" : "the row has neither \"text\" nor \"prompt\" and \"completion\"",
          "write rows as {\"text\": …} or {\"prompt\": …, \"completion\": …}");
    }
    return text ? RowFormat::text : RowFormat::prompt_completion;
  }

  std::string_view require(dom::object row, std::string_view key, bool may_be_empty) const {
    const auto text = find(row, key);
    const std::string name = quote(key);
    if (!text) refuse(name + " is missing", "every row needs the keys of the first one");
    if (text->empty() && !may_be_empty) refuse(name + " is empty", "fill it or remove the row");
    return *text;
  }
};

RowParser::RowParser(std::string file) : state_(std::make_unique<State>()) { state_->file = std::move(file); }
RowParser::RowParser(RowParser&&) noexcept = default;
RowParser::~RowParser() = default;

std::optional<RowFormat> RowParser::format() const { return state_->format; }

std::optional<DataRow> RowParser::parse(std::string_view line, int64_t line_number) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return std::nullopt;
  State& state = *state_;
  state.where = state.file + ":" + std::to_string(line_number);
  if (line.size() > kMaxLine) state.refuse("the line is longer than 64 MiB", "split the row");
  state.line.reserve(line.size() + simdjson::SIMDJSON_PADDING);
  state.line.assign(line);
  dom::element element;
  const auto error = state.parser.parse(state.line.data(), state.line.size(), false).get(element);
  if (error == simdjson::UTF8_ERROR) state.refuse("the line is not UTF-8", "save the file as UTF-8");
  if (error != simdjson::SUCCESS) {
    state.refuse(std::string("not valid JSON: ") + simdjson::error_message(error), "write one JSON object on each line");
  }
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS)
    state.refuse("the line is not a JSON object", "write one JSON object on each line");
  if (!state.format) state.format = state.detect(object);
  if (*state.format == RowFormat::text) return DataRow{state.require(object, "text", false), {}, {}};
  const std::string_view completion = state.require(object, "completion", false);
  return DataRow{{}, state.require(object, "prompt", true), completion};
}

LineReader::LineReader(const std::filesystem::path& file)
    : file_(file, "give a JSON Lines file that can be read"), path_(file.string()), buffer_(2 * kChunk) {
  fill();
  if (std::string_view(buffer_.data(), end_).starts_with(kByteOrderMark)) begin_ = kByteOrderMark.size();
}

// Reads one more chunk behind the unread bytes, which move to the front; the buffer grows only with the longest line.
void LineReader::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ > kMaxLine) {
    throw Error("the line is longer than 64 MiB", path_ + ":" + std::to_string(line_number_ + 1), "split the row");
  }
  if (buffer_.size() - end_ < kChunk) buffer_.resize(std::max(buffer_.size() * 2, end_ + kChunk));
  // A pipe may give little at a time; the first bytes must suffice for the byte-order mark.
  const size_t wanted = end_ + kChunk;
  while (!at_end_ && end_ < wanted) {
    const size_t got = file_.read_some(std::as_writable_bytes(std::span(buffer_)).subspan(end_, wanted - end_));
    at_end_ = got == 0;
    end_ += got;
  }
}

std::optional<std::string_view> LineReader::next() {
  for (;;) {
    const std::string_view unread(buffer_.data() + begin_, end_ - begin_);
    const size_t newline = unread.find('\n', scanned_);
    if (newline != std::string_view::npos || (at_end_ && !unread.empty())) {
      const std::string_view line = unread.substr(0, newline);
      begin_ += std::min(line.size() + 1, unread.size());
      scanned_ = 0;
      ++line_number_;
      return line;
    }
    if (at_end_) return std::nullopt;
    scanned_ = unread.size();
    fill();
  }
}

}  // namespace snug
