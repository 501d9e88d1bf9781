// What ends one of several processes ends all of them, told once; the last checkpoint is whole, and a run goes on from it.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>

#include "cli/support_ranks.h"

namespace snug::cli_tests {

namespace {

// A rank is a descendant of the process that was started.
std::vector<pid_t> descendants(pid_t of) {
  std::vector<pid_t> all;
  std::ifstream children(fmt::format("/proc/{}/task/{}/children", of, of));
  for (pid_t id = 0; children >> id;) {
    all.push_back(id);
    const std::vector<pid_t> theirs = descendants(id);
    all.insert(all.end(), theirs.begin(), theirs.end());
  }
  return all;
}

TEST_F(Ranks, killed_at_any_moment_they_stop_together_and_go_on_with_the_same_bits) {
  const std::vector<std::string> common = {"--method", "full", "--max-steps", "10", "--lr", "1e-3", "--save-steps", "2"};
  const Mesh kMeshes[] = {{2, 1, 1, 2, 1}, {4, 2, 1, 0, 1, 1, 2}};
  for (const Mesh& mesh : kMeshes)
    run(work_ / mesh.name(), mesh.ranks, mesh.stage, 4 * mesh.together(), joined(common, mesh.keys()));
  std::minstd_rand random(5);
  const int kills = snug::testing::drawn(30);
  int ended = 0;
  for (int i = 0; ended < kills; ++i) {
    ASSERT_LT(i, 2 * kills + 5) << "runs end before they are killed";
    const Mesh& mesh = kMeshes[i % 2];
    const fs::path output = work_ / "killed", truth = work_ / mesh.name();
    const std::vector<std::string> keys = joined(common, mesh.keys());
    const int64_t together = 4 * mesh.together();
    fs::remove_all(output);
    Process process(words(output, mesh.ranks, mesh.stage, together, keys));
    process.wait_for_error_lines(2 + random() % 12);
    usleep(static_cast<useconds_t>(random() % 20'000));
    const std::vector<pid_t> ranks = descendants(process.id());
    if (!ranks.empty()) kill(ranks[random() % ranks.size()], SIGKILL);
    const ProcessResult killed = process.finish();
    if (killed.exit_code != 0) {
      ++ended;
      EXPECT_EQ(killed.exit_code, 128 + SIGKILL) << killed.error;
      const std::vector<std::string> lines = lines_of(killed.error);
      EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const std::string& l) { return l.starts_with("snug: "); }), 1)
          << killed.error;
      run(output, mesh.ranks, mesh.stage, together, joined(keys, {"--resume-from-checkpoint", "true"}));
    }
    EXPECT_TRUE(contents(truth / "model.safetensors") == contents(output / "model.safetensors")) << i;
    EXPECT_EQ(step_lines(truth), step_lines(output)) << i;
    EXPECT_EQ(unfinished(output), std::vector<std::string>()) << i;
  }
}

// Every tensor is written whole, by whoever has parts of it.
// Starts the run, stops one of its ranks for good, and looks how it ends.
void expect_told_of_stopped(const std::vector<std::string>& words, const ProcessOptions& options, const char* says) {
  Process process(words, options);
  process.wait_for_error_lines(5);
  pid_t rank = 0;
  for (const pid_t id : descendants(process.id()))
    if (fs::path(fs::read_symlink(fmt::format("/proc/{}/exe", id))).filename() == "snug") rank = id;
  ASSERT_GT(rank, 0);
  kill(rank, SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  const ProcessResult result = process.finish();
  EXPECT_LE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(result.exit_code, 1) << result.error;
  const std::vector<std::string> lines = lines_of(result.error);
  EXPECT_EQ(std::ranges::count_if(lines, [](const std::string& line) { return line.starts_with("snug: "); }), 1)
      << result.error;
  EXPECT_NE(result.error.find(says), std::string::npos) << result.error;
  std::string state;
  std::getline(std::ifstream(fmt::format("/proc/{}/stat", rank)), state);
  EXPECT_TRUE(kill(rank, 0) != 0 || state.find(") Z ") != std::string::npos) << "it is still there: " << state;
}

TEST_F(Ranks, one_that_is_stopped_is_told_of_once_and_ends_all) {
  const std::vector<std::string> keys = {"--method", "full", "--max-steps", "100000", "--save-steps", "0"};
  expect_told_of_stopped(words(work_ / "stopped", 3, 3, 3, keys), {}, "is stopped and has not gone on for 15 seconds");
}

TEST_F(Ranks, one_that_hangs_on_another_machine_is_told_of_once_and_ends_all) {
  if (!has_mpi()) GTEST_SKIP() << kNoMpi;
  const std::vector<std::string> keys = {"--method", "full", "--max-steps", "100000", "--save-steps", "0"};
  expect_told_of_stopped(joined(kOverMpi, words(work_ / "hangs", 2, 3, 2, keys)), mpirun(),
                         "has not been heard of for 20 seconds");
}

// Two that share out states and gradients, and four that split layers and products, in turn.
// In two namespaces, whose link goes down in the middle of a run.
TEST_F(Ranks, a_link_that_breaks_ends_both_machines) {
  if (!has_mpi()) GTEST_SKIP() << kNoMpi;
  const ProcessResult result = run_program({SNUG_SOURCE_DIR "/bench/two_hosts.py", "--break-link", SNUG_BINARY_DIR "/snug"},
                                           {.program = "/usr/bin/python3"});
  if (result.output.starts_with("SKIPPED")) GTEST_SKIP() << result.output;
  ASSERT_EQ(result.exit_code, 0) << result.output << result.error;
  double first = 0, second = 0;
  ASSERT_EQ(std::sscanf(result.output.c_str(), "ranks ended after %lf s and %lf s", &first, &second), 2) << result.output;
  EXPECT_LE(std::max(first, second), 30) << result.output;
  EXPECT_NE(result.output.find("has not been heard of for 20 seconds"), std::string::npos) << result.output;
  EXPECT_EQ(result.output.find("snug: "), result.output.rfind("snug: ")) << result.output;
}

TEST_F(Ranks, an_error_of_one_is_told_once_and_ends_all) {
  const fs::path output = work_ / "wrong";
  put(work_ / "broken.jsonl", "{\"text\": \"fine\"}\n{\"text\": \n");
  std::vector<std::string> command = words(output, 3, 1, 3, {"--method", "full", "--max-steps", "2"});
  *(std::find(command.begin(), command.end(), "--data") + 1) = (work_ / "broken.jsonl").string();
  const ProcessResult result = run_program(command);
  EXPECT_EQ(result.exit_code, 1);
  const std::vector<std::string> lines = lines_of(result.error);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const std::string& l) { return l.find("broken.jsonl") != l.npos; }),
            1)
      << result.error;
}

