// The line that a run shows: whole at 80 columns, and more where there is room.

#include "cli/train_screen.h"

#include <gtest/gtest.h>

namespace snug::cli {

namespace {

StepReport report_of(int64_t step, int64_t steps) {
  return {.metrics = {.step = step,
                      .loss = 2.12345,
                      .gradient_norm = 1.5,
                      .learning_rate = 2e-4,
                      .tokens_per_second = 1234,
                      .memory_bytes = int64_t{359} << 20},
          .total_steps = steps,
          .epoch = 0.31,
          .seconds_passed = 12,
          .seconds_left = 107,
          .planned_peak_bytes = int64_t{400} << 20,
          .measured_peak_bytes = int64_t{360} << 20};
}

size_t columns_of(const std::string& line) {
  return static_cast<size_t>(
      std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

void expect_all(const std::string& line, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(line.find(part), std::string::npos) << part << ": " << line;
}

TEST(ProgressLine, is_whole_at_80_columns) {
  const std::string line = progress_line(report_of(12, 120), 79);
  expect_all(line, {"█", "░", "12/120", "epoch 0.31", "loss 2.1235", "1234 tok/s", "0:12 < 1:47", "359.0 MiB"});
  EXPECT_LE(columns_of(line), 79U);
}

TEST(ProgressLine, holds_all_there_is_of_a_long_run_at_80_columns) {
  StepReport report = report_of(12'345, 100'000);
  report.epoch = 12.34;
  report.metrics.tokens_per_second = 12'345;
  report.seconds_passed = 11 * 3600 + 59 * 60;
  report.seconds_left = 99 * 3600;
  report.metrics.memory_bytes = int64_t{13} << 30;
  const std::string line = progress_line(report, 79);
  expect_all(line, {"12345/100000", "epoch 12.34", "loss 2.1235", "12345 t/s", "11:59:00 < 99:00:00", "13.0 GiB"});
  EXPECT_LE(columns_of(line), 79U);
}

TEST(ProgressLine, tells_more_where_there_is_room_and_never_takes_two_lines) {
  StepReport report = report_of(12, 120);
  report.waited_share = 0.126;
  expect_all(progress_line(report, 140), {"waits 13 %", "90.0 % of plan", "norm 1.5", "lr 0.0002"});
  for (int width = 20; width < 160; ++width)
    EXPECT_LE(columns_of(progress_line(report, width)), static_cast<size_t>(width)) << width;
}

TEST(ProgressLine, says_at_80_columns_that_a_step_was_skipped) {
  StepReport report = report_of(12, 120);
  report.metrics.loss_scale = 65536;
  report.metrics.skipped = true;
  expect_all(progress_line(report, 79), {"skipped", "359.0 MiB"});
  expect_all(log_line(report), {"epoch 0.31", "0:12 passed, 1:47 left", "loss scale 65536, step skipped"});
}

TEST(EvaluationLine, says_what_is_right) {
  const std::string line =
      evaluation_line({.step = 3, .loss = 0.5, .token_accuracy = 0.995, .exact = 0.81, .documents = 100});
  EXPECT_EQ(line,
            "evaluation after step 3: loss 0.5000; of the tokens learned 99.5 % predicted right, all of them in 81.0 % of "
            "100 documents");
}

}  // namespace

}  // namespace snug::cli
