// Recipes of other trainers, handed to plan, fit and train as they are.

#include <gtest/gtest.h>

#include <fstream>

#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

class ForeignRecipe : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/snug-foreign-XXXXXX";
    directory_ = mkdtemp(pattern);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
    return (directory_ / name).string();
  }

  fs::path directory_;
};

const std::string kAxolotl =
    "base_model: Qwen/Qwen2.5-0.5B\nadapter: lora\nlora_r: 8\nlora_target_linear: true\nsequence_len: "
    "256\nmicro_batch_size: 2\n"
    "datasets:\n  - path: some/data\n    type: alpaca\n";

TEST_F(ForeignRecipe, IsPlannedWithItsOwnDefaultsAndNamed) {
  const auto result = run_program({"plan", file("r.yml", kAxolotl + "relora: true\n"), "--gpu", "RTX 4090", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("r.yml: axolotl recipe; touch memory and are not planned: relora"), std::string::npos)
      << result.error;
  EXPECT_NE(result.output.find("\"packing\": \"false\""), std::string::npos) << result.output.substr(0, 2000);
  EXPECT_NE(result.output.find("\"max_length\": \"256\""), std::string::npos);
}

TEST_F(ForeignRecipe, FlagsChangeWhatTheFileSays) {
  const auto result =
      run_program({"plan", file("r.yml", kAxolotl), "--gpu", "RTX 4090", "--per-device-train-batch-size", "4", "--json"});
  EXPECT_NE(result.output.find("\"per_device_train_batch_size\": \"4\""), std::string::npos);
}

TEST_F(ForeignRecipe, AScriptAndAJsonAreRecipesToo) {
  const std::string script =
      "swift sft --model unsloth/Llama-3.2-1B-Instruct-bnb-4bit --train_type lora --dataset a/b --max_length 128 "
      "--quant_bits 4\n";
  EXPECT_EQ(run_program({"plan", file("train.sh", script), "--gpu", "RTX 4090"}).exit_code, 0);
  const std::string json =
      "{\"model\": \"Qwen/Qwen2.5-0.5B\", \"tuner_type\": \"lora\", \"dataset\": [\"a/b\"], \"max_length\": 128}\n";
  EXPECT_EQ(run_program({"plan", file("args.json", json), "--gpu", "RTX 4090"}).exit_code, 0);
  const auto none = run_program({"plan", file("other.sh", "echo hello\n")});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.error.find("no command of the script trains a model"), std::string::npos);
}

TEST_F(ForeignRecipe, FitTakesIt) {
  const auto result = run_program({"fit", file("r.yml", kAxolotl), "--gpu", "RTX 4090"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("axolotl recipe"), std::string::npos);
}

TEST_F(ForeignRecipe, TrainRefusesByNameWhatItCannotDo) {
  const std::string data = file("data.jsonl", "{\"text\": \"a\"}\n");
  const auto result = run_program({"train", file("r.yml", kAxolotl + "relora: true\nmine: 1\n"), "--data", data});
  EXPECT_EQ(result.exit_code, 1);
  for (const char* part : {"snug: relora: ", "snug: mine: not known", "this axolotl recipe asks for what snug does not do"})
    EXPECT_NE(result.error.find(part), std::string::npos) << part << "\n" << result.error;
  EXPECT_EQ(result.error.find("datasets: "), std::string::npos) << result.error;
}

}  // namespace

}  // namespace snug::cli_tests
