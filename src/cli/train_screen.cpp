#include "cli/train_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/process.h"
#include "cli/terminal.h"
#include "report/units.h"

namespace snug::cli {

namespace {

double share_of_plan(const StepReport& r) {
  return 100.0 * static_cast<double>(r.measured_peak_bytes) / static_cast<double>(r.planned_peak_bytes);
}

std::string loss_scale_words(const StepMetrics& m) {
  return fmt::format("loss scale {:g}{}", *m.loss_scale, m.skipped ? ", step skipped" : "");
}

// `columns` wide, filled to done of all.
std::string bar(int64_t done, int64_t all, int columns) {
  const double share = static_cast<double>(done) / static_cast<double>(std::max<int64_t>(1, all));
  const int filled = std::clamp(static_cast<int>(share * columns), 0, columns);
  std::string text;
  for (int i = 0; i < columns; ++i) text += i < filled ? "█" : "░";
  return text;
}

// What a step's line must hold, with so much between its parts.
std::string essentials(const StepReport& r, const char* gap, const char* speed) {
  const StepMetrics& m = r.metrics;
  return fmt::format("{}/{}{gap}epoch {:.2f}{gap}loss {:.4f}{gap}{:.0f} {}{gap}{} < {}{gap}{}", m.step, r.total_steps,
                     r.epoch, m.loss, m.tokens_per_second, speed, clock_text(r.seconds_passed), clock_text(r.seconds_left),
                     format_bytes(m.memory_bytes), fmt::arg("gap", gap));
}

}  // namespace

std::string progress_line(const StepReport& r, int width) {
  constexpr int kLongestBar = 12, kShortestBar = 3;
  std::string line = essentials(r, "  ", "tok/s");
  if (static_cast<int>(line.size()) > width) line = essentials(r, " ", "t/s");
  if (static_cast<int>(line.size()) > width) line.resize(static_cast<size_t>(width));  // one screen line, never two
  int room = width - static_cast<int>(line.size());
  const auto add = [&](const std::string& words) {
    const int taken = static_cast<int>(words.size()) + 2;
    if (taken > room) return;
    line += "  " + words;
    room -= taken;
  };
  const StepMetrics& m = r.metrics;
  if (m.loss_scale && m.skipped) add("skipped");
  const int columns = std::min(kLongestBar, room - 1);
  if (columns >= kShortestBar) {
    line = bar(m.step, r.total_steps, columns) + " " + line;
    room -= columns + 1;
  }
  if (r.waited_share) add(fmt::format("waits {:.0f} %", 100.0 * *r.waited_share));
  add(fmt::format("{:.1f} % of plan", share_of_plan(r)));
  add(fmt::format("norm {:.3g}", m.gradient_norm));
  add(fmt::format("lr {:.3g}", m.learning_rate));
  if (m.loss_scale) add(fmt::format("scale {:g}", *m.loss_scale));
  return line;
}

std::string log_line(const StepReport& r) {
  const StepMetrics& m = r.metrics;
  std::string line = fmt::format(
      "step {}/{}  epoch {:.2f}  loss {:.4f}  {:.0f} tok/s  {} passed, {} left  {} ({:.1f} % of plan)  grad norm {:.3g}  lr "
      "{:.3g}",
      m.step, r.total_steps, r.epoch, m.loss, m.tokens_per_second, clock_text(r.seconds_passed), clock_text(r.seconds_left),
      format_bytes(m.memory_bytes), share_of_plan(r), m.gradient_norm, m.learning_rate);
  if (r.waited_share) line += fmt::format("  waits {:.0f} % for the disk", 100.0 * *r.waited_share);
  if (m.loss_scale) line += "  " + loss_scale_words(m);
  return line;
}

std::string evaluation_line(const EvaluationMetrics& m) {
  return fmt::format(
      "evaluation after step {}: loss {:.4f}; of the tokens learned {:.1f} % predicted right, all of them in {:.1f} % of {} "
      "documents",
      m.step, m.loss, 100.0 * m.token_accuracy, 100.0 * m.exact, m.documents);
}

TrainScreen::TrainScreen(bool as_rank) : live_(is_terminal(stderr)), as_rank_(as_rank) {}

void TrainScreen::data_ready(const DatasetSummary& summary, const std::filesystem::path& file) {
  fmt::print(stderr, "{}: {}\n", file.string(), describe(summary));
}

void TrainScreen::bad_row(const std::string& line) { fmt::print(stderr, "{}\n", line); }

void TrainScreen::resumed(const std::filesystem::path& checkpoint, int64_t step) {
  fmt::print(stderr, "going on from {} after step {}\n", checkpoint.string(), step);
}

void TrainScreen::nothing_to_resume(const std::filesystem::path& directory) {
  fmt::print(stderr, "{} holds no finished checkpoint: starting anew\n", directory.string());
}

void TrainScreen::loaded() {
  const auto listen = as_rank_ ? listen_for_signals_as_rank : listen_for_signals;
  listen(live_ ? "\r\033[Kstopping after this step, with a checkpoint; Ctrl-C again stops at once\n"
               : "stopping after this step, with a checkpoint; a second signal stops at once\n");
}

void TrainScreen::stepped(const StepReport& report) {
  if (live_) return write_over(progress_line(report, style_of(stderr).width - 1));
  if (report.logged) fmt::print(stderr, "{}\n", log_line(report));
}

void TrainScreen::evaluating(const EvaluationProgress& p) {
  if (!live_) return;
  write_over(fmt::format("{} evaluation after step {}: {}/{}  {} left", bar(p.done, p.all, 12), p.step, p.done, p.all,
                         clock_text(p.seconds_left)));
}

void TrainScreen::evaluated(const EvaluationMetrics& metrics) {
  write_over(evaluation_line(metrics));
  finish_line();
}

void TrainScreen::saved(const std::filesystem::path& directory) {
  finish_line();
  fmt::print(stderr, "saved {}\n", directory.string());
}

void TrainScreen::ended_early(int64_t step, int64_t best_step) {
  finish_line();
  fmt::print(stderr, "stopping early after step {}: no evaluation was better than that of step {}\n", step, best_step);
}

void TrainScreen::chose(const std::filesystem::path& checkpoint, int64_t evaluations, bool there) {
  finish_line();
  fmt::print(stderr, "the best of {} evaluations: {}{}\n", evaluations, checkpoint.string(),
             there ? "" : ", which is gone: the result is the last step's");
}

void TrainScreen::write_over(const std::string& line) {
  fmt::print(stderr, "{}{}", live_ ? "\r\033[K" : "", line);
  std::fflush(stderr);
  open_line_ = true;
}

void TrainScreen::finish_line() {
  if (open_line_) fmt::print(stderr, "\n");
  open_line_ = false;
}

}  // namespace snug::cli
