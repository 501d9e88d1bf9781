// Failures at every place where a run touches the disk: it goes on where it can, else it ends with one clear line, leaves
// earlier checkpoints as they were, and a run that resumes ends with the bits of one that nothing disturbed.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <iostream>
#include <set>

#include "cli/support_disturbed.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

enum class Outcome : uint8_t {
  refused,  // one line, exit code 1, nothing unfinished is left
  either,   // or it goes on to the same end
  broken,   // one line; cleaning up may have failed too
  killed,   // the run, or the process that tokenizes for it
};

struct FailureCase {
  std::string name;
  std::string calls, how;
  Outcome outcome;
  int64_t points = 10;  // evenly spread
  bool ends = true;     // and the first and the last call on each file
  std::string below;    // in the workspace
  const char* method = "full";
  bool and_later = false;
};

void PrintTo(const FailureCase& test, std::ostream* out) { *out << test.name; }

class Failure : public ::testing::TestWithParam<FailureCase> {
 protected:
  static std::set<int64_t> points_of(const Injected& counted) {
    const int64_t calls = counted.calls - (GetParam().how == "full" ? 1024 : 0);  // metrics lines vary in length
    const int64_t more = std::min(GetParam().points, calls);
    std::set<int64_t> list;
    if (GetParam().ends) list.insert(counted.ends.begin(), counted.ends.end());
    for (int64_t i = 0; i < more; ++i) list.insert(1 + i * (calls - 1) / std::max<int64_t>(1, more - 1));
    return list;
  }

  static std::string fault_of_end(const Disturbed& runs, const Injected& run) {
    const Outcome outcome = GetParam().outcome;
    if (run.result.signal == SIGKILL) return outcome == Outcome::killed ? "" : "was killed";
    if (run.result.exit_code == 0 && outcome == Outcome::either) return "";
    if (outcome == Outcome::killed) return fault_of(run.result, runs.workspace().data());
    if (outcome == Outcome::refused && !unfinished(runs.out()).empty()) return "leaves " + unfinished(runs.out()).front();
    return fault_of(run.result, run.path);
  }

  static std::string fault_at(const Disturbed& runs, const Injected& run) {
    if (run.injected == 0) return "nothing was injected";
    if (const std::string fault = fault_of_end(runs, run); !fault.empty()) return fault;
    if (const std::string damage = runs.damage(); !damage.empty()) return "damaged " + damage;
    const ProcessResult resumed = runs.resume();
    if (resumed.exit_code != 0) return "cannot be resumed: " + resumed.error;
    const std::string difference = runs.difference();
    return difference.empty() ? "" : "resumed, it ends with another " + difference;
  }
};

TEST_P(Failure, ends_in_one_line_harms_no_checkpoint_and_resumes_to_the_same_bits) {
  if (testing::kSanitized) GTEST_SKIP() << kWhySkipped;
  const FailureCase& test = GetParam();
  const Disturbed runs(test.method);
  const int64_t never = test.how == "full" ? INT64_MAX : 0;
  Injection injection{test.calls, test.how, never, false, runs.workspace() / test.below};
  const Injected counted = runs.resume(injection);
  ASSERT_EQ(counted.result.exit_code, 0) << counted.result.error;
  ASSERT_EQ(runs.difference(), "");
  ASSERT_GT(counted.calls, 0);
  injection.and_later = test.and_later;
  int64_t tried = 0;
  for (const int64_t call : points_of(counted)) {
    runs.restore();
    injection.at = call;
    const Injected run = runs.resume(injection);
    EXPECT_EQ(fault_at(runs, run), "") << test.calls << " " << call << " of " << counted.calls << ", " << run.path << "\n"
                                       << run.result.error;
    ++tried;
  }
  std::cout << tried << " points of " << counted.calls << "\n";
}

std::vector<FailureCase> cases() {
  const std::string eio = std::to_string(EIO), enospc = std::to_string(ENOSPC), erofs = std::to_string(EROFS);
  constexpr Outcome kRefused = Outcome::refused, kKilled = Outcome::killed;
  const std::string all = "open,write,sync,rename,mkdir,remove,list";
  return {
      {"open_EIO", "open", eio, kRefused, 1},
      {"read_EIO", "read", eio, kRefused},
      {"write_EIO", "write", eio, kRefused},
      {"sync_EIO", "sync", eio, kRefused},
      {"rename_EIO", "rename", eio, kRefused},
      {"mkdir_EIO", "mkdir", eio, kRefused},
      {"stat_EIO", "stat", eio, Outcome::either, 15, false},
      {"list_EIO", "list", eio, Outcome::either, 12, false},
      {"remove_EIO", "remove", eio, Outcome::either},
      {"mkdir_ENOSPC", "mkdir", enospc, kRefused},
      {"rename_ENOSPC", "rename", enospc, kRefused, 1, true, "out/result"},
      {"write_full_disk", "write", "full", kRefused, 16, false, "out"},
      {"lora_write_EIO", "write", eio, kRefused, 5, true, "out/checkpoint-6", "lora"},
      {"lora_rename_EIO", "rename", eio, kRefused, 5, true, "out", "lora"},
      {"dead_disk", all, eio, Outcome::broken, 10, false, "out/checkpoint-6", "full", true},
      {"read_only", "mkdir,rename,write", erofs, Outcome::broken, 10, false, "out", "full", true},
      {"write_killed", "write", "kill", kKilled, 10, true, "out"},
      {"sync_killed", "sync", "kill", kKilled, 5, true, "out/checkpoint-6"},
      {"rename_killed", "rename", "kill", kKilled, 20, true, "out"},
      {"mkdir_killed", "mkdir", "kill", kKilled, 2, true, "out"},
      {"lora_write_killed", "write", "kill", kKilled, 5, true, "out/checkpoint-6", "lora"},
      {"pages_reserve_ENOSPC", "reserve", enospc, kRefused, 1, true, "out/.pages", "paged"},
      {"pages_open_EIO", "open", eio, kRefused, 1, true, "out/.pages", "paged"},
      {"pages_remove_EIO", "remove", eio, kRefused, 1, true, "out/.pages", "paged"},
      {"pages_read_EIO", "read", eio, kRefused, 8, true, "out/.pages", "paged"},
      {"pages_write_EIO", "write", eio, kRefused, 8, true, "out/.pages", "paged"},
      {"pages_write_ENOSPC", "write", enospc, kRefused, 4, true, "out/.pages", "paged"},
      {"pages_write_full_disk", "write", "full", kRefused, 8, false, "out/.pages", "paged"},
      {"pages_read_killed", "read", "kill", kKilled, 6, true, "out/.pages", "paged"},
      {"pages_write_killed", "write", "kill", kKilled, 12, true, "out/.pages", "paged"},
      {"away_read_EIO", "read", eio, kRefused, 10, true, "out/.pages", "away"},
      {"away_write_EIO", "write", eio, kRefused, 10, true, "out/.pages", "away"},
      {"away_write_full_disk", "write", "full", kRefused, 10, false, "out/.pages", "away"},
      {"away_killed", "read,write", "kill", kKilled, 50, true, "out/.pages", "away"},
  };
}

