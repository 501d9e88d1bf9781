#include "report/fit_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/catalogue.h"
#include "recipe/yaml.h"

namespace snug::testing {

namespace {

FitAnswer answer_for(int64_t memory_bytes, Method method) {
  FitQuestion question{.model = *find_model("HuggingFaceTB/SmolLM2-135M"),
                       .target = {.threads = 1, .memory_bytes = memory_bytes, .runtime_bytes = 1 << 20},
                       .keys_set = {"method", "max_length"}};
  question.recipe.method = method;
  question.recipe.seq_len = 512;
  return recommend(std::move(question));
}

TEST(FitReport, text_json_and_file_tell_of_the_same_recipe) {
  const FitAnswer answer = answer_for(int64_t{2} << 30, Method::lora);
  ASSERT_TRUE(answer.fits());
  const FitChoice& best = answer.report().front.front();
  const std::string text = fit_text(answer, {});
  EXPECT_TRUE(text.starts_with("best for 2.00 GiB of cpu: LoRA, ")) << text;
  const auto json = nlohmann::json::parse(fit_json(answer));
  EXPECT_EQ(json.at("methods")[0].at("front")[0].at("peak_bytes").get<int64_t>(), best.peak_bytes);
  EXPECT_TRUE(json.at("methods")[0].at("front")[0].at("step_seconds").is_null());
  const Recipe written = parse_recipe_yaml(fit_recipe_yaml(answer), "fit.yaml").recipe;
  EXPECT_TRUE(differences(best.recipe, written).empty());
}

TEST(FitReport, where_nothing_fits_the_way_out_is_named) {
  const FitAnswer answer = answer_for(int64_t{200} << 20, Method::full);
  ASSERT_FALSE(answer.fits());
  const std::string text = fit_text(answer, {});
  EXPECT_TRUE(text.starts_with("nothing fits 200.0 MiB of cpu")) << text;
  EXPECT_NE(text.find("the cheapest that would: --"), std::string::npos) << text;
  EXPECT_FALSE(nlohmann::json::parse(fit_json(answer)).at("way_out").is_null());
}

}  // namespace

}  // namespace snug::testing
