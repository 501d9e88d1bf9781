// What surrounds a run may misbehave: clocks that jump, a second process in the same place, a disk that is really full, a
// directory that is really read-only.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "cli/support_disturbed.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

// "" if every rate and time left that the run told is a number from 0 up, else the first that is not.
std::string strange_figure(const Disturbed& runs, const ProcessResult& run) {
  for (const Json& line : read_metrics(runs.out())) {
    const Json& figures = line.contains("summary") ? line["summary"] : line;
    if (!figures.contains("tokens_per_second")) continue;
    const Json& rate = figures["tokens_per_second"];
    if (!rate.is_number() || !(rate.get<double>() >= 0 && rate.get<double>() < 1e9)) return line.dump();
  }
  size_t steps = 0;
  std::istringstream text(run.error);
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("step ")) continue;
    ++steps;
    int number = 0, of = 0;
    double epoch = -1, loss = 0, rate = -1;
    char passed[32], left[32];
    const int read =
        std::sscanf(line.c_str(), "step %d/%d  epoch %lf  loss %lf  %lf tok/s  %31[0-9:] passed, %31[0-9:] left", &number,
                    &of, &epoch, &loss, &rate, passed, left);
    if (read != 7 || !(epoch >= 0 && epoch < 10) || !(rate >= 0 && rate < 1e9)) return line;
  }
  return steps == 2 ? "" : fmt::format("{} steps", steps);
}

TEST(Clocks, that_jump_by_hours_change_no_bit_and_no_figure_is_negative_or_infinite) {
  if (testing::kSanitized) GTEST_SKIP() << kWhySkipped;
  const Disturbed runs("lora");
  Injection injection{.calls = "clock", .how = "jump", .at = INT64_MAX};
  const Injected counted = runs.resume(injection);
  ASSERT_EQ(counted.result.exit_code, 0) << counted.result.error;
  ASSERT_GT(counted.calls, 4);
  int64_t points = 0;
  for (const int64_t hours : {-1000, -2, 2, 1000})
    for (injection.at = 1; injection.at <= counted.calls; ++injection.at) {
      // The newest checkpoint is the one with the highest number, whatever its date says.
      runs.restore();
      const auto now = fs::file_time_type::clock::now();
      fs::last_write_time(runs.out() / "checkpoint-2", now + std::chrono::hours(1000));
      fs::last_write_time(runs.out() / "checkpoint-4", now - std::chrono::hours(1000));
      injection.seconds = hours * 3600;
      const Injected run = runs.resume(injection);
      ASSERT_EQ(run.result.exit_code, 0) << run.result.error;
      EXPECT_GT(run.injected, 0);
      EXPECT_NE(run.result.error.find("checkpoint-4 after step 4"), std::string::npos) << run.result.error;
      EXPECT_EQ(strange_figure(runs, run.result), "")
          << hours << " hours at call " << injection.at << " of " << counted.calls;
      EXPECT_EQ(runs.difference(), "") << hours << " hours at call " << injection.at;
      ++points;
    }
  std::cout << points << " points\n";
}

TEST(SecondProcess, in_the_same_directory_is_refused_and_does_not_disturb_the_first) {
  const Workspace work;
  const std::vector<std::string> keys = {"--seq", "64", "--batch", "2", "--max-steps", "100", "--save-steps", "40"};
  ASSERT_EQ(run_program(work.train(work / "truth", keys)).exit_code, 0);
  Process first(work.train(work / "out", keys));
  ASSERT_TRUE(first.wait_for_error_lines(4));
  for (const char* more : {"--overwrite-output-dir", "--resume-from-checkpoint", "--packing"}) {
    const ProcessResult second = run_program(work.train(work / "out", joined(keys, {more})));
    EXPECT_EQ(fault_of(second, work / "out"), "") << second.error;
    EXPECT_NE(second.error.find("another snug is training here"), std::string::npos) << second.error;
  }
  const ProcessResult done = first.finish();
  ASSERT_EQ(done.exit_code, 0) << done.error;
  for (const char* file : {"adapter_model.safetensors", "checkpoint-40/optimizer.safetensors", "checkpoint-100/snug.json"})
    EXPECT_TRUE(contents(work / "truth" / file) == contents(work / "out" / file)) << file;
  EXPECT_EQ(step_lines(work / "truth"), step_lines(work / "out"));
  EXPECT_TRUE(unfinished(work / "out").empty());
}

