// Between the first and the last step nothing of size is allocated anywhere in the process, libraries included. Counted by a
// preloaded library that stands in for malloc and mmap: count_allocations.cpp.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <sstream>

#include "cli/support_workspace.h"
#include "families.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

struct Counted {
  int lines = 0, requests = 0;
  size_t largest = 0;
  std::string kinds;  // of the first few, a line each
};

Counted read_count(const fs::path& file) {
  std::istringstream text(contents(file));
  Counted counted;
  text >> counted.lines >> counted.requests >> counted.largest;
  for (std::string line; std::getline(text, line);)
    if (!line.empty()) counted.kinds += line + "\n";
  return counted;
}

ProcessOptions preloaded(const fs::path& file, size_t least_bytes) {
  ProcessOptions options;
  options.environment = {{"LD_PRELOAD", SNUG_COUNT_ALLOCATIONS},
                         {"SNUG_COUNT_FILE", file.string()},
                         {"SNUG_COUNT_FROM", std::to_string(least_bytes)}};
  return options;
}

constexpr size_t kLarge = size_t{64} << 10;

struct AllocationCase {
  std::string name;
  std::vector<std::string> keys;
};

void PrintTo(const AllocationCase& test, std::ostream* out) { *out << test.name; }

class Steps : public ::testing::TestWithParam<AllocationCase> {};

TEST_P(Steps, nothing_large_is_allocated_between_the_first_and_the_last) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  // Wide enough that one row of logits, one panel and one activation all exceed 64 KiB.
  const Workspace work({{"hidden_size", 160}, {"intermediate_size", 416}, {"vocab_size", 20011}});
  std::vector<std::string> keys = {"--seq", "128", "--batch", "2", "--accum", "2", "--max-steps", "5", "--save-steps", "0"};
  const ProcessResult run =
      run_program(work.train(work / "out", joined(keys, GetParam().keys)), preloaded(work / "count", kLarge));
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const Counted counted = read_count(work / "count");
  EXPECT_GE(counted.lines, 5);
  EXPECT_EQ(counted.requests, 0) << "the largest has " << counted.largest << " bytes\n" << counted.kinds;
}

INSTANTIATE_TEST_SUITE_P(
    of, Steps,
    ::testing::Values(AllocationCase{"full", {"--method", "full"}}, AllocationCase{"lora", {"--method", "lora"}},
                      AllocationCase{"lora_all_linear", {"--method", "lora", "--lora-target-modules", "all-linear"}},
                      AllocationCase{"lora_reported", {"--method", "lora", "--report-to", "tensorboard"}},
                      AllocationCase{"full_bf16", {"--method", "full", "--bf16"}},
                      AllocationCase{"lora_bf16", {"--method", "lora", "--bf16"}},
                      AllocationCase{
                          "full_parts_recomputed",
                          {"--method", "full", "--gradient-checkpointing", "--checkpoint-parts", "norms,activations"}},
                      AllocationCase{"full_recomputed", {"--method", "full", "--gradient-checkpointing"}},
                      AllocationCase{"lora_bf16_some_recomputed",
                                     {"--method", "lora", "--bf16", "--gradient-checkpointing", "--checkpoint-layers", "1"}},
                      AllocationCase{"full_on_one_thread", {"--method", "full", "--threads", "1"}},
                      AllocationCase{"full_paged", {"--method", "full", "--optim", "paged_adamw_8bit"}},
                      AllocationCase{"full_in_backward",
                                     {"--method", "full", "--accum", "1", "--optimizer-in-bwd", "--max-grad-norm", "0",
                                      "--optim", "paged_adamw_32bit"}},
                      AllocationCase{"lora_padded", {"--method", "lora", "--packing", "false"}}),
    [](const auto& test) { return test.param.name; });

