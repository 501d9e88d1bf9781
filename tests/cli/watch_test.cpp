// snug watch on processes that really are there, and on a stand-in for NVIDIA's library.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

constexpr int64_t kGiB = int64_t{1} << 30, kMebibyte = int64_t{1} << 20;

// The kernel's own count of this process, in pages.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::vector<Json> looks(const std::string& output) {
  std::vector<Json> list;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) list.push_back(Json::parse(line));
  return list;
}

ProcessOptions with_driver(const std::string& mode = "") {
  ProcessOptions options;
  options.environment["LD_LIBRARY_PATH"] = SNUG_FAKE_DRIVER;
  options.environment["SNUG_FAKE_NVML"] = mode;
  return options;
}

TEST(Watch, a_process_is_told_as_the_kernel_counts_it) {
  constexpr size_t kBytes = 200 * kMebibyte;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kBytes);
  const ProcessResult run = run_program({"watch", std::to_string(getpid()), "--json", "--count", "2", "--interval", "0.05"});
  const int64_t own = resident_bytes();
  munmap(memory, kBytes);
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const std::vector<Json> list = looks(run.output);
  ASSERT_EQ(list.size(), 2U);
  for (const Json& look : list) {
    EXPECT_NEAR(look["used_bytes"].get<double>(), static_cast<double>(own), 16.0 * kMebibyte);
    EXPECT_GE(look["peak_bytes"].get<int64_t>(), look["used_bytes"].get<int64_t>());
    EXPECT_GT(look["limit_bytes"].get<int64_t>(), look["used_bytes"].get<int64_t>());
    EXPECT_NE(look["what"].get<std::string>().find("cli_tests"), std::string::npos);
  }
  EXPECT_GE(list[1]["seconds"].get<double>(), 0.05);
}

TEST(Watch, it_ends_with_the_process) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    usleep(300'000);
    _exit(0);
  }
  const ProcessResult run = run_program({"watch", std::to_string(child), "--interval", "0.05"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_NE(run.output.find("process " + std::to_string(child)), std::string::npos) << run.output;
}

TEST(Watch, a_signal_ends_it) {
  Process watch({"watch", std::to_string(getpid()), "--interval", "30"});
  usleep(300'000);
  watch.send(SIGINT);
  EXPECT_EQ(watch.finish().exit_code, 130);
}

TEST(Watch, devices_are_told_with_their_processes_and_warn_from_90_percent_on) {
  const ProcessResult run = run_program({"watch", "--json", "--count", "1"}, with_driver());
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const std::vector<Json> list = looks(run.output);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0]["what"], "GPU 0, NVIDIA Test 24GB");
  EXPECT_EQ(list[0]["used_bytes"], 6 * kGiB);
  EXPECT_EQ(list[0]["limit_bytes"], 24 * kGiB);
  EXPECT_EQ(list[0]["nearly_full"], false);
  ASSERT_EQ(list[0]["processes"].size(), 3U);
  EXPECT_EQ(list[0]["processes"][0]["pid"], 999999);  // largest first
  EXPECT_EQ(list[0]["processes"][0]["bytes"], 3 * kGiB);
  EXPECT_EQ(list[0]["processes"][1]["pid"], 1);
  EXPECT_NE(list[0]["processes"][1]["name"], "");
  EXPECT_TRUE(list[0]["processes"][2]["bytes"].is_null());  // the driver does not tell
  EXPECT_EQ(list[1]["nearly_full"], true);
  const ProcessResult one = run_program({"watch", "1", "--count", "1"}, with_driver());
  EXPECT_NE(one.output.find("GPU 1, NVIDIA Test 24GB: 23.0 GiB of 24.0 GiB (96 %), nearly full"), std::string::npos)
      << one.output;
  EXPECT_EQ(std::count(one.output.begin(), one.output.end(), '\n'), 1);
}

TEST(Watch, what_cannot_be_watched_is_refused_in_one_line) {
  const auto expect_refused = [](const ProcessResult& run, int code, const char* part) {
    EXPECT_EQ(run.exit_code, code);
    EXPECT_EQ(run.output, "");
    EXPECT_NE(run.error.find(part), std::string::npos) << run.error;
    EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1) << run.error;
  };
  expect_refused(run_program({"watch"}, with_driver("refuse")), 1, "Driver Not Loaded");
  expect_refused(run_program({"watch", "999999999"}), 1, "no process");
  expect_refused(run_program({"watch", "fast"}), 2, "'fast'");
  expect_refused(run_program({"watch", "1", "2"}), 2, "one process");
  expect_refused(run_program({"watch", "--often"}), 2, "--interval");
  expect_refused(run_program({"watch", "1", "--interval", "nan"}), 2, "'nan'");
  expect_refused(run_program({"watch", "1", "--count", "0"}), 2, "'0'");
  expect_refused(run_program({"watch", "1", "--count"}), 2, "needs a value");
}

}  // namespace

}  // namespace snug::cli_tests