INSTANTIATE_TEST_SUITE_P(of, Failure, ::testing::ValuesIn(cases()), [](const auto& test) { return test.param.name; });

// ---- What a program must bear

class Bearable : public ::testing::TestWithParam<const char*> {};

TEST_P(Bearable, interrupted_and_short_calls_change_nothing) {
  if (testing::kSanitized) GTEST_SKIP() << kWhySkipped;
  const std::string how = GetParam();
  for (const char* method : {"full", "lora", "paged", "away"}) {
    const Disturbed runs(method);
    const Injection injection{how == "short" ? "read,write" : "open,read,write,sync,reserve", how, 1, true,
                              runs.workspace().path()};
    const Injected run = runs.resume(injection);
    EXPECT_EQ(run.result.exit_code, 0) << run.result.error;
    EXPECT_EQ(runs.difference(), "") << method;
    EXPECT_GT(run.injected, 200);
    std::cout << method << ": " << run.injected << " of " << run.calls << " calls\n";
  }
}

INSTANTIATE_TEST_SUITE_P(of, Bearable, ::testing::Values("short", "interrupt"),
                         [](const auto& test) { return std::string(test.param); });

TEST(WithoutRing, a_system_without_io_uring_moves_pages_all_the_same) {
  if (testing::kSanitized) GTEST_SKIP() << kWhySkipped;
  for (const char* method : {"paged", "away"}) {
    const Disturbed runs(method);
    const Injected run = runs.resume({"ring", std::to_string(EPERM), 1, true, runs.workspace().path()});
    EXPECT_EQ(run.result.exit_code, 0) << run.result.error;
    EXPECT_EQ(run.injected, 1);
    EXPECT_EQ(runs.difference(), "") << method;
  }
}

// ---- Starting anew where a run was

TEST(Overwriting, killed_anywhere_can_be_resumed_or_begun_again) {
  if (testing::kSanitized) GTEST_SKIP() << kWhySkipped;
  const Disturbed runs("lora");
  Injection injection{"rename,remove", "kill", 0, false, runs.out() / "checkpoint-"};
  const Injected counted = runs.run({"--overwrite-output-dir"}, injection);
  ASSERT_EQ(counted.result.exit_code, 0) << counted.result.error;
  ASSERT_GT(counted.calls, 8);
  for (injection.at = 1; injection.at <= counted.calls; ++injection.at) {
    runs.restore();
    const Injected run = runs.run({"--overwrite-output-dir"}, injection);
    EXPECT_EQ(run.result.signal, SIGKILL) << injection.at;
    const ProcessResult after = injection.at % 2 == 0 ? runs.resume() : runs.run({"--overwrite-output-dir"});
    EXPECT_EQ(after.exit_code, 0) << injection.at << ", " << run.path << ": " << after.error;
    EXPECT_EQ(runs.difference(), "") << injection.at << ", " << run.path;
  }
  std::cout << counted.calls << " points\n";
}

TEST(Overwriting, a_directory_that_cannot_be_read_is_not_taken_for_an_empty_one) {
  if (testing::kSanitized) GTEST_SKIP() << kWhySkipped;
  const Disturbed runs("lora");
  const std::string eio = std::to_string(EIO);
  const Injected always = runs.resume({"list", eio, 1, true, runs.out()});
  EXPECT_EQ(fault_of(always.result, runs.out()), "") << always.result.error;
  for (int64_t call = 1; call <= 8; ++call) {
    const Injected once = runs.resume({"list", eio, call, false, runs.out()});
    EXPECT_EQ(once.result.error.find("step 1/"), std::string::npos) << call << ": " << once.result.error;
    runs.restore();
  }
  EXPECT_EQ(always.result.error.find("step 1/"), std::string::npos) << always.result.error;
}

}  // namespace

}  // namespace snug::cli_tests
