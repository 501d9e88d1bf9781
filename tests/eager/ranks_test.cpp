// One rank among several, against PyTorch's allocator: tests/golden/eager_ranks.csv (tests/oracle/eager_ranks.py).

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "eager/support_goldens.h"

namespace snug::eager {
namespace {

std::vector<Golden> rows() { return read_goldens(SNUG_SOURCE_DIR "/tests/golden/eager_ranks.csv"); }

TEST(Ranks, EachTakesWhatPyTorchsAllocatorCounted) {
  int runs = 0, tenth = 0, reserved_one = 0;
  for (const Golden& golden : rows()) {
    const Plan plan = estimate(golden.spec, golden.setup, golden.stack, golden.target);
    const double allocated = error_of(plan.allocated_bytes, golden.allocated_bytes);
    const double reserved = error_of(plan.reserved_bytes, golden.reserved_bytes);
    ++runs;
    tenth += std::abs(allocated) <= 0.1 ? 1 : 0;
    reserved_one += std::abs(reserved) <= 1.0 ? 1 : 0;
    EXPECT_LE(std::abs(allocated), 1.0) << golden.name();
    if (std::abs(allocated) > 0.1 || std::abs(reserved) > 1.0)
      std::printf("allocated %+.3f %%, reserved %+.3f %%: %s\n", allocated, reserved, golden.name().c_str());
  }
  std::printf("%d ranks: allocated within 0.1 %%: %d; reserved within 1 %%: %d\n", runs, tenth, reserved_one);
  EXPECT_GE(runs, 242);
  EXPECT_GE(tenth, runs * 9 / 10);
  EXPECT_GE(reserved_one, runs * 9 / 10);
}

TEST(Ranks, WhatIsNotModelledIsRefusedByName) {
  int refused = 0;
  for (Golden golden : rows()) {
    if (golden.setup.ranks.sharding == Sharding::ddp) continue;
    const auto refuses = [&](auto change) {
      Golden other = golden;
      change(other.setup);
      EXPECT_THROW(estimate(other.spec, other.setup, other.stack, other.target), Error) << golden.name();
      ++refused;
    };
    refuses([](auto& setup) { setup.quantization = Quantization::eight_bit; });
    if (golden.setup.ranks.sharding == Sharding::zero3)
      refuses([](auto& setup) { setup.quantization = Quantization::four_bit; });
    refuses([](auto& setup) { setup.optimizer = Optimizer::adamw_8bit; });
  }
  EXPECT_GT(refused, 100);
}

// What is shared out by N is an Nth: weights, gradients and states, not activations.
TEST(Ranks, ManyHaveLessEach) {
  for (Golden golden : rows()) {
    if (golden.setup.ranks.sharding != Sharding::fsdp2) continue;
    int64_t before = 0;
    for (const int64_t count : {16, 8, 4, 2}) {
      golden.setup.ranks.count = count;
      golden.setup.ranks.number = 0;
      const int64_t bytes = estimate(golden.spec, golden.setup, golden.stack, golden.target).steady_bytes;
      EXPECT_GT(bytes, before) << golden.name();
      before = bytes;
    }
  }
}

}  // namespace
}  // namespace snug::eager
