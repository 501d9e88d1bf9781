#include "train/metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "base/error.h"

namespace snug {

namespace {

using Line = std::array<char, 512>;

// JSON has no NaN.
struct Number {
  double value;
};

}  // namespace

}  // namespace snug

template <>
struct fmt::formatter<snug::Number> : fmt::formatter<double> {
  template <class Context>
  auto format(const snug::Number& number, Context& context) const {
    return std::isfinite(number.value) ? fmt::format_to(context.out(), "{:.9g}", number.value)
                                       : fmt::format_to(context.out(), "null");
  }
};

namespace snug {

namespace {

// True for a line, without its end, of a step up to `last_step`: not for a summary. The step is its first field.
bool belongs(std::string_view line, int64_t last_step) {
  constexpr std::string_view kStep = "\"step\": ";
  const size_t at = line.find(kStep);
  if (at == std::string_view::npos) return false;
  line.remove_prefix(at + kStep.size());
  int64_t step = 0;
  return std::from_chars(line.begin(), line.end(), step).ec == std::errc() && step <= last_step;
}

// A metrics file may be long and the arena is already there: it is read through a buffer, which holds any line of ours. Each
// line without its end; what comes after one that was cut short, or is none of ours, is left out.
void each_line(const std::filesystem::path& path, const std::function<void(std::string_view)>& take) {
  const UniqueFd fd = open_to_read(path);
  std::array<char, 16384> buffer;
  const int64_t bytes = file_bytes(fd.get(), path);
  for (int64_t offset = 0; offset < bytes;) {
    const auto part = std::span(buffer).first(static_cast<size_t>(std::min<int64_t>(bytes - offset, buffer.size())));
    read_at(fd.get(), offset, std::as_writable_bytes(part), path);
    const std::string_view text(part.data(), part.size());
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1)
      take(text.substr(begin, end - begin));
    if (begin == 0) return;
    offset += static_cast<int64_t>(begin);
  }
}

// What is written piece by piece goes to the file in large ones.
class LineWriter {
 public:
  explicit LineWriter(const std::filesystem::path& path) : path_(path), fd_(open_to_write(path)) {}

  void write(std::string_view line) {
    if (used_ + line.size() + 1 > buffer_.size()) flush();
    std::ranges::copy(line, buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ += line.size();
    buffer_[used_++] = '\n';
  }

  void finish() {
    flush();
    sync_file(fd_.get(), path_);
  }

 private:
  void flush() {
    write_all(fd_.get(), std::as_bytes(std::span(buffer_).first(used_)), path_);
    used_ = 0;
  }

  const std::filesystem::path& path_;
  UniqueFd fd_;
  size_t used_ = 0;
  std::array<char, 16384> buffer_;  // no shorter than what lines are read through
};

void keep_lines_up_to(const std::filesystem::path& path, int64_t last_step) {
  const std::filesystem::path kept = temporary_name(path);
  try {
    LineWriter writer(kept);
    each_line(path, [&](std::string_view line) {
      if (belongs(line, last_step)) writer.write(line);
    });
    writer.finish();
    rename_path(kept, path);
  } catch (const Error&) {
    std::error_code ignored;
    std::filesystem::remove(kept, ignored);
    throw;
  }
  sync_path(parent_of(path));
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path, int64_t last_step) : path_(path) {
  if (last_step > 0 && is_there(path)) {
    keep_lines_up_to(path, last_step);
  } else {
    write_file_atomically(path, "");
  }
  fd_ = open_to_append(path);
}

void each_evaluation(const std::filesystem::path& path, const std::function<void(const EvaluationMetrics&)>& take) {
  each_line(path, [&](std::string_view line) {
    const auto number = [&](std::string_view key, auto value) {
      const size_t at = line.find(key);
      if (at != std::string_view::npos) std::from_chars(line.begin() + at + key.size(), line.end(), value);
      return value;
    };
    if (line.find("\"eval_loss\": ") == std::string_view::npos) return;
    take({.step = number("\"step\": ", int64_t{0}),
          .loss = number("\"eval_loss\": ", std::numeric_limits<double>::quiet_NaN()),
          .token_accuracy = number("\"eval_token_accuracy\": ", 0.0),
          .exact = number("\"eval_exact\": ", 0.0),
          .documents = number("\"eval_documents\": ", int64_t{0})});
  });
}

void MetricsFile::line(const char* text, size_t length) {
  write_all(fd_.get(), std::as_bytes(std::span(text, length)), path_);
}

void MetricsFile::write(const StepMetrics& m) {
  Line text;
  auto end = fmt::format_to_n(text.data(), text.size(),
                              "{{\"step\": {}, \"loss\": {}, \"grad_norm\": {}, \"learning_rate\": {}, "
                              "\"tokens_per_second\": {}, \"memory_bytes\": {}",
                              m.step, Number{m.loss}, Number{m.gradient_norm}, Number{m.learning_rate},
                              Number{m.tokens_per_second}, m.memory_bytes);
  const size_t length = std::min(end.size, text.size()), room = text.size() - length;
  end = m.loss_scale ? fmt::format_to_n(text.data() + length, room, ", \"loss_scale\": {}, \"skipped\": {}}}\n",
                                        Number{*m.loss_scale}, m.skipped)
                     : fmt::format_to_n(text.data() + length, room, "}}\n");
  line(text.data(), std::min(length + end.size, text.size()));
}

void MetricsFile::write(const EvaluationMetrics& m) {
  Line text;
  const auto end = fmt::format_to_n(text.data(), text.size(),
                                    "{{\"step\": {}, \"eval_loss\": {}, \"eval_token_accuracy\": {}, \"eval_exact\": {}, "
                                    "\"eval_documents\": {}}}\n",
                                    m.step, Number{m.loss}, Number{m.token_accuracy}, Number{m.exact}, m.documents);
  line(text.data(), std::min(end.size, text.size()));
}

namespace {

std::string of_ranks(const RunSummary& s) {
  if (s.rank_peaks.empty()) return "";
  return fmt::format(R"(, "rank_peak_bytes": [{}], "rank_sent_bytes": [{}], "waited_for_ranks_seconds": {})",
                     fmt::join(s.rank_peaks, ", "), fmt::join(s.rank_sent, ", "), Number{s.waited_for_ranks});
}

}  // namespace

void MetricsFile::write(const RunSummary& s) {
  const std::string text = fmt::format(
      "{{\"summary\": {{\"planned_peak_bytes\": {}, \"measured_peak_bytes\": {}, \"steps\": {}, \"train_loss\": {}, "
      "\"tokens_per_second\": {}, \"fetched_bytes\": {}, \"sent_bytes\": {}, \"waited_seconds\": {}{}}}}}\n",
      s.planned_peak_bytes, s.measured_peak_bytes, s.steps, Number{s.train_loss}, Number{s.tokens_per_second},
      s.fetched_bytes, s.sent_bytes, Number{s.waited_seconds}, of_ranks(s));
  line(text.data(), text.size());
}

}  // namespace snug
