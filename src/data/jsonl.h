#pragma once
// Training rows in JSON Lines: {"text": …} or {"prompt": …, "completion": …}. Reads lines and rows; knows nothing of tokens.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace snug {

enum class RowFormat : uint8_t { text, prompt_completion };

struct DataRow {
  std::string_view text;                // of a text row; not empty
  std::string_view prompt, completion;  // of a prompt/completion row; the completion is not empty
};

// Reads rows one after the other. The first decides the format, which then holds for all.
class RowParser {
 public:
  // `file` names the source in errors.
  explicit RowParser(std::string file);
  RowParser(RowParser&&) noexcept;
  ~RowParser();

  // The row in `line` (without its line end); none if the line is blank. The views hold until the next call. Other fields of
  // the object are passed over. Throws Error naming file:line and the way out.
  std::optional<DataRow> parse(std::string_view line, int64_t line_number);

  // None before the first row.
  std::optional<RowFormat> format() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The lines of a file, in bounded memory: one line (at most 64 MiB) and one chunk.
class LineReader {
 public:
  // Throws Error if the file cannot be opened.
  explicit LineReader(const std::filesystem::path& file);

  // The next line, without its line end; none at the end. The view holds until the next call. A byte-order mark is passed
  // over.
  std::optional<std::string_view> next();

  // The number of the line that `next` gave last, from 1.
  int64_t line_number() const { return line_number_; }

 private:
  void fill();

  InputFile file_;
  std::string path_;
  std::vector<char> buffer_;
  size_t begin_ = 0, scanned_ = 0, end_ = 0;  // unread bytes, and how many of them hold no line end
  bool at_end_ = false;
  int64_t line_number_ = 0;
};

}  // namespace snug
