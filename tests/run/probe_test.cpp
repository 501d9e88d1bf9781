#include "run/probe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

namespace snug::testing {

namespace {

// Samples of a machine with known rates, over shapes from small to large.
std::vector<CostSample> samples_of(CostClass cost_class, double flops_rate, double bytes_rate, double start) {
  std::vector<CostSample> samples;
  for (const double rows : {32.0, 64.0, 256.0, 1024.0})
    for (const double cols : {64.0, 576.0, 2048.0}) {
      const double flops = 2 * rows * cols * 576, bytes = 4 * (rows * cols + cols * 576 + rows * 576);
      samples.push_back({cost_class, flops, bytes, flops / flops_rate + bytes / bytes_rate + start});
    }
  return samples;
}

TEST(Probe, the_rates_of_a_known_machine_are_found_again) {
  std::vector<CostSample> samples = samples_of(CostClass::product_fp32, 2e11, 1e10, 3e-6);
  for (const CostSample& sample : samples_of(CostClass::attention_half, 5e10, 4e9, 0)) samples.push_back(sample);
  const CostModel model = fit_rates(samples, nominal_cpu_rates(1));
  EXPECT_NEAR(model.rate(CostClass::product_fp32).flops / 2e11, 1, 1e-6);
  EXPECT_NEAR(model.rate(CostClass::product_fp32).bytes / 1e10, 1, 1e-6);
  EXPECT_NEAR(model.rate(CostClass::product_fp32).seconds / 3e-6, 1, 1e-4);
  EXPECT_NEAR(model.rate(CostClass::attention_half).flops / 5e10, 1, 1e-6);
  EXPECT_NEAR(model.rate(CostClass::attention_half).seconds, 0, 1e-9);
  EXPECT_EQ(model.rate(CostClass::rows).bytes, nominal_cpu_rates(1).rate(CostClass::rows).bytes);  // no samples
}

TEST(Probe, no_rate_is_negative_where_large_ops_run_faster_than_small_ones) {
  std::vector<CostSample> samples = samples_of(CostClass::product_fp32, 2e11, 1e10, 0);
  for (CostSample& sample : samples)
    if (sample.flops > 1e8) sample.seconds /= 3;
  const CostRate rate = fit_rates(samples, nominal_cpu_rates(1)).rate(CostClass::product_fp32);
  EXPECT_GE(rate.flops, 0);
  EXPECT_GE(rate.bytes, 0);
  EXPECT_GE(rate.seconds, 0);
  EXPECT_GT(rate.flops + rate.bytes, 0);
}

TEST(Probe, samples_that_are_all_alike_still_tell_their_time) {
  const std::vector<CostSample> samples(5, {CostClass::dropout, 1e6, 4e6, 2e-3});
  const CostRate rate = fit_rates(samples, nominal_cpu_rates(1)).rate(CostClass::dropout);
  const double seconds = rate.seconds + (rate.flops > 0 ? 1e6 / rate.flops : 0) + (rate.bytes > 0 ? 4e6 / rate.bytes : 0);
  EXPECT_NEAR(seconds, 2e-3, 1e-9);
}

}  // namespace

}  // namespace snug::testing
