// snug quantize as a user calls it: what it writes trains as the model does that is quantized while it loads, to the bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "cli/support_workspace.h"
#include "families.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

struct Way {
  const char* name;
  std::vector<std::string> quantize, train;
};

class Quantized : public ::testing::TestWithParam<Way> {};

TEST_P(Quantized, TrainsAsTheModelThatIsQuantizedWhileItLoads) {
  const Workspace work;
  const std::string model = work.model().string(), made = (work / "made").string();
  const ProcessResult done =
      run_program(joined({"quantize", model, "--output-dir", made, "--max-shard-size", "30000B"}, GetParam().quantize));
  ASSERT_EQ(done.exit_code, 0) << done.error;
  EXPECT_NE(done.output.find("tensors quantized to"), std::string::npos);
  EXPECT_EQ(unfinished(work.path()), std::vector<std::string>());
  const auto steps_of = [&](const std::string& from, const std::string& output) {
    const std::vector<std::string> words = {"train",
                                            from,
                                            "--data",
                                            work.data().string(),
                                            "--eval-on-start",
                                            "--eval-data",
                                            work.data().string(),
                                            "--seq",
                                            "64",
                                            "--batch",
                                            "2",
                                            "--max-steps",
                                            "3",
                                            "--lr",
                                            "1e-2",
                                            "--lora-target-modules",
                                            "all-linear",
                                            "--threads",
                                            "2",
                                            "--output-dir",
                                            (work / output).string()};
    const ProcessResult run = run_program(joined(words, GetParam().train));
    EXPECT_EQ(run.exit_code, 0) << run.error;
    return read_metrics(work / output).front()["eval_loss"].dump() + step_lines(work / output).back();
  };
  EXPECT_EQ(steps_of(made, "a"), steps_of(model, "b"));
  EXPECT_EQ(contents(work / "a/adapter_model.safetensors"), contents(work / "b/adapter_model.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Ways, Quantized,
                         ::testing::Values(Way{"nf4", {}, {"--load-in-4bit", "--bnb-4bit-use-double-quant", "true"}},
                                           Way{"fp4",
                                               {"--bnb-4bit-quant-type", "fp4", "--bnb-4bit-use-double-quant", "false"},
                                               {"--load-in-4bit", "--bnb-4bit-quant-type", "fp4",
                                                "--bnb-4bit-use-double-quant", "false"}},
                                           Way{"int8", {"--load-in-8bit"}, {"--load-in-8bit"}}),
                         [](const auto& test) { return std::string(test.param.name); });

// One line that names the program and what is wrong.
void expect_refused(const std::vector<std::string>& words, int code, const std::string& says) {
  const ProcessResult result = run_program(words);
  EXPECT_EQ(result.exit_code, code) << result.error;
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  EXPECT_TRUE(result.error.starts_with("snug: ")) << result.error;
  EXPECT_NE(result.error.find(says), std::string::npos) << result.error;
}

TEST(Quantize, MistakesAreRefusedInOneLine) {
  const Workspace work;
  const std::string model = work.model().string(), out = (work / "out").string();
  expect_refused({"quantize"}, 2, "which model?");
  expect_refused({"quantize", model}, 2, "--output-dir");
  expect_refused({"quantize", model, "--output-dir", out, "--bnb-4bit-quant-type", "int4"}, 2, "nf4 or fp4");
  expect_refused({"quantize", model, "--output-dir", out, "--bnb-4bit-use-double-quant", "yes"}, 2, "true or false");
  expect_refused({"quantize", model, "--output-dir", out, "--load-in-8bit", "--bnb-4bit-quant-type", "nf4"}, 2,
                 "choose one");
  expect_refused({"quantize", model, "--output-dir", out, "--max-shard-size", "0B"}, 1, "shard");
  expect_refused({"quantize", (work / "nothing").string(), "--output-dir", out}, 1, "nothing");
  expect_refused({"quantize", model, "--output-dir", model}, 1, "holds what is to be quantized");
  expect_refused({"quantize", model, "--output-dir", "/proc/x"}, 1, "/proc");
  EXPECT_FALSE(fs::exists(out));
}

TEST(Quantize, AFullDiskLeavesNothing) {
  const Workspace work;
  ProcessOptions small;
  small.limits = {{RLIMIT_FSIZE, 20000}};
  const ProcessResult result =
      run_program({"quantize", work.model().string(), "--output-dir", (work / "out").string()}, small);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_FALSE(fs::exists(work / "out"));
}

// Every family's tensors: fused, turned, stacked and tied ones.
TEST(Init, WritesTheCodesThatQuantizeMakesOfTheNumbers) {
  const std::pair<std::vector<std::string>, std::vector<std::string>> ways[] = {
      {{"--load-in-4bit"}, {}},
      {{"--load-in-4bit", "--bnb-4bit-quant-type", "fp4", "--bnb-4bit-use-double-quant", "false"},
       {"--bnb-4bit-quant-type", "fp4", "--bnb-4bit-use-double-quant", "false"}},
      {{"--load-in-8bit"}, {"--load-in-8bit"}}};
  size_t first = 0;
  for (const auto& [name, config] : test::families(300)) {
    const Workspace work(config);
    // Under a sanitizer each family and each way, not each of both.
    const std::span tried = testing::kSanitized ? std::span(ways).subspan(first++ % std::size(ways), 1) : std::span(ways);
    for (const auto& [init, quantize] : tried) {
      SCOPED_TRACE(name + " " + init.back());
      const std::string numbers = (work / "numbers").string(), codes = (work / "codes").string(),
                        direct = (work / "direct").string();
      const std::vector<std::string> words = {"init", work.outline().string(), "--bf16", "--seed", "7", "--output-dir"};
      for (const std::string& old : {numbers, codes, direct}) fs::remove_all(old);
      ASSERT_EQ(run_program(joined(words, {numbers})).exit_code, 0);
      ASSERT_EQ(run_program(joined({"quantize", numbers, "--output-dir", codes}, quantize)).exit_code, 0);
      const ProcessResult made = run_program(joined(joined(words, {direct}), init));
      ASSERT_EQ(made.exit_code, 0) << made.error;
      EXPECT_TRUE(contents(fs::path(codes) / "model.safetensors") == contents(fs::path(direct) / "model.safetensors"));
      EXPECT_EQ(Json::parse(contents(fs::path(codes) / "config.json")),
                Json::parse(contents(fs::path(direct) / "config.json")));
      EXPECT_EQ(unfinished(work.path()), std::vector<std::string>());
    }
  }
}

}  // namespace

}  // namespace snug::cli_tests
