// What else the planner says, as a user meets it: the textbook, the device map, notes.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/support_process.h"
#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

using Parsed = nlohmann::json;

TEST(PlanTextbook, a_round_count_stands_in_place_of_a_model) {
  const ProcessResult run =
      run_program({"plan", "4B", "--textbook", "--bf16", "--optim", "adamw_bf16_states", "--trained", "20M"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_NE(run.output.find("8.12"), std::string::npos) << run.output;
}

TEST(PlanTextbook, json_holds_the_rule_and_the_plan_of_a_model) {
  const ProcessResult run = run_program(
      {"plan", "mistralai/Mistral-7B-v0.1", "--textbook", "--fp16", "--seq", "1024", "--json", "--parameters", "7B"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const Parsed plan = Parsed::parse(run.output);
  EXPECT_EQ(plan.at("textbook").at("rows").at("weights").at("bytes"), 14'000'000'000);
  EXPECT_EQ(plan.at("textbook").at("rows").at("activations").at("bytes"), 268'435'456);
  int64_t sum = 0;
  for (const Parsed& row : plan.at("textbook").at("rows")) sum += row.at("snug_bytes").get<int64_t>();
  EXPECT_EQ(sum, plan.at("peak_bytes").get<int64_t>());
}

TEST(PlanDevices, the_map_names_each_module_once_and_holds_every_weight) {
  const ProcessResult run =
      run_program({"plan", "meta-llama/Llama-3.1-8B", "--bf16", "--max-memory", "0:12GiB,1:6GiB,cpu:200GiB", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const Parsed plan = Parsed::parse(run.output);
  EXPECT_EQ(plan.at("device_map").size(), 32U + 4U);
  EXPECT_EQ(plan.at("device_map").at("model.embed_tokens"), 0);
  EXPECT_EQ(plan.at("device_map").at("lm_head"), "cpu");
  int64_t weights = 0;
  for (const Parsed& device : plan.at("placement")) {
    weights += device.at("weights").get<int64_t>();
    EXPECT_GE(device.at("free_bytes").get<int64_t>(), 0);
  }
  EXPECT_EQ(weights, plan.at("breakdown").at("weights").get<int64_t>() + plan.at("breakdown").at("adapters").get<int64_t>());
}

TEST(PlanDevices, what_does_not_fit_ends_with_3_and_one_line) {
  const ProcessResult run =
      run_program({"plan", "meta-llama/Llama-3.2-1B", "--bf16", "--batch", "4", "--max-memory", "0:3GiB"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(std::count(run.output.begin(), run.output.end(), '\n'), 1) << run.output;
  EXPECT_NE(run.output.find("fits with --gradient-checkpointing true"), std::string::npos) << run.output;
}

TEST(PlanViews, bad_input_is_one_line) {
  const std::pair<std::vector<std::string>, int> kCases[] = {{{"plan", "demo", "--max-memory", "0:80GBB"}, 1},
                                                             {{"plan", "demo", "--max-memory", "0:-1GiB"}, 1},
                                                             {{"plan", "demo", "--max-memory", ""}, 1},
                                                             {{"plan", "demo", "--max-memory"}, 2},
                                                             {{"plan", "7B", "--textbook", "--trained", "x"}, 1},
                                                             {{"plan", "7B", "--trained", "20M"}, 2},
                                                             {{"plan", "7B", "--weights-only"}, 2},
                                                             {{"plan", "7B", "--textbook", "--hidden", "9T"}, 1},
                                                             {{"plan", "7B", "--textbook", "--activations", "5"}, 1},
                                                             {{"plan", "7C", "--textbook"}, 1},
                                                             {{"plan", "7B", "--textbook", "--max-memory", "0:1GiB"}, 2}};
  for (const auto& [words, code] : kCases) {
    const ProcessResult run = run_program(words);
    EXPECT_EQ(run.exit_code, code) << words.back() << run.output;
    EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1) << run.error;
  }
}

// Rotations go on beyond what a model was made for, as in transformers: planned, and told.
TEST(PlanNotes, rows_longer_than_a_model_was_made_for_are_told) {
  const Workspace work;
  const ProcessResult result = run_program({"plan", work.model().string(), "--seq", "300", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const Json plan = Json::parse(result.output);
  EXPECT_EQ(plan["notes"][0], "rows of 300 tokens go beyond the 256 positions that the model was made for");
}

}  // namespace

}  // namespace snug::cli_tests