// A step that is not a number is the same mistake for all: one line of all of them.
TEST_F(Ranks, that_meet_the_same_mistake_tell_of_it_once) {
  const ProcessResult result = run_program(
      words(work_ / "nan", 4, 1, 4, {"--method", "full", "--max-steps", "30", "--lr", "1e30", "--max-grad-norm", "0"}));
  EXPECT_EQ(result.exit_code, 1);
  const std::vector<std::string> lines = lines_of(result.error);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const std::string& l) { return l.starts_with("snug: "); }), 1)
      << result.error;
  EXPECT_NE(result.error.find("not a number"), std::string::npos) << result.error;
}

// Whoever signals a whole group reaches ranks and who started them, which passes it on: that is no second signal.
TEST_F(Ranks, signalled_as_a_group_save_and_stop) {
  const fs::path output = work_ / "stopped";
  Process process(words(output, 2, 2, 4, {"--method", "full", "--max-steps", "4000", "--save-steps", "0"}));
  ASSERT_TRUE(process.wait_for_error_lines(8));
  std::ifstream children(fmt::format("/proc/{}/task/{}/children", process.id(), process.id()));
  std::vector<pid_t> all = {process.id()};
  for (pid_t id = 0; children >> id;) all.push_back(id);
  ASSERT_EQ(all.size(), 3u);
  for (const pid_t id : all) kill(id, SIGTERM);
  const ProcessResult result = process.finish();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.error;
  EXPECT_GT(newest_step(output), 0) << result.error;
}

}  // namespace

}  // namespace snug::cli_tests
