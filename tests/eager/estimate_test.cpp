#include "eager/estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "eager/support_goldens.h"

namespace snug::eager {
namespace {

// How far the model is from PyTorch's allocator over the whole table.
struct Rates {
  int rows = 0, allocated_tenth = 0, allocated_half = 0, reserved_one = 0, reserved_three = 0, phases = 0;
  double share(int count) const { return static_cast<double>(count) / rows; }
};

Rates measure_rates(const std::string& table) {
  Rates rates;
  for (const Golden& golden : read_goldens(SNUG_SOURCE_DIR "/tests/golden/" + table)) {
    const Plan plan = estimate(golden.spec, golden.setup, golden.stack, golden.target);
    const double allocated = std::abs(error_of(plan.allocated_bytes, golden.allocated_bytes));
    const double reserved = std::abs(error_of(plan.reserved_bytes, golden.reserved_bytes));
    const bool same_phase = golden.phase == kPhaseNames[static_cast<size_t>(plan.phase)];
    ++rates.rows;
    rates.allocated_tenth += allocated <= 0.1 ? 1 : 0;
    rates.allocated_half += allocated <= 0.5 ? 1 : 0;
    rates.reserved_one += reserved <= 1.0 ? 1 : 0;
    rates.reserved_three += reserved <= 3.0 ? 1 : 0;
    rates.phases += same_phase ? 1 : 0;
    if (allocated > 0.5 || reserved > 3.0 || !same_phase)
      std::printf("allocated %+.3f %%, reserved %+.3f %%, %s: %s\n", error_of(plan.allocated_bytes, golden.allocated_bytes),
                  error_of(plan.reserved_bytes, golden.reserved_bytes), same_phase ? "same phase" : "other phase",
                  golden.name().c_str());
  }
  std::printf("%d runs: allocated within 0.1 %%: %d, 0.5 %%: %d; reserved within 1 %%: %d, 3 %%: %d; phase: %d\n",
              rates.rows, rates.allocated_tenth, rates.allocated_half, rates.reserved_one, rates.reserved_three,
              rates.phases);
  return rates;
}

TEST(Estimate, IsWhatPyTorchsAllocatorCounted) {
  const Rates rates = measure_rates("eager.csv");
  EXPECT_GE(rates.rows, 200);
  EXPECT_GE(rates.share(rates.allocated_tenth), 0.97);
  EXPECT_GE(rates.share(rates.allocated_half), 0.99);
  EXPECT_GE(rates.share(rates.reserved_one), 0.98);
  EXPECT_GE(rates.reserved_three, rates.rows - 1);  // 3.5 %, flash attention with torch 2.4
  EXPECT_EQ(rates.phases, rates.rows);
}

// Families whose blocks differ from Llama's (eager_goldens.py --families).
TEST(Estimate, IsWhatPyTorchsAllocatorCountedForOtherFamilies) {
  const Rates rates = measure_rates("eager_families.csv");
  EXPECT_GE(rates.rows, 335);
  EXPECT_EQ(rates.allocated_half, rates.rows);
  EXPECT_GE(rates.share(rates.allocated_tenth), 0.95);
  EXPECT_GE(rates.share(rates.reserved_three), 0.97);
  EXPECT_EQ(rates.phases, rates.rows);
}

// Qwen 3.5 where flash-linear-attention is installed (eager_goldens.py --fla). One run in fp32 reserves a sixth more.
TEST(Estimate, IsWhatPyTorchsAllocatorCountedOfFusedDeltaRules) {
  const Rates rates = measure_rates("eager_fla.csv");
  EXPECT_GE(rates.rows, 30);
  EXPECT_EQ(rates.allocated_tenth, rates.rows);
  EXPECT_GE(rates.reserved_one, rates.rows - 1);
  EXPECT_EQ(rates.phases, rates.rows);
}

// Qwen 1, by its own modeling_qwen.py under transformers 4.48; flash attention is a stand-in that allocates what flash-attn
// does. Eight of the runs were made before the model was compared for the first time.
TEST(Estimate, IsWhatPyTorchsAllocatorCountedForQwen1) {
  const Rates rates = measure_rates("eager_qwen.csv");
  EXPECT_GE(rates.rows, 14);
  EXPECT_GE(rates.allocated_tenth, 13);
  EXPECT_GE(rates.reserved_one, 13);
  EXPECT_EQ(rates.phases, rates.rows);
}

// Embeddings and heads that are trained whole beside an adapter (eager_goldens.py --saved).
TEST(Estimate, IsWhatPyTorchsAllocatorCountedOfSavedModules) {
  const Rates rates = measure_rates("eager_saved.csv");
  EXPECT_GE(rates.rows, 24);
  EXPECT_EQ(rates.allocated_half, rates.rows);
  EXPECT_GE(rates.share(rates.allocated_tenth), 0.95);
  EXPECT_GE(rates.share(rates.reserved_three), 0.97);
  EXPECT_EQ(rates.phases, rates.rows);
}

// Liger's kernels, on both stacks (eager_goldens.py --liger).
TEST(Estimate, IsWhatPyTorchsAllocatorCountedOfLigersKernels) {
  const Rates rates = measure_rates("eager_liger.csv");
  EXPECT_GE(rates.rows, 62);
  EXPECT_EQ(rates.allocated_half, rates.rows);
  EXPECT_GE(rates.share(rates.allocated_tenth), 0.95);
  EXPECT_GE(rates.share(rates.reserved_three), 0.97);
  EXPECT_EQ(rates.phases, rates.rows);
}

// An H100 itself, with versions between the two that the null device knows (scripts/measure_torch.py).
TEST(Estimate, IsWhatPyTorchsAllocatorCountedOnARealCard) {
  const Rates rates = measure_rates("eager_card.csv");
  EXPECT_GE(rates.rows, 140);
  EXPECT_EQ(rates.allocated_half, rates.rows);
  EXPECT_EQ(rates.reserved_three, rates.rows);
  EXPECT_EQ(rates.phases, rates.rows);
}

// An H200 and two H100s, whole models and settings drawn at random (--set drawn). Before they
// ran the model was as it is, but for one of the first H100's (Phi-3's rotations, -1.2 %).
TEST(Estimate, IsWhatPyTorchsAllocatorCountedOfRunsDrawnAtRandomOnARealCard) {
  const Rates rates = measure_rates("eager_card_drawn.csv");
  EXPECT_EQ(rates.rows, 160);
  EXPECT_EQ(rates.allocated_half, rates.rows);
  EXPECT_GE(rates.reserved_three, rates.rows - 1);  // 4.6 % too much
  EXPECT_EQ(rates.phases, rates.rows);
}

// Versions between: torch 2.8 with transformers 4.56, and torch 2.12 to 2.14 with 5.17.
TEST(Estimate, IsWhatPyTorchsAllocatorCountedOfVersionsBetween) {
  const Rates rates = measure_rates("eager_between.csv");
  EXPECT_GE(rates.rows, 118);
  EXPECT_EQ(rates.allocated_half, rates.rows);
  EXPECT_GE(rates.share(rates.allocated_tenth), 0.97);
  EXPECT_GE(rates.reserved_three, rates.rows - 2);
  EXPECT_EQ(rates.phases, rates.rows);
}

// Runs that evaluate after each step (eager_goldens.py --evaluation).
TEST(Estimate, IsWhatPyTorchsAllocatorCountedOfRunsThatEvaluate) {
  const Rates rates = measure_rates("eager_evaluation.csv");
  EXPECT_GE(rates.rows, 60);
  EXPECT_EQ(rates.allocated_half, rates.rows);
  EXPECT_GE(rates.share(rates.allocated_tenth), 0.97);
  EXPECT_GE(rates.share(rates.reserved_one), 0.97);
  EXPECT_EQ(rates.phases, rates.rows);
}

// Mixtures of experts by grouped products, peft's adapters of experts among them (eager_goldens.py --experts).
TEST(Estimate, IsWhatPyTorchsAllocatorCountedOfExperts) {
  const Rates rates = measure_rates("eager_experts.csv");
  EXPECT_GE(rates.rows, 50);
  EXPECT_EQ(rates.allocated_tenth, rates.rows);
  EXPECT_EQ(rates.reserved_one, rates.rows);
  EXPECT_EQ(rates.phases, rates.rows);
}

TEST(Estimate, IsWhatPyTorchsAllocatorCountedOfExpertsThatRanksShare) {
  const Rates rates = measure_rates("eager_experts_ranks.csv");
  EXPECT_GE(rates.rows, 6);
  EXPECT_EQ(rates.allocated_tenth, rates.rows);
  EXPECT_EQ(rates.reserved_three, rates.rows);
  EXPECT_EQ(rates.phases, rates.rows);
}

// One rank among others too.
TEST(Estimate, TheEvaluationsOwnPeakIsWhatPyTorchsAllocatorCounted) {
  for (const char* table : {"eager_evaluation.csv", "eager_evaluation_ranks.csv"})
    for (const Golden& golden : read_goldens(SNUG_SOURCE_DIR "/tests/golden/" + std::string(table))) {
      const Plan plan = estimate(golden.spec, golden.setup, golden.stack, golden.target);
      const int64_t planned = plan.phases[static_cast<size_t>(Phase::evaluate)].allocated_bytes;
      EXPECT_LE(std::abs(error_of(planned, std::stoll(golden.cells.at("evaluate")))), 0.1) << golden.name();
      EXPECT_LE(std::abs(error_of(plan.allocated_bytes, golden.allocated_bytes)), 0.1) << golden.name();
      EXPECT_LE(std::abs(error_of(plan.reserved_bytes, golden.reserved_bytes)), 1.0) << golden.name();
    }
}

Golden any_golden() { return read_goldens(SNUG_SOURCE_DIR "/tests/golden/eager.csv").front(); }

TEST(Estimate, TellsWhatEachByteAtThePeakIsFor) {
  const Golden golden = any_golden();
  const Plan plan = estimate(golden.spec, golden.setup, golden.stack, golden.target);
  int64_t sum = 0;
  for (const int64_t bytes : plan.breakdown) sum += bytes;
  EXPECT_EQ(sum, plan.allocated_bytes);
  EXPECT_LE(plan.allocated_bytes, plan.reserved_bytes);
  EXPECT_LE(plan.steady_bytes, plan.allocated_bytes);
  EXPECT_LE(plan.reserved_bytes, plan.device_low_bytes);
  EXPECT_LE(plan.device_low_bytes, plan.device_high_bytes);
}

// Where experts are a loop, sizes are what the router sends to each; peft's wrapper of experts has no dropout.
TEST(Estimate, ExpertsWhoseSizesDependOnTheRouterAreRefused) {
  Golden golden = read_goldens(SNUG_SOURCE_DIR "/tests/golden/eager_experts.csv").front();
  const auto refused = [&](const StackProfile& stack) {
    EXPECT_THROW(estimate(golden.spec, golden.setup, stack, golden.target), std::exception);
  };
  refused(stack_profile("2.4.1", "4.48.1"));
  refused(stack_profile("2.8.0", "5.23.0"));
  golden.setup.targets = {"all-linear"};
  refused(stack_profile("2.15.0", "5.23.0", "0.20.0"));
  golden.setup.dropout = 0.1;
  refused(golden.stack);
  golden.setup.targets = {"q_proj"};
  EXPECT_GT(estimate(golden.spec, golden.setup, golden.stack, golden.target).allocated_bytes, 0);
}

TEST(Estimate, ASmallCardRunsOut) {
  Golden golden = any_golden();
  golden.target.memory_bytes = int64_t{256} << 20U;
  const Plan plan = estimate(golden.spec, golden.setup, golden.stack, golden.target);
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(plan.allocated_bytes, estimate(golden.spec, golden.setup, golden.stack, {}).allocated_bytes);
}

TEST(Estimate, AModelThatIsNotCoveredIsRefusedByName) {
  Golden golden = any_golden();
  golden.spec.experts.count = 8;
  EXPECT_THROW(estimate(golden.spec, golden.setup, golden.stack, golden.target), std::exception);
}

// What the device may show beside PyTorch's allocator: all kernels at once before torch 2.1, NCCL's buffers of several
// ranks.
TEST(Estimate, TheDeviceMayShowMoreOfOldReleasesAndOfSeveralRanks) {
  Golden golden = any_golden();
  const auto beside = [&] {
    const Plan plan = estimate(golden.spec, golden.setup, golden.stack, {});
    return plan.device_high_bytes - plan.reserved_bytes;
  };
  EXPECT_EQ(beside(), Target{}.context_most_bytes);
  golden.stack.kernels_may_load_at_once = true;
  EXPECT_EQ(beside(), int64_t{1343} << 20U);
  golden.setup.ranks.count = 2;
  golden.setup.ranks.sharding = Sharding::ddp;
  EXPECT_EQ(beside(), (int64_t{1343 + 1464} << 20U) - Target{}.context_least_bytes);
  golden.stack.kernels_may_load_at_once = false;
  EXPECT_EQ(beside(), int64_t{1464} << 20U);
}

TEST(Estimate, Qwen1WithoutFlashAttentionIsRefused) {
  Golden golden = any_golden();
  golden.spec.family = "qwen";
  EXPECT_THROW(estimate(golden.spec, golden.setup, golden.stack, golden.target), std::exception);
}

// tuners/lora/layer.py: fp32, then the dtype of the weight, then fp32 again.
TEST(StackProfile, AdaptersFollowWeightsInBetween) {
  EXPECT_FALSE(stack_profile("2.0.1", "4.32.0", "0.5.0").adapters_follow_weights);
  EXPECT_TRUE(stack_profile("2.1.1", "4.36.0", "0.7.1").adapters_follow_weights);
  EXPECT_FALSE(stack_profile("2.4.1", "4.48.1", "0.13.2").adapters_follow_weights);
  EXPECT_TRUE(stack_profile("2.0.1").kernels_may_load_at_once);
  EXPECT_FALSE(stack_profile("2.1.1").kernels_may_load_at_once);
}

TEST(StackProfile, AdamWCopiesItsRootsBeforeTorch21) {
  EXPECT_TRUE(stack_profile("2.0.1").adamw_copies_roots);
  EXPECT_FALSE(stack_profile("2.1.0").adamw_copies_roots);
}

TEST(StackProfile, OrdersVersions) {
  EXPECT_LT(version_number("2.4.1"), version_number("2.15.0"));
  EXPECT_LT(version_number("4.48"), version_number("4.48.1"));
  EXPECT_THROW(version_number("latest"), std::exception);
}

}  // namespace
}  // namespace snug::eager