// ---- Real mounts, seen by the program under test alone

bool may_mount() {
  ProcessOptions shell;
  shell.program = "/usr/bin/unshare";
  return run_program({"-rm", "mount", "-t", "tmpfs", "none", "/mnt"}, shell).exit_code == 0;
}

// Runs the program after `prepare` and before `afterwards`, lines of shell in which $OUT and $KEPT are directories.
ProcessResult run_mounted(const Disturbed& runs, const std::string& prepare, const std::string& afterwards,
                          const std::vector<std::string>& more) {
  ProcessOptions shell;
  shell.program = "/usr/bin/unshare";
  shell.environment = {{"OUT", runs.out().string()}, {"KEPT", (runs.workspace() / "kept").string()}};
  const std::string script = fmt::format("set -e; {}; set +e; \"$0\" \"$@\"; code=$?; {}; exit $code", prepare, afterwards);
  return run_program(joined({"-rm", "sh", "-c", script, SNUG_BINARY_DIR "/snug"}, runs.words(runs.out(), more)), shell);
}

TEST(RealDisk, that_is_full_keeps_earlier_checkpoints_and_more_space_lets_the_run_go_on) {
  if (testing::kSanitized) GTEST_SKIP() << kWhySkipped;
  if (!may_mount()) GTEST_SKIP() << "file systems cannot be mounted here";
  int refused = 0;
  const Disturbed runs("full");
  for (int kib = 1500; kib <= 2700; kib += 200) {
    fs::remove_all(runs.out());
    fs::remove_all(runs.workspace() / "kept");
    fs::create_directory(runs.out());
    const ProcessResult run =
        run_mounted(runs, fmt::format("mount -t tmpfs -o size={}k none \"$OUT\"", kib), "cp -r \"$OUT\" \"$KEPT\"", {});
    fs::remove_all(runs.out());
    fs::rename(runs.workspace() / "kept", runs.out());
    if (run.exit_code != 0) {
      ++refused;
      EXPECT_EQ(fault_of(run, runs.out()), "") << kib << " KiB: " << run.error;
      EXPECT_NE(run.error.find("No space left on device"), std::string::npos) << run.error;
      EXPECT_TRUE(unfinished(runs.out()).empty()) << unfinished(runs.out()).front();
      const ProcessResult resumed = runs.resume();
      EXPECT_EQ(resumed.exit_code, 0) << resumed.error;
    }
    EXPECT_EQ(runs.difference(), "") << kib << " KiB";
  }
  EXPECT_GE(refused, 3);
  std::cout << refused << " sizes refused\n";
}

TEST(RealDisk, that_is_read_only_is_named_before_the_first_step) {
  if (testing::kSanitized) GTEST_SKIP() << kWhySkipped;
  if (!may_mount()) GTEST_SKIP() << "file systems cannot be mounted here";
  const Disturbed runs("lora");
  const char* freeze = "mount --bind \"$OUT\" \"$OUT\"; mount -o remount,bind,ro \"$OUT\"";
  for (const char* more : {"--resume-from-checkpoint", "--overwrite-output-dir"}) {
    const ProcessResult run = run_mounted(runs, freeze, ":", {more});
    EXPECT_EQ(fault_of(run, runs.out()), "") << run.error;
    EXPECT_NE(run.error.find("Read-only file system"), std::string::npos) << run.error;
    EXPECT_EQ(run.error.find("step "), std::string::npos) << run.error;
    EXPECT_EQ(runs.damage(), "");
  }
  EXPECT_EQ(runs.resume().exit_code, 0);
  EXPECT_EQ(runs.difference(), "");
}

}  // namespace

}  // namespace snug::cli_tests
