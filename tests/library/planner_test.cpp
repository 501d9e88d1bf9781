// The planner as another program meets it: through snug/planner.h and the shared object alone.

#include "snug/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace snug::planner::testing {

namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

Request llama(int64_t memory_bytes) {
  return {.model = "meta-llama/Llama-3.1-8B",
          .recipe = {{"method", "lora"}, {"bf16", "true"}, {"max_length", "2048"}},
          .memory_bytes = memory_bytes,
          .threads = 2};
}

TEST(Planner, the_json_the_breakdown_and_the_peak_say_the_same) {
  const Result result = plan(llama(32 * kGiB));
  ASSERT_EQ(result.error, "");
  const auto json = nlohmann::json::parse(result.json);
  EXPECT_EQ(json.at("peak_bytes").get<int64_t>(), result.peak_bytes);
  EXPECT_EQ(json.at("peak_stage").get<std::string>(), result.peak_stage);
  EXPECT_EQ(json.at("fits").get<bool>(), result.fits);
  EXPECT_EQ(result.budget_bytes, 32 * kGiB);
  int64_t sum = 0;
  for (const Bytes& role : result.breakdown) {
    EXPECT_EQ(json.at("breakdown").at(role.name).get<int64_t>(), role.bytes);
    sum += role.bytes;
  }
  EXPECT_EQ(sum, result.peak_bytes);
  for (const Bytes& stage : result.stages) EXPECT_EQ(json.at("stages").at(stage.name).get<int64_t>(), stage.bytes);
}

TEST(Planner, what_does_not_fit_comes_with_a_change_that_does) {
  const Result result = plan(llama(18 * kGiB));
  ASSERT_EQ(result.error, "");
  EXPECT_FALSE(result.fits);
  const size_t begin = result.smallest_change.find("--");
  ASSERT_NE(begin, std::string::npos) << result.smallest_change;
  std::istringstream words(result.smallest_change.substr(begin + 2));
  std::string key, value;
  words >> key >> value;
  std::replace(key.begin(), key.end(), '-', '_');
  Request changed = llama(18 * kGiB);
  changed.recipe.emplace_back(key, value);
  EXPECT_TRUE(plan(changed).fits) << result.smallest_change;
}

TEST(Planner, a_config_as_text_is_the_model_it_describes) {
  std::ifstream file(SNUG_SOURCE_DIR "/demo/model/config.json");
  std::stringstream text;
  text << file.rdbuf();
  const Result from_text = plan({.config_json = text.str(), .memory_bytes = kGiB, .threads = 1});
  const Result from_path = plan({.model = SNUG_SOURCE_DIR "/demo/model", .memory_bytes = kGiB, .threads = 1});
  ASSERT_EQ(from_text.error, "");
  EXPECT_EQ(from_text.peak_bytes, from_path.peak_bytes);
}

TEST(Planner, a_named_card_gives_the_budget) {
  Request request = llama(0);
  request.accelerator = "A100 80GB";
  const Result result = plan(request);
  ASSERT_EQ(result.error, "");
  EXPECT_GT(result.budget_bytes, 70 * kGiB);
  EXPECT_LT(result.budget_bytes, 81 * kGiB);
  request.accelerator = "A1000000";
  EXPECT_NE(plan(request).error.find("nearest"), std::string::npos);
}

TEST(Planner, bad_requests_are_one_line_and_throw_nothing) {
  std::vector<Request> requests(8, llama(kGiB));
  requests[0].model = "no/such-model";
  requests[1].model = "";
  requests[2].config_json = "{}";
  requests[3].recipe.emplace_back("lora_rr", "8");
  requests[4].recipe.emplace_back("lora_r", "many");
  requests[5].memory_bytes = -1;
  requests[6].recipe.emplace_back("lora_target_modules", "no_such_module");
  requests[7].model = "";
  requests[7].config_json = std::string(100000, '[');
  for (const Request& request : requests) {
    const Result result = plan(request);
    EXPECT_NE(result.error, "");
    EXPECT_EQ(result.error.find('\n'), std::string::npos) << result.error;
    EXPECT_TRUE(result.json.empty());
  }
}

