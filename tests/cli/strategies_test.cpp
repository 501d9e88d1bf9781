// What evaluations decide: which checkpoint is the result, and when a run ends. Twelve rows in batches of four: an epoch is
// three steps. The rows are learned by heart, so that those held out are foretold worse and worse.

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <algorithm>

#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kByEpoch = {"--packing", "false", "--batch",         "4",     "--seq",           "192",
                                           "--lr",      "2e-2",  "--method",        "full",  "--bf16",          "false",
                                           "--epochs",  "8",     "--eval-strategy", "epoch", "--save-strategy", "epoch"};

// Rows of a hundred of the ten characters from `first` on. What letters teach makes digits foretold worse and worse.
std::string rows_of(int rows, char first) {
  std::string text;
  for (int row = 0; row < rows; ++row) {
    text += R"({"text": ")";
    for (int i = 0; i < 100; ++i) text += static_cast<char>(first + (i * i + row) % 10);
    text += "\"}\n";
  }
  return text;
}

class Strategies : public ::testing::Test {
 protected:
  Strategies() {
    put(work_.data(), rows_of(12, 'a'));
    put(work_ / "other.jsonl", rows_of(8, '0'));
  }

  ProcessResult train(const char* output, const std::vector<std::string>& more) const {
    return run_program(
        work_.train(work_ / output, joined(joined(kByEpoch, {"--eval-data", (work_ / "other.jsonl").string()}), more)));
  }

  std::vector<std::pair<int64_t, double>> evaluations(const char* output) const {
    std::vector<std::pair<int64_t, double>> found;
    for (const Json& line : read_metrics(work_ / output))
      if (line.contains("eval_loss")) found.emplace_back(line["step"], line["eval_loss"]);
    return found;
  }

  static int64_t best_of(const std::vector<std::pair<int64_t, double>>& all) {
    return std::ranges::min_element(all, {}, [](const auto& one) { return one.second; })->first;
  }

  bool holds(const char* output, int64_t step) const {
    return fs::exists(work_ / output / fmt::format("checkpoint-{}", step));
  }

  Workspace work_;
};

TEST_F(Strategies, epochs_are_evaluated_and_saved) {
  const ProcessResult run = train("run", {});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  std::vector<int64_t> steps;
  for (const auto& [step, loss] : evaluations("run")) steps.push_back(step);
  EXPECT_EQ(steps, (std::vector<int64_t>{3, 6, 9, 12, 15, 18, 21, 24}));
  for (int64_t step = 1; step <= 24; ++step) EXPECT_EQ(holds("run", step), step % 3 == 0) << step;
}

TEST_F(Strategies, no_is_neither_evaluated_nor_saved) {
  const ProcessResult run = train("run", {"--eval-strategy", "no", "--save-strategy", "no"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_TRUE(evaluations("run").empty());
  EXPECT_EQ(newest_step(work_ / "run"), -1);
  EXPECT_TRUE(fs::exists(work_ / "run" / "model.safetensors"));
}

TEST_F(Strategies, the_best_checkpoint_is_kept_and_is_the_result) {
  const ProcessResult run = train("run", {"--load-best-model-at-end", "--save-total-limit", "1"});
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const auto all = evaluations("run");
  const int64_t best = best_of(all);
  ASSERT_LT(best, 24);
  EXPECT_NE(run.error.find(
                fmt::format("the best of 8 evaluations: {}", (work_ / "run" / fmt::format("checkpoint-{}", best)).string())),
            std::string::npos)
      << run.error;
  for (const auto& [step, loss] : all) EXPECT_EQ(holds("run", step), step == best || step == 24) << step;
  const std::string result = contents(work_ / "run" / "model.safetensors");
  EXPECT_TRUE(result == contents(work_ / "run" / fmt::format("checkpoint-{}", best) / "model.safetensors"));
  EXPECT_FALSE(result == contents(work_ / "run" / "checkpoint-24" / "model.safetensors"));
  EXPECT_EQ(unfinished(work_.path()), std::vector<std::string>());
}

TEST_F(Strategies, a_run_that_gets_no_better_ends_and_ends_again_when_it_is_taken_up) {
  const std::vector<std::string> keys = {"--load-best-model-at-end", "--early-stopping-patience", "2"};
  ASSERT_EQ(train("whole", {}).exit_code, 0);
  const ProcessResult run = train("run", keys);
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const auto whole = evaluations("whole"), all = evaluations("run");
  ASSERT_LT(all.size(), whole.size()) << run.error;
  EXPECT_TRUE(std::ranges::equal(all, std::span(whole).first(all.size())));
  EXPECT_EQ(all.back().first, best_of(all) + 2 * 3);
  EXPECT_NE(run.error.find("stopping early"), std::string::npos) << run.error;
  const std::string result = contents(work_ / "run" / "model.safetensors");
  fs::remove(work_ / "run" / "model.safetensors");
  const ProcessResult again = train("run", joined(keys, {"--resume-from-checkpoint", "true"}));
  ASSERT_EQ(again.exit_code, 0) << again.error;
  EXPECT_EQ(evaluations("run"), all) << "no step was taken";
  EXPECT_TRUE(result == contents(work_ / "run" / "model.safetensors"));
}

TEST_F(Strategies, what_cannot_be_is_refused_in_one_line) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--load-best-model-at-end", "--save-strategy", "steps"}, "save_strategy is not eval_strategy"},
      {{"--load-best-model-at-end", "--eval-strategy", "no"}, "needs evaluations"},
      {{"--early-stopping-patience", "3", "--eval-strategy", "steps"}, "needs evaluations"},
      {{"--load-best-model-at-end", "--greater-is-better", "true"}, "greater_is_better"},
      {{"--load-best-model-at-end", "--eval-strategy", "steps", "--save-strategy", "steps", "--eval-steps", "4",
        "--save-steps", "6"},
       "no multiple"},
      {{"--metric-for-best-model", "bleu"}, "metric_for_best_model"}};
  for (const auto& [more, words] : cases) {
    const ProcessResult run = train("run", more);
    EXPECT_EQ(run.exit_code, 1) << run.error;
    EXPECT_NE(run.error.find(words), std::string::npos) << run.error;
    EXPECT_EQ(std::ranges::count(run.error, '\n'), 1) << run.error;
  }
}

}  // namespace

}  // namespace snug::cli_tests
