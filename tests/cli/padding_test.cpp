// Without packing, rows run in Programs as long as their bucket, all in the arena of the longest.

#include <gtest/gtest.h>

#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

// Rows of 1 to `longest` letters: as many tokens, and one for the end.
std::string rows_up_to(int longest, int step) {
  std::string text;
  for (int length = 1; length <= longest; length += step) {
    text += R"({"text": ")";
    for (int i = 0; i < length; ++i) text += static_cast<char>('a' + (i * i + length) % 26);
    text += "\"}\n";
  }
  return text;
}

class Padded : public ::testing::TestWithParam<const char*> {};

// The shorter plan holds the longest row exactly; in the longer one every row runs in a bucket. Both evaluate too.
TEST_P(Padded, the_same_rows_give_the_same_bits_whatever_max_length_would_hold) {
  const Workspace work;
  put(work.data(), rows_up_to(190, 7));
  std::vector<std::string> keys = {"--packing",    "false", "--batch",    "2",    "--accum",      "2",
                                   "--max-steps",  "9",     "--lr",       "2e-3", "--save-steps", "0",
                                   "--eval-steps", "4",     "--val-size", "5",    "--method",     GetParam()};
  if (std::string_view(GetParam()) == "lora") keys.emplace_back("--bf16");
  std::vector<std::vector<std::string>> lines;
  std::string said;
  for (const char* length : {"192", "256"}) {
    const ProcessResult run = run_program(work.train(work / length, joined(keys, {"--max-length", length})));
    ASSERT_EQ(run.exit_code, 0) << run.error;
    lines.push_back(step_lines(work / length));
    said = run.output + run.error;
  }
  EXPECT_NE(said.find("padded to 64 ("), std::string::npos) << said;
  EXPECT_GE(lines[0].size(), 12U);
  EXPECT_EQ(lines[0], lines[1]);
  const char* weights = std::string_view(GetParam()) == "lora" ? "adapter_model.safetensors" : "model.safetensors";
  EXPECT_TRUE(contents(work / "192" / weights) == contents(work / "256" / weights));
}

INSTANTIATE_TEST_SUITE_P(of, Padded, ::testing::Values("full", "lora"), [](const auto& test) { return test.param; });

TEST(SeveralFiles, train_as_one_after_the_other) {
  const Workspace work;
  const std::string rows = text_rows(60, 3);
  const size_t cut = rows.find('\n', rows.size() / 3) + 1;
  put(work.data(), rows);
  put(work / "a.jsonl", rows.substr(0, cut));
  put(work / "b.jsonl", rows.substr(cut));
  put(work / "several.yaml", "data: [" + (work / "a.jsonl").string() + ", " + (work / "b.jsonl").string() + "]\n");
  const std::vector<std::string> keys = {"--seq", "64", "--max-steps", "4", "--save-steps", "0"};
  ASSERT_EQ(run_program(work.train(work / "one", keys)).exit_code, 0);
  const ProcessResult several =
      run_program(joined({"train", (work / "several.yaml").string(), "--model", work.model().string(), "--threads", "2",
                          "--output-dir", (work / "several").string()},
                         keys));
  ASSERT_EQ(several.exit_code, 0) << several.error;
  EXPECT_TRUE(contents(work / "one" / "adapter_model.safetensors") ==
              contents(work / "several" / "adapter_model.safetensors"));
  EXPECT_NE(contents(work / "several" / "README.md").find("a.jsonl, b.jsonl"), std::string::npos);
}

TEST(PaddedRun, stopped_and_resumed_it_ends_with_the_same_bits) {
  const Workspace work;
  put(work.data(), rows_up_to(190, 7));
  const std::vector<std::string> keys = {"--packing", "false", "--batch",     "2", "--max-length", "256",
                                         "--lr",      "2e-3",  "--max-steps", "8", "--save-steps", "3"};
  ASSERT_EQ(run_program(work.train(work / "whole", keys)).exit_code, 0);
  ASSERT_EQ(run_program(work.train(work / "parts", keys)).exit_code, 0);
  std::filesystem::remove_all(work / "parts" / "checkpoint-8");
  std::filesystem::remove_all(work / "parts" / "checkpoint-6");
  std::filesystem::remove(work / "parts" / "adapter_model.safetensors");
  const ProcessResult again = run_program(work.train(work / "parts", joined(keys, {"--resume-from-checkpoint"})));
  ASSERT_EQ(again.exit_code, 0) << again.error;
  EXPECT_TRUE(contents(work / "whole" / "adapter_model.safetensors") ==
              contents(work / "parts" / "adapter_model.safetensors"));
}

}  // namespace

}  // namespace snug::cli_tests
