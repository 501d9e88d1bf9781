// Plans of DeepSeek's families, which cannot be trained yet, against bytes and products counted by hand and against what
// PEFT trains: latent attention, experts beside shared ones, first layers without any.

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "families.h"
#include "model/catalogue.h"
#include "model/config.h"
#include "model/parameters.h"
#include "op/routed_rows.h"
#include "plan/plan.h"
#include "program/passes/lora.h"
#include "program/rules.h"

namespace snug::testing {

namespace {

constexpr int64_t kTokens = 512;

Plan plan_of(const ModelSpec& model, Recipe recipe) {
  recipe.bf16 = true;
  if (recipe.seq_len == 0) recipe.seq_len = kTokens;
  return make_plan(model, recipe, {.threads = 2, .memory_bytes = int64_t{1} << 45, .runtime_bytes = 1 << 20});
}

Recipe trained_in_full() {
  Recipe recipe;
  recipe.method = Method::full;
  return recipe;
}

int64_t bytes_of(const Plan& plan, Role role) { return plan.breakdown[static_cast<size_t>(role)]; }

// bf16 numbers and fp32 or i32 ones of each token.
int64_t bytes(int64_t elements, int64_t statistics) { return kTokens * (2 * elements + 4 * statistics); }

int64_t kept(ModelSpec model, int64_t layers, int64_t dense_layers, Recipe recipe = trained_in_full()) {
  model.layers = layers;
  model.experts.dense_layers = dense_layers;
  return bytes_of(plan_of(model, std::move(recipe)), Role::activation);
}

// x, its norm, queries, the row of keys and values before and after its norm, keys, values, attended; x between, its norm.
int64_t attention_bytes(const ModelSpec& m) {
  const int64_t H = m.heads, D = m.head_size, values = m.latent.value_size;
  return bytes(2 * m.hidden_size + H * D + 2 * m.latent.rank + H * (D + 2 * values) + 2 * m.hidden_size, 3 + H) +
         (m.latent.query_rank > 0 ? bytes(2 * m.latent.query_rank, 1) : 0);
}

// The shared experts' gate, up and product; scores, weights and rows of choices; routed, gate, up, product, down.
int64_t experts_bytes(const ModelSpec& m) {
  const int64_t C = m.hidden_size, F = m.experts.intermediate_size, E = m.experts.count, J = m.experts.per_token;
  const RoutedRows routed = routed_rows(kTokens, E, J);
  return bytes(3 * m.experts.shared * F, E + 2 * J) + routed.rows * (4 + 2 * (2 * C + 3 * F)) +
         4 * routed.rows / routed.tile;
}

TEST(DeepSeek, ALayerKeepsTheseBytes) {
  for (const char* name : {"DeepSeek-V2-Lite", "DeepSeek-V3"}) {
    const ModelSpec model = *find_model(name);
    const double layer = static_cast<double>(attention_bytes(model) + experts_bytes(model));
    EXPECT_NEAR(static_cast<double>(kept(model, 6, 1) - kept(model, 4, 1)), 2 * layer, 256) << name;  // alignment
  }
}

TEST(DeepSeek, AFirstLayerKeepsAPlainMlpInsteadOfExperts) {
  for (const char* name : {"DeepSeek-V2-Lite", "DeepSeek-V3"}) {
    const ModelSpec model = *find_model(name);
    const int64_t plain = bytes(3 * model.intermediate_size, 0);
    EXPECT_NEAR(static_cast<double>(kept(model, 6, 1) - kept(model, 6, 3)),
                2 * static_cast<double>(experts_bytes(model) - plain), 256)
        << name;
  }
}

TEST(DeepSeek, FirstLayersAreRecomputedLikeTheOthers) {
  const ModelSpec model = *find_model("DeepSeek-V3");
  Recipe recipe = trained_in_full();
  recipe.gradient_checkpointing = true;
  for (const int64_t dense : {0, 1, 3})  // what is kept is each layer's x alone
    EXPECT_EQ(kept(model, 6, dense, recipe), 6 * bytes(model.hidden_size, 0)) << dense;
  recipe.checkpoint_layers = {0, 2, 4};
  EXPECT_EQ(kept(model, 6, 3) - kept(model, 6, 3, recipe),
            2 * (attention_bytes(model) + bytes(3 * model.intermediate_size - model.hidden_size, 0)) +
                align_up(attention_bytes(model) - bytes(model.hidden_size, 0) + experts_bytes(model), kAlignment));
}

TEST(DeepSeek, WeightsAreTwoBytesAParameterToTheByte) {
  for (const char* name : {"DeepSeek-V2-Lite", "DeepSeek-V2", "DeepSeek-V3", "Moonlight-16B-A3B"}) {
    const ModelSpec model = *find_model(name);
    const Plan plan = plan_of(model, {});
    EXPECT_EQ(bytes_of(plan, Role::weight), 2 * total_parameters(model)) << name;
    EXPECT_EQ(plan.program.total_parameters(), total_parameters(model)) << name;
    const Plan full = plan_of(model, trained_in_full());
    EXPECT_EQ(full.program.trainable_parameters(), total_parameters(model)) << name;
    EXPECT_EQ(bytes_of(full, Role::gradient), 4 * total_parameters(model)) << name;
  }
}

// tests/oracle/make_catalogue.py: PEFT on the meta device, r 16.
TEST(DeepSeek, LoraTrainsAsManyParametersAsPeft) {
  std::ifstream file(SNUG_SOURCE_DIR "/tests/golden/catalogue.json");
  const auto golden = nlohmann::json::parse(file).at("lora");
  std::map<std::string, int64_t> trained;
  for (const auto& [name, counts] : golden.items())
    for (const auto& [targets, count] : counts.items()) {
      Recipe recipe;
      recipe.lora.r = 16;
      std::istringstream list(targets);
      for (std::string target; std::getline(list, target, ',');) recipe.lora.target_modules.push_back(target);
      trained[name] = plan_of(*find_model(name), recipe).program.trainable_parameters();
      EXPECT_EQ(trained[name], count.get<int64_t>()) << name;
    }
  EXPECT_EQ(trained["deepseek-ai/DeepSeek-V2-Lite"], 7'105'536);
  EXPECT_EQ(trained["deepseek-ai/DeepSeek-V3"], 97'006'592);
}

// Every weight of every layer has bytes of its own within its storage, and the storages hold nothing else.
TEST(DeepSeek, WeightsOfUnlikeLayersLieSideBySide) {
  for (const auto& [name, config] : test::unlike_layers(1000))
    for (const bool in_4bit : {false, true}) {
      Recipe recipe;
      recipe.quantize.in_4bit = in_4bit;
      recipe.lora.target_modules = {"all-linear"};
      const Program program = plan_of(parse_config(config.dump(), name), recipe).program;
      std::map<StorageId, std::map<int64_t, int64_t>> ranges;  // begin -> end
      for (const Weight& weight : program.weights)
        for (int64_t layer = weight.parameter.first_layer; layer < weight.parameter.end_layer(program.layers); ++layer) {
          const Tensor& tensor = program.tensor(weight.tensor);
          const int64_t begin = tensor.offset + (layer - tensor.first_layer) * tensor.layer_stride;
          EXPECT_TRUE(ranges[tensor.storage].emplace(begin, begin + tensor.bytes()).second) << tensor.name;
        }
      for (const auto& [storage, taken] : ranges) {
        int64_t end = 0;
        for (const auto& [from, to] : taken) {
          EXPECT_GE(from, end);
          EXPECT_LT(from - end, 256);  // padding
          end = to;
        }
        EXPECT_LE(end, program.storage(storage).bytes);
        EXPECT_LT(program.storage(storage).bytes - end, 256);
      }
    }
}

int64_t products_with(const Program& program, Section section, const std::string& weight_name) {
  int64_t layers = 0;
  for_each_op(program.region(section), [&](const Op& op, const Region& loop) {
    const TensorId b = op.find(Slot::b);
    if (op.kind == OpKind::matmul && b != kNone && program.tensor(b).name == weight_name) layers += loop.count;
  });
  return layers;
}

TEST(DeepSeek, AdaptersStandInEveryLayerThatHasTheirModule) {
  const ModelSpec model = *find_model("DeepSeek-V3");
  Recipe recipe;
  recipe.lora.target_modules = {"all-linear"};
  const Program program = plan_of(model, recipe).program;
  const std::pair<const char*, int64_t> cases[] = {
      {"self_attn.q_a_proj", 61},          {"self_attn.q_b_proj", 61}, {"self_attn.kv_a_proj_with_mqa", 61},
      {"self_attn.kv_b_proj", 61},         {"self_attn.o_proj", 61},   {"mlp.gate_proj", 3},
      {"mlp.shared_experts.down_proj", 58}};
  for (const auto& [module, layers] : cases)
    EXPECT_EQ(products_with(program, Section::forward, std::string("model.layers.{}.") + module + ".lora_A.weight"), layers)
        << module;
  EXPECT_NE(
      std::find(program.notes.begin(), program.notes.end(), "all-linear leaves routed experts and routers as they are"),
      program.notes.end());
  EXPECT_EQ(lora_targets(program, {}), (std::vector<std::string>{"q_b_proj", "kv_b_proj"}));
  recipe.lora.target_modules = {"gate_proj"};  // PEFT would adapt the routed experts
  EXPECT_THROW(plan_of(model, recipe), Error);
}

// Multiply-adds count as 2; attention's products are halved, for its scores are causal.
TEST(DeepSeek, AForwardsProductsAreTheArchitectures) {
  const ModelSpec m = *find_model("DeepSeek-V3");
  const Program program = plan_of(m, {}).program;
  double flops = 0, scores = 0;
  for_each_op(program.region(Section::forward), [&](const Op& op, const Region& region) {
    const double work = rule_of(op.kind).work(program, op).flops * static_cast<double>(region.count);
    if (op.kind == OpKind::matmul || op.kind == OpKind::expert_matmul) flops += work;
    if (op.kind == OpKind::attention) scores += work;
  });
  const auto H = static_cast<double>(m.heads), D = static_cast<double>(m.head_size), V = 128.0, C = 7168.0;
  const double attention = C * 1536 + 1536 * H * D + C * (512 + 64) + 512 * H * (128 + V) + H * V * C;
  const double experts = 256 * C + 9 * 3 * C * 2048, plain = 3 * C * 18432;
  const double lora = 8 * (1536 + H * D) + 8 * (512 + H * (128 + V));  // on q_b_proj and kv_b_proj
  EXPECT_NEAR(flops / (2.0 * kTokens * (61 * (attention + lora) + 58 * experts + 3 * plain)), 1.0, 1e-9);
  EXPECT_NEAR(scores / (61.0 * kTokens * kTokens * H * (D + V)), 1.0, 1e-9);
}

TEST(DeepSeek, EveryTechniqueCanBePlanned) {
  for (const auto& [name, config] : test::unlike_layers(1000)) {
    const ModelSpec model = parse_config(config.dump(), name);
    for (int i = 0; i < 96; ++i) {
      Recipe recipe = i % 2 == 0 ? Recipe() : trained_in_full();
      recipe.seq_len = 64;
      if (i % 4 == 0) recipe.lora.target_modules = {"all-linear"};
      recipe.lora.use_dora = i % 8 == 2;
      recipe.lora.dropout = i % 8 == 6 ? 0.1 : 0.0;
      recipe.quantize.in_4bit = i % 2 == 0 && i % 3 == 0;
      recipe.gradient_checkpointing = i % 3 != 1;
      if (i % 3 == 2) recipe.checkpoint_layers = {0, 3};
      recipe.optim = i % 5 == 0 ? Optimizer::adafactor : i % 5 == 1 ? Optimizer::adamw_8bit : Optimizer::adamw;
      recipe.optimizer_in_bwd = i % 7 == 0;
      recipe.pages_states = i % 11 == 0 && recipe.optim != Optimizer::adafactor;
      if (i % 4 == 1) recipe.eval_data = "eval.jsonl";
      EXPECT_GT(plan_of(model, recipe).peak_bytes, 0) << name << " " << i;
    }
  }
}

TEST(DeepSeek, ARoutersCorrectionIsATableBesideTheParameters) {
  const Plan v3 = plan_of(*find_model("DeepSeek-V3"), {}), v2 = plan_of(*find_model("DeepSeek-V2"), {});
  EXPECT_EQ(v2.program.interface.router_correction, kNone);
  const Tensor& table = v3.program.tensor(v3.program.interface.router_correction);
  EXPECT_EQ(v3.program.storage(table.storage).bytes, 58 * 256 * 4);
}

TEST(DeepSeek, ThePlanOfTheLargestTakesTensOfMilliseconds) {
  Recipe recipe;
  recipe.quantize.in_4bit = true;
  const auto begin = std::chrono::steady_clock::now();
  const Plan plan = plan_of(*find_model("DeepSeek-V3"), recipe);
  const auto taken = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(plan.peak_bytes, int64_t{300} << 30);
  EXPECT_LT(std::chrono::duration<double>(taken).count(), 2.0);  // sanitizers and a busy machine; about 0.02 else
}

}  // namespace

}  // namespace snug::testing
