// The catalogues as tables and as JSON: every row is in both.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/catalogue.h"
#include "report/accelerator_report.h"
#include "report/model_report.h"

namespace snug::testing {

namespace {

TEST(CatalogueReport, every_model_is_in_the_table_and_in_the_json) {
  const std::string text = models_text();
  const auto json = nlohmann::json::parse(models_json());
  EXPECT_EQ(json.at("models").size(), model_names().size());
  for (const std::string& name : model_names()) EXPECT_NE(text.find(name), std::string::npos) << name;
}

TEST(CatalogueReport, one_model_tells_its_parameters) {
  const ModelSpec spec = *find_model("meta-llama/Llama-3.1-8B");
  const auto json = nlohmann::json::parse(model_json(spec));
  int64_t sum = 0;
  for (const auto& parameter : json.at("parameters")) sum += parameter.at("elements").get<int64_t>();
  EXPECT_EQ(sum, json.at("total_parameters").get<int64_t>());
  EXPECT_NE(model_text(spec).find(std::to_string(sum)), std::string::npos);
}

TEST(CatalogueReport, every_accelerator_is_in_the_table_and_in_the_json) {
  const std::string text = accelerators_text();
  EXPECT_EQ(nlohmann::json::parse(accelerators_json()).at("accelerators").size(), accelerators().size());
  for (const Accelerator& a : accelerators()) {
    EXPECT_NE(text.find(a.name), std::string::npos) << a.name;
    EXPECT_TRUE(accelerator_text(a).starts_with(a.name + " (")) << a.name;
    EXPECT_EQ(nlohmann::json::parse(accelerator_json(a)).at("memory_bytes").get<int64_t>(), a.memory_bytes);
  }
}

}  // namespace

}  // namespace snug::testing
