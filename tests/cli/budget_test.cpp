// What does not fit is refused before anything is loaded, with the change that makes it fit.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string_view>

#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

struct BudgetCase {
  std::string name;
  std::vector<std::string> keys;
};

void PrintTo(const BudgetCase& test, std::ostream* out) { *out << test.name; }

class Budget : public ::testing::TestWithParam<BudgetCase> {};

// "… smallest change that fits: --gradient-checkpointing true needs …" -> {"--gradient-checkpointing", "true"}; there may
// be several.
std::vector<std::string> advised(const std::string& error) {
  constexpr std::string_view kStart = "smallest change that fits: ";
  const size_t start = error.find(kStart);
  if (start == std::string::npos) return {};
  std::istringstream text(error.substr(start + kStart.size()));
  std::vector<std::string> words;
  for (std::string word; text >> word && word != "needs";) words.push_back(word);
  return words;
}

TEST_P(Budget, one_mebibyte_too_little_is_refused_unloaded_and_the_advice_fits) {
  const Workspace work({{"hidden_size", 96}, {"intermediate_size", 256}});
  const std::string model = work.outline().string();  // config.json and a tokenizer: there are no weights to load
  const std::vector<std::string> keys = joined({"--threads", "2"}, GetParam().keys);
  const ProcessResult free = run_program(joined({"plan", model, "--json"}, keys));
  ASSERT_EQ(free.exit_code, 0) << free.error;
  const auto peak = Json::parse(free.output)["peak_bytes"].get<int64_t>();
  const std::vector<std::string> budget = {"--memory", fmt::format("{}B", peak - (1 << 20))};
  const std::vector<std::string> enough = {"--memory", fmt::format("{}B", peak)};
  EXPECT_EQ(run_program(joined(joined({"plan", model}, keys), enough)).exit_code, 0);

  const ProcessResult plan = run_program(joined(joined({"plan", model}, keys), budget));
  EXPECT_EQ(plan.exit_code, 3);
  EXPECT_NE(plan.output.find("does not fit"), std::string::npos) << plan.output;
  const ProcessResult json = run_program(joined(joined({"plan", model, "--json"}, keys), budget));
  EXPECT_EQ(json.exit_code, 3);
  EXPECT_FALSE(Json::parse(json.output)["fits"].get<bool>());

  const std::vector<std::string> train = {
      "train", model, "--data", work.data().string(), "--output-dir", (work / "out").string()};
  const ProcessResult refused = run_program(joined(joined(train, keys), budget));
  EXPECT_EQ(refused.exit_code, 3) << refused.error;
  EXPECT_EQ(refused.output, "");
  EXPECT_FALSE(fs::exists(work / "out"));
  const std::vector<std::string> change = advised(refused.error);
  ASSERT_GE(change.size(), 2U) << refused.error;
  EXPECT_EQ(advised(plan.output), change);
  const ProcessResult again = run_program(joined(joined(joined({"plan", model}, keys), budget), change));
  EXPECT_EQ(again.exit_code, 0) << refused.error << again.output;
}

INSTANTIATE_TEST_SUITE_P(
    of, Budget,
    ::testing::Values(
        BudgetCase{"full", {"--method", "full", "--seq", "256", "--batch", "4"}},
        BudgetCase{"full_recomputed", {"--method", "full", "--seq", "256", "--batch", "8", "--gradient-checkpointing"}},
        BudgetCase{"full_recomputed_one_sequence",
                   {"--method", "full", "--seq", "256", "--batch", "1", "--gradient-checkpointing"}},
        BudgetCase{"full_bf16_recomputed_one_sequence",
                   {"--method", "full", "--bf16", "--seq", "256", "--batch", "1", "--gradient-checkpointing"}},
        BudgetCase{"lora", {"--method", "lora", "--seq", "256", "--batch", "4", "--accum", "3"}},
        BudgetCase{
            "lora_some_recomputed",
            {"--method", "lora", "--seq", "256", "--batch", "4", "--gradient-checkpointing", "--checkpoint-layers", "0"}},
        BudgetCase{"lora_bf16_recomputed",
                   {"--method", "lora", "--bf16", "--seq", "256", "--batch", "6", "--gradient-checkpointing"}}),
    [](const auto& test) { return test.param.name; });

