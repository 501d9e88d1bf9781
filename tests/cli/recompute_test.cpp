// Recomputing blocks saves memory and changes nothing else.

#include <gtest/gtest.h>

#include "cli/support_workspace.h"
#include "families.h"

namespace snug::cli_tests {

namespace {

class Recompute : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(Recompute, recomputed_blocks_give_the_same_bits_as_kept_ones) {
  const auto& [method, bf16] = GetParam();
  const Workspace work;
  std::vector<std::string> keys = {"--method", method,        "--seq", "64",           "--batch", "2",    "--accum",
                                   "2",        "--max-steps", "8",     "--save-steps", "0",       "--lr", "2e-3"};
  if (method == "lora") keys = joined(keys, {"--lora-target-modules", "all-linear"});
  if (bf16) keys.emplace_back("--bf16");
  const ProcessResult kept = run_program(work.train(work / "kept", keys));
  ASSERT_EQ(kept.exit_code, 0) << kept.error;
  const std::vector<Json> metrics = read_metrics(work / "kept");
  EXPECT_LT(metrics.at(7)["loss"].get<double>(), metrics.at(0)["loss"].get<double>() + 0.5);
  const std::string weights = method == "lora" ? "adapter_model.safetensors" : "model.safetensors";
  for (const char* layers : {"", "1", "0,2", "2"}) {
    const auto output = work / (std::string("recomputed-") + layers);
    std::vector<std::string> more = {"--gradient-checkpointing"};
    if (*layers != '\0') more = joined(more, {"--checkpoint-layers", layers});
    const ProcessResult recomputed = run_program(work.train(output, joined(keys, more)));
    ASSERT_EQ(recomputed.exit_code, 0) << recomputed.error;
    EXPECT_EQ(step_lines(work / "kept"), step_lines(output)) << "layers " << layers;
    EXPECT_TRUE(contents(work / "kept" / weights) == contents(output / weights)) << "layers " << layers;
    EXPECT_TRUE(contents(work / "kept" / "checkpoint-8" / "optimizer.safetensors") ==
                contents(output / "checkpoint-8" / "optimizer.safetensors"))
        << "layers " << layers;
  }
}

INSTANTIATE_TEST_SUITE_P(of, Recompute, ::testing::Combine(::testing::Values("full", "lora"), ::testing::Bool()),
                         [](const auto& test) {
                           return std::get<0>(test.param) + (std::get<1>(test.param) ? "_bf16" : "_fp32");
                         });

TEST(RecomputeOfEveryFamily, gives_the_same_bits) {
  for (const auto& [name, config] : testing::thinned(test::families(300), 2)) {
    const Workspace work(config);
    for (const char* method : {"full", "lora"}) {
      std::vector<std::string> keys = {"--method", method,        "--seq", "64",   "--batch",
                                       "2",        "--max-steps", "3",     "--lr", "2e-3"};
      if (*method == 'l') keys = joined(keys, {"--lora-target-modules", "all-linear", "--bf16"});
      const ProcessResult kept = run_program(work.train(work / "kept", joined(keys, {"--overwrite-output-dir"})));
      ASSERT_EQ(kept.exit_code, 0) << name << kept.error;
      const ProcessResult again = run_program(
          work.train(work / "again",
                     joined(keys, {"--overwrite-output-dir", "--gradient-checkpointing", "--checkpoint-layers", "0,2,3"})));
      ASSERT_EQ(again.exit_code, 0) << name << again.error;
      const std::string weights = *method == 'l' ? "adapter_model.safetensors" : "model.safetensors";
      EXPECT_EQ(step_lines(work / "kept"), step_lines(work / "again")) << name << " " << method;
      EXPECT_TRUE(contents(work / "kept" / weights) == contents(work / "again" / weights)) << name << " " << method;
    }
  }
}

}  // namespace

}  // namespace snug::cli_tests
