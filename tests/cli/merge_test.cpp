// snug merge and snug export as a user calls them, on an adapter that snug trained.

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/support_workspace.h"
#include "formats/support_gguf.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

class Trained : public ::testing::Test {
 protected:
  Trained() {
    const ProcessResult run =
        run_program(work_.train(work_ / "adapter", {"--seq", "64", "--batch", "2", "--max-steps", "3", "--lr", "1e-2",
                                                    "--lora-target-modules", "all-linear"}));
    EXPECT_EQ(run.exit_code, 0) << run.error;
  }
  std::string at(const std::string& name) const { return (work_ / name).string(); }

  Workspace work_;
};

// One line that names the program and what is wrong.
void expect_refused(const ProcessResult& result, int code, const std::string& says) {
  EXPECT_EQ(result.exit_code, code) << result.error;
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  EXPECT_TRUE(result.error.starts_with("snug: ")) << result.error;
  EXPECT_NE(result.error.find(says), std::string::npos) << result.error;
}

TEST_F(Trained, AMergedModelEvaluatesAsTheAdapterDid) {
  const ProcessResult merged =
      run_program({"merge", at("adapter"), "--output-dir", at("merged")});  // the base is named there
  ASSERT_EQ(merged.exit_code, 0) << merged.error;
  EXPECT_NE(merged.output.find("tensors changed"), std::string::npos);
  EXPECT_EQ(unfinished(work_.path()), std::vector<std::string>());
  const auto loss_of = [&](std::vector<std::string> words, const std::string& output) {
    words = joined(words, {"--data", work_.data().string(), "--eval-on-start", "--eval-data", work_.data().string(), "--seq",
                           "64", "--batch", "2", "--max-steps", "1", "--output-dir", at(output), "--threads", "2"});
    const ProcessResult run = run_program(words);
    EXPECT_EQ(run.exit_code, 0) << run.error;
    return read_metrics(at(output)).front()["eval_loss"].get<double>();  // before the first step
  };
  const double with_adapter = loss_of(
      {"train", work_.model().string(), "--adapter-name-or-path", at("adapter"), "--lora-target-modules", "all-linear"},
      "a");
  const double of_merged = loss_of({"train", at("merged")}, "b");
  const double of_base = loss_of({"train", work_.model().string()}, "c");
  EXPECT_NEAR(of_merged, with_adapter, 1e-5 * with_adapter);
  EXPECT_GT(std::abs(of_base - with_adapter), 1e-2);
}

TEST_F(Trained, AModelAndAnAdapterAreExported) {
  const ProcessResult model =
      run_program({"export", work_.model().string(), "--adapter", at("adapter"), "--gguf", at("m.gguf"), "--outtype=f16"});
  ASSERT_EQ(model.exit_code, 0) << model.error;
  EXPECT_EQ(GgufReader(at("m.gguf")).read().keys.at("general.architecture"), "llama");
  const ProcessResult adapter = run_program({"export", at("adapter"), "--gguf", at("a.gguf")});
  ASSERT_EQ(adapter.exit_code, 0) << adapter.error;
  EXPECT_EQ(GgufReader(at("a.gguf")).read().keys.at("adapter.type"), "lora");
}

TEST_F(Trained, MistakesAreRefusedInOneLine) {
  const std::string model = work_.model().string(), adapter = at("adapter");
  expect_refused(run_program({"merge"}), 2, "which adapter?");
  expect_refused(run_program({"merge", adapter}), 2, "--output-dir");
  expect_refused(run_program({"merge", adapter, "--output"}), 2, "--output");
  expect_refused(run_program({"merge", at("nothing"), "--output-dir", at("x")}), 1, "adapter_config.json");
  expect_refused(run_program({"merge", model, "--output-dir", at("x")}), 1, "adapter_config.json");
  expect_refused(run_program({"merge", adapter, "--model", at("nothing"), "--output-dir", at("x")}), 1, "nothing");
  expect_refused(run_program({"merge", adapter, "--output-dir", model}), 1, "holds what is to be merged");
  expect_refused(run_program({"merge", adapter, "--output-dir", at("x"), "--max-shard-size", "0B"}), 1, "shard");
  expect_refused(run_program({"merge", adapter, "--output-dir", "/proc/x"}), 1, "/proc");
  expect_refused(run_program({"export"}), 2, "what?");
  expect_refused(run_program({"export", model}), 2, "--gguf");
  expect_refused(run_program({"export", model, "--gguf", at("x"), "--outtype", "q4"}), 2, "q8_0");
  expect_refused(run_program({"export", model, "--gguf", work_.path().string()}), 1, "is a directory");
  expect_refused(run_program({"export", at("nothing"), "--gguf", at("x")}), 1, "config.json");
  expect_refused(run_program({"export", model, "--gguf", "/dev/full/x"}), 1, "/dev/full");
  EXPECT_FALSE(fs::exists(at("x")));
}

TEST_F(Trained, AFullDiskLeavesNothing) {
  ProcessOptions small;
  small.limits = {{RLIMIT_FSIZE, 20000}};
  const ProcessResult result = run_program({"merge", at("adapter"), "--output-dir", at("merged")}, small);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_FALSE(fs::exists(at("merged")));
}

}  // namespace

}  // namespace snug::cli_tests
