// Full fine-tuning with 8-bit optimizer states: losses of 50 steps against bitsandbytes' own optimizers (golden:
// tests/oracle/make_8bit_losses.py).

#include <gtest/gtest.h>

#include <cmath>

#include "train/support_golden.h"

namespace snug::testing {

namespace {

using Json = nlohmann::json;

class EightBitLosses : public ::testing::TestWithParam<Optimizer> {};

TEST_P(EightBitLosses, of_50_steps_are_within_a_percent_of_bitsandbytes) {
  const bool lion = GetParam() == Optimizer::lion_8bit;
  const auto directory = golden_directory("qlora_online");
  const Json steps = read_json(directory / "batch.json")["steps"];
  const Json truth = read_json(golden_directory("losses_8bit.json"))[lion ? "lion_8bit" : "adamw_8bit"];
  Recipe recipe;
  recipe.method = Method::full;
  recipe.optim = GetParam();
  recipe.max_grad_norm = 1.0;
  GoldenRun run(directory, recipe, steps[0]["micro_batches"]);
  run.load();
  double worst = 0;
  ASSERT_EQ(truth["losses"].size(), 50U);
  for (size_t step = 0; step < 50; ++step) {
    const double loss = run.forward_backward(steps[step % steps.size()]["micro_batches"]);
    const double expected = truth["losses"][step].get<double>();
    worst = std::max(worst, std::abs(loss - expected) / expected);
    run.update(truth["learning_rate"].get<double>(), static_cast<int64_t>(step) + 1);
  }
  EXPECT_LE(worst, 0.01);
  EXPECT_GT(worst, 0.0);  // the two quantize differently: losses that agree to the bit would be one and the same run
  RecordProperty("worst_step", std::to_string(worst));
  std::printf("worst step %.5f\n", worst);
}

INSTANTIATE_TEST_SUITE_P(of, EightBitLosses, ::testing::Values(Optimizer::adamw_8bit, Optimizer::lion_8bit),
                         [](const auto& test) { return test.param == Optimizer::lion_8bit ? "lion" : "adamw"; });

}  // namespace

}  // namespace snug::testing