// Kept, made again or sent to disk, as the bytes between the least and the most of it allow.
TEST(CheckpointsToBudget, with_disk_move_what_does_not_fit_and_no_more_to_the_same_weights) {
  const Workspace work(Json{{"num_hidden_layers", 6}});
  const std::vector<std::string> keys = {"--method", "full",        "--seq", "64",        "--batch",
                                         "8",        "--max-steps", "3",     "--threads", "2"};
  const auto planned = [&](const std::vector<std::string>& more) {
    const ProcessResult plan = run_program(joined(joined({"plan", work.model().string(), "--json"}, keys), more));
    EXPECT_EQ(plan.exit_code, 0) << plan.error;
    return Json::parse(plan.output);
  };
  const Json kept = planned({}), away = planned({"--offload-activations", "disk"});
  const auto most = kept["peak_bytes"].get<int64_t>(), least = away["peak_bytes"].get<int64_t>();
  ASSERT_LT(least, most);
  ASSERT_EQ(run_program(work.train(work / "kept", keys)).exit_code, 0);
  int64_t before = away["homes"]["fetched_a_step"].get<int64_t>() + 1;
  for (const int64_t fourths : {1, 2, 3}) {
    const std::vector<std::string> budget = {"--gradient-checkpointing",
                                             "auto",
                                             "--offload-activations",
                                             "disk",
                                             "--overwrite-output-dir",
                                             "--memory",
                                             fmt::format("{}B", least + (most - least) * fourths / 4)};
    const Json plan = planned(budget);
    EXPECT_TRUE(plan["fits"].get<bool>());
    EXPECT_FALSE(plan["waits_on_disk"].empty() && plan["made_again"].empty());
    const auto fetched = plan["homes"]["fetched_a_step"].get<int64_t>();
    EXPECT_LT(fetched, before);
    before = fetched;
    const ProcessResult run = run_program(work.train(work / "far", joined(keys, budget)));
    ASSERT_EQ(run.exit_code, 0) << run.error;
    EXPECT_EQ(contents(work / "kept" / "model.safetensors"), contents(work / "far" / "model.safetensors"));
    const Json summary = read_metrics(work / "far").back()["summary"];
    EXPECT_EQ(summary["planned_peak_bytes"], plan["peak_bytes"]);
    EXPECT_EQ(summary["fetched_bytes"].get<int64_t>(), 3 * fetched);
    EXPECT_TRUE(testing::kSanitized || summary["measured_peak_bytes"].get<int64_t>() <= plan["peak_bytes"].get<int64_t>());
  }
}

// Bytes half-way between every block and none recomputed.
TEST(CheckpointsToBudget, train_within_what_is_given_to_the_same_weights) {
  const Workspace work;
  const std::vector<std::string> keys = {"--method", "full",        "--seq", "64",        "--batch",
                                         "8",        "--max-steps", "3",     "--threads", "2"};
  const auto planned = [&](const std::vector<std::string>& more) {
    const ProcessResult plan = run_program(joined(joined({"plan", work.model().string(), "--json"}, keys), more));
    return Json::parse(plan.output);
  };
  const auto most = planned({})["peak_bytes"].get<int64_t>();
  const auto least = planned({"--gradient-checkpointing"})["peak_bytes"].get<int64_t>();
  ASSERT_LT(least, most);
  const std::vector<std::string> budget = {"--gradient-checkpointing", "auto", "--memory",
                                           fmt::format("{}B", (least + most) / 2)};
  const Json plan = planned(budget);
  EXPECT_TRUE(plan["fits"].get<bool>());
  EXPECT_FALSE(plan["made_again"].empty());
  EXPECT_TRUE(planned({"--gradient-checkpointing", "auto"})["made_again"].empty());

  ASSERT_EQ(run_program(work.train(work / "kept", keys)).exit_code, 0);
  const ProcessResult fitted = run_program(work.train(work / "fitted", joined(keys, budget)));
  ASSERT_EQ(fitted.exit_code, 0) << fitted.error;
  EXPECT_EQ(contents(work / "kept" / "model.safetensors"), contents(work / "fitted" / "model.safetensors"));
  const Json summary = read_metrics(work / "fitted").back()["summary"];
  EXPECT_EQ(summary["planned_peak_bytes"].get<int64_t>(), plan["peak_bytes"].get<int64_t>());
  if (testing::kSanitized) return;  // whose shadow memory is resident too
  EXPECT_LE(summary["measured_peak_bytes"].get<int64_t>(), (least + most) / 2);
}

TEST(BudgetOfNothing, names_the_nearest_change_where_none_fits) {
  const Workspace work;
  const ProcessResult refused = run_program(work.train(work / "out", {"--memory", "1MiB", "--seq", "128", "--batch", "2"}));
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_NE(refused.error.find("nothing fits; the least is "), std::string::npos) << refused.error;
  EXPECT_FALSE(fs::exists(work / "out"));
}

}  // namespace

}  // namespace snug::cli_tests
