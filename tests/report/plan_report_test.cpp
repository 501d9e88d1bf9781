// A plan as text and as JSON: both say what the Plan says.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "model/catalogue.h"
#include "report/plan_json.h"
#include "report/plan_text.h"

namespace snug::testing {

namespace {

Plan plan_with(int64_t memory_bytes) {
  Recipe recipe;
  recipe.batch = 4;
  recipe.seq_len = 512;
  recipe.memory_bytes = memory_bytes;
  return make_plan(*find_model("HuggingFaceTB/SmolLM2-135M"), recipe,
                   {.threads = 2, .memory_bytes = int64_t{1} << 36, .runtime_bytes = 1 << 20});
}

TEST(PlanReport, the_json_sums_to_the_peak) {
  const Plan plan = plan_with(0);
  const auto json = nlohmann::json::parse(plan_json(plan));
  int64_t sum = 0;
  for (const auto& [role, bytes] : json.at("breakdown").items()) sum += bytes.get<int64_t>();
  EXPECT_EQ(sum, plan.peak_bytes);
  EXPECT_EQ(json.at("fits").get<bool>(), plan.fits());
  EXPECT_TRUE(json.at("cost").at("step_seconds").is_null());  // no rates are known
}

TEST(PlanReport, the_text_answers_first_and_stays_within_its_columns) {
  const Plan plan = plan_with(int64_t{1} << 30);
  const std::string text = plan_text(plan, {}, std::nullopt, {.colour = false, .width = 80});
  EXPECT_EQ(text.substr(0, text.find('\n')), plan_verdict(plan));
  std::istringstream lines(text.substr(text.find("\nassumed")));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(PlanReport, the_json_has_the_first_lines_of_the_text) {
  const Plan plan = plan_with(int64_t{1} << 30);
  const PyTorchAnswer pytorch{.not_covered = "nothing of it is known"};
  for (const std::optional<PyTorchAnswer>& asked : {std::optional<PyTorchAnswer>(), std::optional(pytorch)}) {
    const auto json = nlohmann::json::parse(plan_json(plan, {.pytorch = asked}));
    std::string lines;
    for (const auto& line : json.at("verdicts")) lines += line.get<std::string>() + "\n";
    EXPECT_TRUE(plan_text(plan, {}, std::nullopt, {}, asked).starts_with(lines)) << lines;
    EXPECT_EQ(std::ranges::count(lines, '\n'), asked ? 2 : 1);
  }
}

TEST(PlanReport, what_does_not_fit_names_the_change_that_does) {
  const Plan plan = plan_with(plan_with(0).peak_bytes - 1);
  EXPECT_TRUE(plan_verdict(plan).starts_with("does not fit: ")) << plan_verdict(plan);
  EXPECT_TRUE(change_text(plan).starts_with("smallest change that fits: --")) << change_text(plan);
}

TEST(PlanReport, long_lists_are_cut_in_tables_alone) {
  const Setting setting{"checkpoint_layers", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"};
  EXPECT_EQ(flag_of(setting), "--checkpoint-layers 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17");
  EXPECT_EQ(short_flag_of(setting), "--checkpoint-layers 0,1,2,3,4…17");
}

}  // namespace

}  // namespace snug::testing
