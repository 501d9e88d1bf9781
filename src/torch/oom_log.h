#pragma once
// Finds out-of-memory messages in a log of any length, read by pieces: the first is the cause, the others are counted. Keeps
// the text around the first, for who looks for its traceback. Knows nothing of causes.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "torch/log_lines.h"
#include "torch/oom_message.h"
#include "torch/oom_wordings.h"

namespace snug {

struct OomLog {
  std::vector<OomMessage> messages;  // in the order of the log; at most 256 are kept
  int64_t count = 0;                 // of all messages
  std::optional<size_t> first;       // of `messages`: the first of the surest, taken for the cause
  std::string around;                // clean lines around it, at most 512 KiB before and 96 KiB behind
  size_t at = 0;                     // byte of `around` where it begins
  std::string head;                  // the first 1 MiB of clean lines
  int64_t lines = 0;

  const OomMessage& cause() const { return messages[*first]; }
  std::vector<int> ranks() const;  // those that prefixes of the messages name, sorted
};

class OomLogReader {
 public:
  OomLogReader() : lines_([this](const LogLine& line) { add(line); }) {}
  OomLogReader(const OomLogReader&) = delete;
  OomLogReader& operator=(const OomLogReader&) = delete;

  void feed(std::string_view bytes) { lines_.feed(bytes); }
  OomLog finish();

 private:
  struct Line {
    size_t begin;  // byte of text_
    int64_t number;
    std::optional<int> rank;
    bool by_vllm = false;
  };

  void add(const LogLine& line);
  void scan(bool to_the_end);
  void scan_line(size_t index);
  void scan_cut_end();
  bool tells_more(const OomMessage& message) const;
  void keep(OomMessage message, Surety surety, size_t at);
  void forget();

  LogLines lines_;
  OomLog log_;
  std::string text_;  // lines not forgotten, each with its end
  std::vector<Line> starts_;
  size_t next_ = 0;               // of starts_: the first line that was not looked at
  size_t told_ = 0;               // byte of text_ behind the last message
  std::optional<Surety> surety_;  // of the cause
};

// All of `text`.
OomLog read_oom_log(std::string_view text);

}  // namespace snug
