#include "train/metrics.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <string>

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

// Keeps lines that belong to steps up to `last_step`. The step is the first field of each line.
std::string kept_lines(const std::filesystem::path& path, int64_t last_step) {
  std::ifstream file(path);
  std::string kept, line;
  while (std::getline(file, line)) {
    const size_t at = line.find("\"step\": ");
    if (at == std::string::npos || file.eof()) continue;  // a summary, or a line cut short
    if (std::strtoll(line.c_str() + at + 8, nullptr, 10) <= last_step) kept += line + "\n";
  }
  return kept;
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path, int64_t last_step) : path_(path) {
  write_file_atomically(path, last_step > 0 ? kept_lines(path, last_step) : std::string());
  fd_ = UniqueFd(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd_) throw_errno("cannot open", path, errno);
}

void MetricsFile::line(const char* text, size_t length) {
  write_all(fd_.get(), std::as_bytes(std::span(text, length)), path_);
}

void MetricsFile::write(const StepMetrics& m) {
  Line text;
  const auto end = fmt::format_to_n(text.data(), text.size(),
                                    "{{\"step\": {}, \"loss\": {}, \"grad_norm\": {}, \"learning_rate\": {}, "
                                    "\"tokens_per_second\": {}, \"memory_bytes\": {}}}\n",
                                    m.step, Number{m.loss}, Number{m.gradient_norm}, Number{m.learning_rate},
                                    Number{m.tokens_per_second}, m.memory_bytes);
  line(text.data(), std::min(end.size, text.size()));
}

void MetricsFile::write(const EvaluationMetrics& m) {
  Line text;
  const auto end = fmt::format_to_n(text.data(), text.size(),
                                    "{{\"step\": {}, \"eval_loss\": {}, \"eval_token_accuracy\": {}, \"eval_exact\": {}, "
                                    "\"eval_documents\": {}}}\n",
                                    m.step, Number{m.loss}, Number{m.token_accuracy}, Number{m.exact}, m.documents);
  line(text.data(), std::min(end.size, text.size()));
}

void MetricsFile::write(const RunSummary& s) {
  Line text;
  const auto end = fmt::format_to_n(
      text.data(), text.size(),
      "{{\"summary\": {{\"planned_peak_bytes\": {}, \"measured_peak_bytes\": {}, \"steps\": {}, "
      "\"train_loss\": {}, \"tokens_per_second\": {}}}}}\n",
      s.planned_peak_bytes, s.measured_peak_bytes, s.steps, Number{s.train_loss}, Number{s.tokens_per_second});
  line(text.data(), std::min(end.size, text.size()));
}

}  // namespace snug