TEST(StepsOfEveryFamily, nothing_large_is_allocated_between_the_first_and_the_last) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  for (const auto& [name, config] : test::families(20011)) {
    const Workspace work(config);
    for (const char* method : {"full", "lora"}) {
      std::vector<std::string> keys = {"--method", method, "--seq", "128", "--batch", "2", "--max-steps", "4"};
      if (*method == 'l') keys = joined(keys, {"--lora-target-modules", "all-linear", "--bf16"});
      const ProcessResult run = run_program(work.train(work / method, keys), preloaded(work / "count", kLarge));
      ASSERT_EQ(run.exit_code, 0) << name << run.error;
      const Counted counted = read_count(work / "count");
      EXPECT_GE(counted.lines, 4);
      EXPECT_EQ(counted.requests, 0) << name << " " << method << ": " << counted.largest << " bytes\n" << counted.kinds;
    }
  }
}

TEST(StepsEvaluated, nothing_large_is_allocated_by_evaluations_during_training) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  const Workspace work({{"hidden_size", 160}, {"intermediate_size", 416}, {"vocab_size", 20011}});
  for (const char* method : {"full", "lora"}) {
    const ProcessResult run =
        run_program(work.train(work / method, {"--method", method, "--seq", "128", "--batch", "2", "--accum", "2",
                                               "--max-steps", "3", "--save-steps", "0", "--eval-steps", "1",
                                               "--eval-on-start", "--eval-data", work.data().string()}),
                    preloaded(work / "count", kLarge));
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const Counted counted = read_count(work / "count");
    EXPECT_GE(counted.lines, 3 + 4) << "three steps; evaluations before, between and after";
    EXPECT_EQ(counted.requests, 0) << method << ": the largest has " << counted.largest << " bytes\n" << counted.kinds;
  }
}

TEST(Counter, sees_the_small_allocations_of_saving) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  const Workspace work;
  const ProcessResult run = run_program(work.train(work / "out", {"--seq", "64", "--max-steps", "3", "--save-steps", "1"}),
                                        preloaded(work / "count", 1));
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_GT(read_count(work / "count").requests, 10);
}

TEST(Counter, sees_every_way_to_allocate) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  const Workspace work;
  ProcessOptions options = preloaded(work / "count", kLarge);
  options.program = "/proc/self/exe";
  const ProcessResult run = run_program({"--gtest_also_run_disabled_tests", "--gtest_filter=Control.*"}, options);
  ASSERT_EQ(run.exit_code, 0) << run.output << run.error;
  const Counted counted = read_count(work / "count");
  EXPECT_EQ(counted.lines, 2);
  EXPECT_EQ(counted.requests, 8) << counted.kinds;
  EXPECT_EQ(counted.largest, kLarge + 7);
}

// The program that `sees_every_way_to_allocate` runs with the library preloaded.
TEST(Control, DISABLED_allocates_in_every_way) {
  constexpr char kLine[] = "{\"step\": 1}\n";
  const auto line = [&] {
    ASSERT_EQ(::write(STDERR_FILENO, kLine, sizeof kLine - 1), static_cast<ssize_t>(sizeof kLine - 1));
  };
  static void* volatile kept[8];  // volatile: a compiler may leave out what nobody looks at
  line();
  kept[0] = std::malloc(kLarge);
  kept[1] = std::calloc(1, kLarge + 1);
  kept[2] = std::realloc(nullptr, kLarge + 2);
  kept[3] = std::aligned_alloc(64, kLarge);
  void* block = nullptr;
  ASSERT_EQ(posix_memalign(&block, 64, kLarge + 4), 0);
  kept[4] = block;
  kept[5] = ::operator new(kLarge + 5);
  kept[6] = ::operator new (kLarge, std::align_val_t{64});
  kept[7] = mmap(nullptr, kLarge + 7, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* volatile small = std::malloc(kLarge - 1);
  line();
  std::free(small);
  munmap(kept[7], kLarge + 7);
  ::operator delete (kept[6], std::align_val_t{64});
  ::operator delete(kept[5]);
  for (int i = 0; i < 5; ++i) std::free(kept[i]);
}

}  // namespace

}  // namespace snug::cli_tests
