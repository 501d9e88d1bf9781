// Shadow runs: the plan neither shares what is alive nor asks for what is not used.

#include <gtest/gtest.h>

#include <cstring>

#include "families.h"
#include "kernels/cpu/product.h"
#include "model/config.h"
#include "run/in_place.h"
#include "sanitized.h"
#include "targets/cpu/products.h"
#include "temporary_directory.h"
#include "train/initialize.h"
#include "train/support_golden.h"
#include "train/support_shadow.h"

namespace snug::testing {

namespace {

using Json = nlohmann::json;

struct Case {
  std::string name;
  Recipe recipe;
  std::string family = {};  // empty: small_model()
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (bool lora : {false, true})
    for (bool bf16 : {false, true})
      for (int checkpointing : {0, 1, 2}) {
        Recipe recipe;
        recipe.method = lora ? Method::lora : Method::full;
        recipe.lora = {.r = 8,
                       .alpha = 16,
                       .target_modules = {
                           "all-linear",
                       }};
        recipe.bf16 = bf16;
        recipe.gradient_checkpointing = checkpointing > 0;
        if (checkpointing == 2) recipe.checkpoint_layers = {1};
        static const char* const kNames[] = {
            "full_f32", "full_f32_checkpointed", "full_f32_mixed", "full_bf16", "full_bf16_checkpointed", "full_bf16_mixed",
            "lora_f32", "lora_f32_checkpointed", "lora_f32_mixed", "lora_bf16", "lora_bf16_checkpointed", "lora_bf16_mixed"};
        list.push_back({kNames[list.size()], recipe});
      }
  for (const size_t like : {size_t{3}, size_t{5}, size_t{10}}) {
    Case half = list[like];
    half.name.replace(half.name.find("bf16"), 4, "fp16");
    half.recipe.bf16 = false;
    half.recipe.fp16 = true;
    list.push_back(half);
  }
  for (bool dora : {false, true})
    for (int which : {6, 10, 11}) {  // LoRA in fp32; in bf16, recomputed and partly so
      Recipe recipe = list[static_cast<size_t>(which)].recipe;
      recipe.lora.dropout = 0.25;
      recipe.lora.use_dora = dora;
      recipe.lora.rank_pattern = {{"q_proj", 3}};
      list.push_back({list[static_cast<size_t>(which)].name + (dora ? "_dora_dropout" : "_dropout"), recipe});
    }
  const size_t plain = list.size();
  for (const auto& [family, config] : test::families(1031))
    for (bool lora : {false, true}) {
      Recipe recipe = list[lora ? 10 : 0].recipe;  // LoRA in bf16, recomputed; full in fp32
      list.push_back({family + (lora ? "_lora" : "_full"), recipe, family});
    }
  for (size_t i = plain; i < plain + 2 * test::families(1031).size(); ++i) {  // every family's linears by rows
    if (list[i].recipe.method == Method::full) continue;
    Case dora = list[i];
    dora.name += "_dora";
    dora.recipe.lora.use_dora = true;
    list.push_back(std::move(dora));
  }
  const auto add = [&](const char* name, size_t like, bool paged, bool in_backward, const char* family = "") {
    Recipe recipe = list[like].recipe;
    recipe.pages_states = paged;
    recipe.optimizer_in_bwd = in_backward;
    if (in_backward) recipe.max_grad_norm = 0;
    list.push_back({name, recipe, family});
  };
  add("paged", 0, true, false, "wide");
  add("paged_bf16_mixed", 5, true, false);
  list.back().recipe.optim = Optimizer::adamw_8bit;
  add("in_backward", 0, false, true);
  add("in_backward_mixed", 2, false, true);
  add("in_backward_lora_bf16_checkpointed", 10, false, true);
  add("in_backward_paged", 0, true, true, "wide");
  add("in_backward_paged_bf16_mixed", 5, true, true);
  const auto add_away = [&](const char* name, size_t like, bool activations, bool weights) {
    Recipe recipe = list[like].recipe;
    recipe.offload_activations = activations;
    recipe.offload_weights = weights;
    list.push_back({name, recipe});
  };
  add_away("activations_away", 0, true, false);
  add_away("activations_away_mixed", 5, true, false);
  add_away("weights_away_lora_bf16", 9, false, true);
  add_away("all_away_lora_bf16_checkpointed", 10, true, true);
  add_away("all_away_lora_mixed", 8, true, true);
  add_away("trained_away", 0, false, true);
  add_away("all_away_bf16_mixed", 5, true, true);
  for (const size_t last : {list.size() - 2, list.size() - 1}) list[last].recipe.offload_gradients = true;
  list.back().recipe.pages_states = true;
  for (const auto& [name, like] : {std::pair("full_f32_parts", 1), std::pair("lora_bf16_parts", 10)}) {
    list.push_back({name, list[static_cast<size_t>(like)].recipe});
    list.back().recipe.checkpoint_parts = {BlockPart::norms, BlockPart::activations, BlockPart::attention};
  }
  for (const auto& [name, like] : {std::pair("full_f32_inputs", 1), std::pair("lora_bf16_inputs", 10)}) {
    list.push_back({name, list[static_cast<size_t>(like)].recipe});
    list.back().recipe.checkpoint_inputs = 2;  // segments of two blocks and of one
  }
  return list;
}

// A model large enough that padding to cache lines is small beside its tensors.
ModelSpec small_model() {
  ModelSpec spec{.name = "small", .architecture = "LlamaForCausalLM", .family = "llama"};
  spec.hidden_size = 96;
  spec.intermediate_size = 208;
  spec.vocab_size = 1031;
  spec.layers = 3;
  spec.heads = 6;
  spec.kv_heads = 2;
  spec.head_size = 16;
  spec.max_position = 512;
  spec.tied_embeddings = true;
  return spec;
}

ModelSpec model_of(const std::string& family) {
  if (family == "wide") {  // its embedding has several chunks of paged states
    ModelSpec spec = small_model();
    spec.vocab_size = 12001;
    return spec;
  }
  for (const auto& [name, config] : test::families(1031))
    if (name == family) return parse_config(config.dump(), name);
  return small_model();
}

// A checkpoint of the family, made once.
std::filesystem::path model_directory(const std::string& family = {}) {
  static const test::TemporaryDirectory made;
  const auto path = made / ("model-" + family);
  if (!std::filesystem::exists(path)) initialize_checkpoint(model_of(family), DType::f32, 1, path, {});
  return path;
}

// Two micro-batches of packed documents, partly masked.
std::vector<Json> window() {
  std::vector<Json> batches;
  for (int which = 0; which < 2; ++which) {
    Json batch{{"tokens", Json::array()}, {"labels", Json::array()}, {"documents", {{40, 1, 88}, {129}}}};
    for (int row = 0; row < 2; ++row) {
      Json tokens = Json::array(), labels = Json::array();
      for (int t = 0; t < 129; ++t) {
        tokens.push_back((t * 37 + row * 11 + which * 5) % 1031);
        labels.push_back(t % 7 == 0 ? -100 : tokens.back().get<int>());
      }
      batch["tokens"].push_back(tokens);
      batch["labels"].push_back(labels);
    }
    batches.push_back(batch);
  }
  return batches;
}

// The optimizer in backward takes one.
std::vector<Json> window_for(const Recipe& recipe) {
  std::vector<Json> batches = window();
  if (recipe.optimizer_in_bwd) batches.pop_back();
  return batches;
}

constexpr int kShadowSteps = kSanitized ? 2 : 3;

std::vector<double> train(GoldenRun& run, const std::vector<Json>& batches) {
  std::vector<double> losses;
  for (int step = 1; step <= kShadowSteps; ++step) {
    run.set_rate(1e-3, step);
    losses.push_back(run.forward_backward(batches));
    run.update(1e-3, step);
  }
  return losses;
}

std::vector<std::byte> trained_bytes(GoldenRun& run) {
  std::vector<std::byte> bytes;
  const Program& program = run.plan().program;
  for (const Weight& weight : program.weights)
    for (int64_t layer = 0; weight.trainable && layer < (weight.parameter.per_layer ? program.layers : 1); ++layer) {
      const auto part = InPlace::elements(run.executor(), weight.tensor, layer);
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
  return bytes;
}

// The share of what the smallest product asks for, addresses that brgemm keeps: where our own panels multiply, nobody writes
// them.
double brgemms_own(const Plan& plan) {
  if (kernels::has_brgemm()) return 0;
  return static_cast<double>(product_scratch_bytes(1, 1, 1, OperandB::plain, false, plan.target.threads)) /
         static_cast<double>(plan.layout.device().bytes);
}

class ShadowRun : public ::testing::TestWithParam<Case> {};

TEST_P(ShadowRun, gives_the_same_bits_touches_no_red_zone_and_writes_99_percent_of_the_plan) {
  GoldenRun plain(model_directory(GetParam().family), GetParam().recipe, window_for(GetParam().recipe));
  plain.load();
  const std::vector<double> losses = train(plain, window_for(GetParam().recipe));

  constexpr int64_t kRedZone = 256;
  GoldenRun zoned(model_directory(GetParam().family), GetParam().recipe, window_for(GetParam().recipe), kRedZone);
  Shadow guard(zoned.executor(), kRedZone);
  zoned.executor().observe(&guard);
  zoned.load();
  EXPECT_EQ(train(zoned, window_for(GetParam().recipe)), losses);
  EXPECT_EQ(trained_bytes(zoned), trained_bytes(plain));
  guard.written_share();
  EXPECT_GT(guard.zones_checked(), 300);
  EXPECT_EQ(guard.zones_touched(), 0);

  if (kSanitized) return;  // how much is written is the plan's, and told without one
  GoldenRun tight(model_directory(GetParam().family), GetParam().recipe, window_for(GetParam().recipe));
  Shadow counter(tight.executor(), 0);
  tight.executor().observe(&counter);
  tight.load();
  EXPECT_EQ(train(tight, window_for(GetParam().recipe)), losses);
  EXPECT_GE(counter.written_share() + brgemms_own(tight.plan()), 0.99);
}

INSTANTIATE_TEST_SUITE_P(recipes, ShadowRun, ::testing::ValuesIn(cases()), [](const auto& test) { return test.param.name; });

// All of them on the smallest model, one or the other on each family.
std::vector<Optimizer> optimizers_for(const std::string& family, Method method) {
  const std::vector<Optimizer> all = {Optimizer::adamw_8bit, Optimizer::adamw, Optimizer::adamw_bf16};
  if (family.empty()) return all;
  return {all[(family.size() + (method == Method::lora ? 1 : 0)) % all.size()]};
}

// What changes memory alone changes no bit: of every family, in full and by LoRA.
TEST(SameBits, come_of_paged_states_and_of_the_optimizer_in_backward) {
  std::vector<std::string> names = {"", "wide"};
  for (const auto& [family, config] : thinned(test::families(1031), 3)) names.push_back(family);
  for (const std::string& family : names)
    for (const Method method : {Method::full, Method::lora})
      for (const Optimizer optim : optimizers_for(family, method)) {
        Recipe recipe;
        recipe.method = method;
        recipe.lora.target_modules = {"all-linear"};
        recipe.optim = optim;
        recipe.weight_decay = 0.1;
        recipe.max_grad_norm = 0;
        const std::vector<Json> batches = {window().front()};
        GoldenRun plain(model_directory(family), recipe, batches);
        plain.load();
        const std::vector<double> losses = train(plain, batches);
        for (const auto& [paged, in_backward] : {std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
          if (!family.empty() && !(paged && in_backward)) continue;  // both at once on each family
          recipe.pages_states = paged;
          recipe.optimizer_in_bwd = in_backward;
          GoldenRun other(model_directory(family), recipe, batches);
          other.load();
          EXPECT_EQ(train(other, batches), losses) << family;
          EXPECT_TRUE(trained_bytes(other) == trained_bytes(plain)) << family << " " << paged << in_backward;
          const double norm = plain.executor().scalar(Scalar::gradient_norm);
          EXPECT_NEAR(other.executor().scalar(Scalar::gradient_norm), norm, 1e-12 * norm) << family;
        }
        recipe.pages_states = recipe.optimizer_in_bwd = false;
      }
}

TEST(ShadowRun, a_write_behind_a_storage_is_seen) {
  GoldenRun run(model_directory(), cases().front().recipe, window(), 256);
  Shadow guard(run.executor(), 256);
  run.executor().observe(&guard);
  run.load();
  const Weight& weight = run.plan().program.weights.front();
  const auto bytes = run.plan().program.storage(run.plan().program.tensor(weight.tensor).storage).bytes;
  InPlace::arena(run.executor())[run.plan().layout.offset_of(run.plan().program.tensor(weight.tensor).storage, 0) +
                                 align_up(bytes, kAlignment)] = std::byte{1};
  guard.written_share();
  EXPECT_EQ(guard.zones_touched(), 1);
}

}  // namespace

}  // namespace snug::testing
