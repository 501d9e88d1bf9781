// Trainers with a model and a loop of their own, against PyTorch's allocator: tests/golden/eager_litgpt.csv and
// eager_torchtune.csv (tests/oracle/eager_loops.py).

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "eager/support_goldens.h"

namespace snug::eager {
namespace {

std::vector<Golden> litgpt_rows() { return read_goldens(SNUG_SOURCE_DIR "/tests/golden/eager_litgpt.csv"); }

TEST(LitGpt, TakesWhatPyTorchsAllocatorCounted) {
  int runs = 0, tenth = 0, reserved_one = 0;
  for (const Golden& golden : litgpt_rows()) {
    const Plan plan = estimate(golden.spec, golden.setup, golden.stack, golden.target);
    const double allocated = error_of(plan.allocated_bytes, golden.allocated_bytes);
    const double reserved = error_of(plan.reserved_bytes, golden.reserved_bytes);
    ++runs;
    tenth += std::abs(allocated) <= 0.1 ? 1 : 0;
    reserved_one += std::abs(reserved) <= 1.0 ? 1 : 0;
    EXPECT_LE(std::abs(allocated), 1.0) << golden.name();
    EXPECT_LE(std::abs(error_of(plan.steady_bytes, golden.steady_bytes)), 0.5) << golden.name();
    if (std::abs(allocated) > 0.1 || std::abs(reserved) > 1.0)
      std::printf("allocated %+.3f %%, reserved %+.3f %%: %s\n", allocated, reserved, golden.name().c_str());
  }
  std::printf("%d runs of LitGPT: allocated within 0.1 %%: %d; reserved within 1 %%: %d\n", runs, tenth, reserved_one);
  EXPECT_GE(runs, 70);
  EXPECT_GE(tenth, runs * 9 / 10);
  EXPECT_GE(reserved_one, runs * 8 / 10);
}

TEST(TorchTune, TakesWhatPyTorchsAllocatorCounted) {
  int runs = 0, tenth = 0;
  for (const Golden& golden : read_goldens(SNUG_SOURCE_DIR "/tests/golden/eager_torchtune.csv")) {
    const Plan plan = estimate(golden.spec, golden.setup, golden.stack, golden.target);
    const double allocated = error_of(plan.allocated_bytes, golden.allocated_bytes);
    const double reserved = error_of(plan.reserved_bytes, golden.reserved_bytes);
    ++runs;
    tenth += std::abs(allocated) <= 0.1 ? 1 : 0;
    EXPECT_LE(std::abs(allocated), 0.5) << golden.name();
    EXPECT_LE(std::abs(error_of(plan.steady_bytes, golden.steady_bytes)), 0.5) << golden.name();
    if (std::abs(allocated) > 0.1 || std::abs(reserved) > 1.0)
      std::printf("allocated %+.3f %%, reserved %+.3f %%: %s\n", allocated, reserved, golden.name().c_str());
  }
  std::printf("%d runs of torchtune: allocated within 0.1 %%: %d\n", runs, tenth);
  EXPECT_GE(runs, 13);
  EXPECT_GE(tenth, runs * 9 / 10);
}

TEST(LitGpt, WhatIsNotModelledIsRefusedByName) {
  const Golden golden = litgpt_rows().front();
  const auto refuses = [&](auto change) {
    Golden other = golden;
    change(other);
    EXPECT_THROW(estimate(other.spec, other.setup, other.stack, other.target), Error);
  };
  refuses([](Golden& g) { g.setup.autocast = DType::bf16; });
  refuses([](Golden& g) { g.setup.dora = true; });
  refuses([](Golden& g) { g.setup.quantization = Quantization::eight_bit; });
  refuses([](Golden& g) { g.setup.ranks.sharding = Sharding::ddp; });
  refuses([](Golden& g) { g.spec.experts.count = 8; });
}

// The logits of the batch before are still there while the next ones are made.
TEST(LitGpt, AShortBatchBeforeALongOneTakesLess) {
  Golden golden = litgpt_rows().front();
  const int64_t same = estimate(golden.spec, golden.setup, golden.stack, golden.target).allocated_bytes;
  golden.setup.dropout = 0;
  golden.setup.lengths = {golden.setup.seq_len, 32};
  EXPECT_LE(estimate(golden.spec, golden.setup, golden.stack, golden.target).allocated_bytes, same);
}

}  // namespace
}  // namespace snug::eager