TEST(PlannerFit, the_best_recipe_is_what_plan_says_of_it) {
  const Request request{.model = "meta-llama/Llama-3.1-8B", .recipe = {{"max_length", "1024"}}, .accelerator = "RTX 4090"};
  const Fit found = fit(request);
  ASSERT_EQ(found.error, "");
  ASSERT_TRUE(found.fits);
  ASSERT_EQ(found.methods.size(), 4U);
  for (const Method& method : found.methods) {
    if (method.front.empty()) {
      EXPECT_GT(method.least_bytes, found.budget_bytes) << method.name;
      continue;
    }
    Request again = request;
    again.recipe = method.front.front().recipe;
    const Result planned = plan(again);
    ASSERT_EQ(planned.error, "");
    EXPECT_EQ(planned.peak_bytes, method.front.front().peak_bytes) << method.name;
    EXPECT_LE(planned.peak_bytes, found.budget_bytes);
  }
  EXPECT_GT(found.best.step_seconds.value_or(0), 0);
  EXPECT_FALSE(found.best.cost.dollars.has_value());  // nothing was said of the data
}

TEST(PlannerFit, the_structure_and_the_json_say_the_same) {
  const Fit found = fit({.model = "HuggingFaceTB/SmolLM2-135M",
                         .recipe = {{"method", "lora"}, {"max_length", "512"}},
                         .accelerator = "T4",
                         .examples = 10'000,
                         .example_tokens = 400});
  ASSERT_EQ(found.error, "");
  const auto json = nlohmann::json::parse(found.json);
  EXPECT_EQ(json.at("method").get<std::string>(), found.method);
  EXPECT_EQ(json.at("assumed").get<std::vector<std::string>>(), found.assumed);
  ASSERT_EQ(json.at("methods").size(), found.methods.size());
  for (size_t i = 0; i < found.methods.size(); ++i) {
    const auto& front = json.at("methods")[i].at("front");
    ASSERT_EQ(front.size(), found.methods[i].front.size());
    for (size_t k = 0; k < front.size(); ++k) {
      const Choice& choice = found.methods[i].front[k];
      EXPECT_EQ(front[k].at("peak_bytes").get<int64_t>(), choice.peak_bytes);
      EXPECT_EQ(front[k].at("effect").get<std::string>(), choice.effect);
      EXPECT_EQ(front[k].at("step_seconds").get<double>(), choice.step_seconds.value());
      EXPECT_EQ(front[k].at("cost").at("dollars").get<double>(), choice.cost.dollars.value());
      for (const auto& [key, value] : choice.settings) EXPECT_EQ(front[k].at("settings").at(key).get<std::string>(), value);
    }
  }
}

TEST(PlannerFit, keys_that_are_given_stay_and_where_nothing_fits_a_way_out_is_planned) {
  const Request request{.model = "HuggingFaceTB/SmolLM2-135M",
                        .recipe = {{"method", "full"}, {"optim", "adamw_torch"}, {"bf16", "true"}, {"max_length", "512"}},
                        .memory_bytes = kGiB,
                        .threads = 1};
  const Fit found = fit(request);
  ASSERT_EQ(found.error, "");
  EXPECT_FALSE(found.fits);
  EXPECT_TRUE(found.best.recipe.empty());
  EXPECT_GT(found.methods.at(0).least_bytes, kGiB);
  EXPECT_FALSE(found.way_out.empty());
  EXPECT_LE(found.way_out_bytes, kGiB);
  Request roomy = request;
  roomy.memory_bytes = 16 * kGiB;
  const Fit fitted = fit(roomy);
  ASSERT_TRUE(fitted.fits);
  for (const Choice& choice : fitted.methods.at(0).front)
    for (const auto& [key, value] : choice.settings) EXPECT_NE(key, "optim") << value;
}

TEST(PlannerFit, bad_requests_are_one_line) {
  Request request = llama(kGiB);
  request.examples = 10;
  EXPECT_NE(fit(request).error.find("example_tokens"), std::string::npos);
  EXPECT_NE(plan(request).error.find("example_tokens"), std::string::npos);
  request = llama(kGiB);
  request.recipe.emplace_back("lora_rr", "8");
  EXPECT_NE(fit(request).error, "");
  EXPECT_EQ(fit(request).error.find('\n'), std::string::npos);
  EXPECT_TRUE(fit(request).json.empty());
}

TEST(Planner, keys_without_effect_are_named) {
  Request request = llama(32 * kGiB);
  request.recipe.emplace_back("dataloader_num_workers", "4");
  const Result result = plan(request);
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(result.ignored, std::vector<std::string>{"dataloader_num_workers"});
}

TEST(Planner, threads_that_plan_at_once_do_not_disturb_one_another) {
  const int64_t expected = plan(llama(32 * kGiB)).peak_bytes;
  std::vector<int64_t> peaks(4);
  {
    std::vector<std::jthread> threads;
    for (int64_t& peak : peaks) threads.emplace_back([&peak] { peak = plan(llama(32 * kGiB)).peak_bytes; });
  }
  EXPECT_EQ(peaks, std::vector<int64_t>(4, expected));
}

}  // namespace

}  // namespace snug::planner::testing
