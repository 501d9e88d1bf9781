// Plans of the families that cannot be trained yet, against bytes counted by hand: nothing else would notice a tensor too
// many or too few.

#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "model/families.h"
#include "model/parameters.h"
#include "op/routed_rows.h"
#include "plan/plan.h"

namespace snug::testing {

namespace {

constexpr int64_t kFamilyTokens = 512;

Plan plan_of(ModelSpec model, int64_t layers, Method method) {
  model.layers = layers;
  if (!model.local_layers.empty()) model.local_layers.resize(static_cast<size_t>(layers));
  Recipe recipe;
  recipe.method = method;
  recipe.bf16 = true;
  recipe.seq_len = kFamilyTokens;
  return make_plan(model, recipe, {.threads = 2, .memory_bytes = int64_t{1} << 42, .runtime_bytes = 1 << 20});
}

// What one layer more keeps from forward to backward when every weight is trained.
int64_t kept_by_a_layer(const char* name) {
  const ModelSpec model = *find_model(name);
  const auto kept = [&](int64_t layers) {
    return plan_of(model, layers, Method::full).breakdown[static_cast<size_t>(Role::activation)];
  };
  return kept(6) - kept(4);
}

// bf16 rows and fp32 numbers of each token.
int64_t family_bytes(int64_t elements, int64_t statistics) { return kFamilyTokens * (2 * elements + 4 * statistics); }

TEST(PlanOnlyFamilies, AFalconLayerKeepsTheseBytes) {
  // x, its norm (for attention and MLP), q, k, v, what was attended, lse; before and after the activation
  const int64_t C = 4544, H = 71, D = 64;
  EXPECT_EQ(kept_by_a_layer("falcon-7b"), 2 * family_bytes(2 * C + (H + 2) * D + C + 8 * C, 2 + H));
}

TEST(PlanOnlyFamilies, ANewerFalconHasTwoNorms) {
  const int64_t C = 8192, H = 128, K = 8, D = 64;
  EXPECT_EQ(kept_by_a_layer("falcon-40b"), 2 * family_bytes(3 * C + (H + 2 * K) * D + C + 8 * C, 4 + H));
}

TEST(PlanOnlyFamilies, AnOlmo2LayerKeepsTheseBytes) {
  // x, q and k before and after their norms, v, what was attended, lse, the output before its norm, x between, gate, up,
  // their product, down before its norm
  const int64_t C = 4096, H = 32, F = 11008;
  EXPECT_EQ(kept_by_a_layer("OLMo-2-1124-7B"), 2 * family_bytes(C + 5 * C + C + C + C + 3 * F + C, 4 + H));
}

TEST(PlanOnlyFamilies, AGptOssLayerKeepsTheseBytes) {
  const int64_t C = 2880, H = 64, K = 8, D = 64, F = 2880, E = 32, J = 4;
  const RoutedRows routed = routed_rows(kFamilyTokens, E, J);
  // x, its norm, q, k, v, attended, lse; x between, its norm; weights and rows of choices; routed, gate, up, product, down
  const int64_t tokens = family_bytes(2 * C + (H + 2 * K) * D + H * D + 2 * C, 2 + H + 2 * J);
  const int64_t rows = routed.rows * (4 + 2 * (2 * C + 3 * F)) + 4 * (routed.rows / routed.tile);
  EXPECT_NEAR(static_cast<double>(kept_by_a_layer("gpt-oss-20b")), 2.0 * static_cast<double>(tokens + rows),
              256);  // alignment
}

TEST(PlanOnlyFamilies, SmolLm3IsPlannedLikeALlama) {
  const int64_t C = 2048, H = 16, K = 4, D = 128, F = 11008;
  EXPECT_EQ(kept_by_a_layer("SmolLM3-3B"), 2 * family_bytes(2 * C + (H + 2 * K) * D + C + 2 * C + 3 * F, 2 + H));
}

TEST(PlanOnlyFamilies, WeightsAreTwoBytesAParameterAndTrainedOnesHaveFourTimesThat) {
  for (const std::string& name : model_names()) {
    const ModelSpec model = *find_model(name);
    if (!is_plan_only(model) || !model.unmodelled_step.empty()) continue;
    const int64_t text = total_parameters(model) - model.vision_parameters;
    const auto parameters = static_cast<double>(text);
    const Plan plan = plan_of(model, model.layers, Method::full);
    EXPECT_EQ(plan.program.trainable_parameters(), text) << name;
    const auto of = [&](Role role) { return static_cast<double>(plan.breakdown[static_cast<size_t>(role)]); };
    EXPECT_NEAR(of(Role::weight) / parameters, 2.0, 0.001) << name;
    EXPECT_NEAR(of(Role::gradient) / parameters, 4.0, 0.001) << name;
  }
}

TEST(PlanOnlyFamilies, EveryTechniqueCanBePlanned) {
  for (const char* name :
       {"falcon-7b", "falcon-40b", "gpt-oss-20b", "OLMo-2-1124-7B", "SmolLM3-3B", "phi-2", "opt-125m", "bloom-560m",
        "stablelm-2-1_6b", "GLM-4-9B-0414", "OLMoE-1B-7B-0924", "Qwen-7B", "chatglm3-6b", "granite-3.1-1b-a400m-base",
        "granite-3.1-2b-base", "Nemotron-Mini-4B-Instruct", "Qwen2.5-VL-3B-Instruct"}) {
    ModelSpec model = *find_model(name);
    for (const bool in_4bit : {false, true}) {
      Recipe recipe;
      recipe.bf16 = recipe.gradient_checkpointing = true;
      recipe.lora.target_modules = {"all-linear"};
      recipe.quantize.in_4bit = recipe.quantize.double_quant = in_4bit;
      EXPECT_GT(make_plan(model, recipe, {.threads = 2, .memory_bytes = int64_t{1} << 42}).peak_bytes, 0) << name;
    }
  }
}

}  // namespace

}  // namespace snug::testing
