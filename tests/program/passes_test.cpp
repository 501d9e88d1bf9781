// Passes change a Program as they say, and nothing else.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "base/error.h"
#include "plan/dump.h"
#include "plan/layout.h"
#include "plan/workspaces.h"
#include "program/compile.h"
#include "program/dump.h"
#include "program/passes/lora.h"
#include "program/rules.h"
#include "targets/cpu/sizing.h"

namespace snug::testing {

namespace {

ModelSpec tiny(bool tied) {
  ModelSpec spec{.name = "tiny", .architecture = "LlamaForCausalLM", .family = "llama"};
  spec.hidden_size = 32;
  spec.intermediate_size = 80;
  spec.vocab_size = 96;
  spec.layers = 4;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_size = 8;
  spec.max_position = 64;
  spec.tied_embeddings = tied;
  return spec;
}

Recipe recipe_of(Method method) {
  Recipe recipe;
  recipe.method = method;
  recipe.batch = 2;
  recipe.seq_len = 16;
  return recipe;
}

std::map<OpKind, int64_t> kinds_of(const Region& region) {
  std::map<OpKind, int64_t> counts;
  for_each_op(region, [&](const Op& op, const Region&) { ++counts[op.kind]; });
  return counts;
}

TEST(Rules, every_kind_has_its_own_rule_with_shapes_and_work) {
  for (const OpKind kind : kOpKinds) {
    const OpRule& rule = rule_of(kind);
    EXPECT_TRUE(rule.check != nullptr && rule.work != nullptr) << name_of(kind);
    const cpu::OpSizing& sizing = cpu::sizing_of(kind);
    EXPECT_TRUE(sizing.cut != nullptr && sizing.workspace != nullptr) << name_of(kind);
  }
}

TEST(Compile, layers_and_micro_batches_stay_folded) {
  ModelSpec deep = tiny(true);
  deep.layers = 126;
  Recipe recipe = recipe_of(Method::full);
  recipe.accumulation = 32;
  EXPECT_EQ(kinds_of(compile(deep, recipe).root), kinds_of(compile(tiny(true), recipe_of(Method::full)).root));
}

TEST(Compile, a_frozen_weight_has_no_gradient_and_no_state) {
  const Program program = compile(tiny(false), recipe_of(Method::lora));
  for (const Weight& weight : program.weights) {
    EXPECT_EQ(weight.trainable, weight.adapter) << weight.parameter.name;
    EXPECT_EQ(weight.gradient == kNone, !weight.trainable) << weight.parameter.name;
    EXPECT_EQ(weight.state(Slot::first_moment) == kNone, !weight.trainable) << weight.parameter.name;
  }
}

TEST(Lora, two_products_stand_beside_each_target_and_the_rest_is_frozen) {
  Recipe recipe = recipe_of(Method::lora);
  recipe.lora.target_modules = {"q_proj", "down_proj"};
  const auto with = kinds_of(compile(tiny(true), recipe).region(Section::forward));
  const auto without = kinds_of(compile(tiny(true), recipe_of(Method::full)).region(Section::forward));
  EXPECT_EQ(with.at(OpKind::matmul), without.at(OpKind::matmul) + 4);
}

TEST(Lora, no_gradient_reaches_the_embedding_when_it_is_frozen) {
  EXPECT_FALSE(kinds_of(compile(tiny(true), recipe_of(Method::lora)).root).contains(OpKind::embedding_backward));
  EXPECT_TRUE(kinds_of(compile(tiny(true), recipe_of(Method::full)).root).contains(OpKind::embedding_backward));
}

TEST(Lora, saving_one_of_a_tied_pair_trains_a_copy_and_says_so) {
  for (const char* module : {"lm_head", "embed_tokens"}) {
    Recipe recipe = recipe_of(Method::lora);
    recipe.lora.modules_to_save = {module};
    const Program program = compile(tiny(true), recipe);
    const auto saved =
        std::find_if(program.weights.begin(), program.weights.end(), [](const Weight& w) { return w.copied; });
    ASSERT_NE(saved, program.weights.end());
    EXPECT_EQ(saved->parameter.module, module);
    EXPECT_EQ(saved->source, "model.embed_tokens.weight");
    EXPECT_FALSE(program.weights.front().trainable);
    EXPECT_EQ(program.notes.size(), 1U);
    EXPECT_EQ(program.total_parameters(), compile(tiny(true), recipe_of(Method::full)).total_parameters());
  }
}

TEST(Lora, patterns_give_modules_a_rank_and_a_scale_of_their_own) {
  Recipe recipe = recipe_of(Method::lora);
  recipe.lora.target_modules = {"all-linear"};
  recipe.lora.rank_pattern = {{"q_proj", 3}, {"mlp.up_proj", 16}, {"nothing", 2}};
  recipe.lora.alpha_pattern = {{"q_proj", 6.0}};
  recipe.lora.use_rslora = true;
  const Program program = compile(tiny(false), recipe);
  for (const Weight& weight : program.weights) {
    if (weight.origin != Origin::lora_a) continue;
    const std::string& module = weight.parameter.module;
    EXPECT_EQ(weight.parameter.shape[0], module == "q_proj" ? 3 : module == "up_proj" ? 16 : 8) << module;
    for_each_op(program.region(Section::forward), [&](const Op& op, const Region&) {
      if (op.find(Slot::b) != weight.tensor) return;
      EXPECT_DOUBLE_EQ(op.attributes.scale, module == "q_proj"    ? 6.0 / std::sqrt(3.0)
                                            : module == "up_proj" ? 8.0 / 4.0
                                                                  : 8.0 / std::sqrt(8.0));
    });
  }
  ASSERT_EQ(program.notes.size(), 1U);
  EXPECT_EQ(program.notes.front(), "rank_pattern 'nothing' fits no adapted module");
}

std::string refusal_of(const Lora& lora) {
  Recipe recipe = recipe_of(Method::lora);
  recipe.lora = lora;
  try {
    compile(tiny(false), recipe);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Lora, what_cannot_be_folded_or_saved_is_refused_by_name) {
  EXPECT_NE(refusal_of({.rank_pattern = {{"layers.1.self_attn.q_proj", 4}}}).find("tells layers of q_proj apart"),
            std::string::npos);
  EXPECT_EQ(refusal_of({.rank_pattern = {{"layers.1.self_attn.q_proj", 8}}}), "accepted");  // as all the others
  EXPECT_NE(refusal_of({.alpha_pattern = {{"self_attn.q_proj", 4}, {"q_proj", 2}}}).find("PEFT forgets their order"),
            std::string::npos);
  EXPECT_EQ(refusal_of({.alpha_pattern = {{"q_proj", 4}, {"self_attn.q_proj", 2}}}), "accepted");
  EXPECT_NE(refusal_of({.target_modules = {"lm_head"}, .use_dora = true}).find("DoRA on lm_head"), std::string::npos);
}

TEST(Dora, trains_a_magnitude_for_each_row_and_measures_rows_in_every_forward) {
  Recipe recipe = recipe_of(Method::lora);
  recipe.lora.target_modules = {"q_proj", "down_proj"};
  recipe.lora.use_dora = true;
  const Program program = compile(tiny(false), recipe);
  std::vector<int64_t> magnitudes;
  for (const Weight& weight : program.weights)
    if (weight.origin == Origin::row_norms) {
      EXPECT_TRUE(weight.trainable && weight.adapter && weight.parameter.name.ends_with(".lora_magnitude_vector"));
      magnitudes.push_back(weight.parameter.elements());
    }
  EXPECT_EQ(magnitudes, (std::vector<int64_t>{32, 32}));
  EXPECT_EQ(kinds_of(program.region(Section::forward)).at(OpKind::dora_norm), 2);
  EXPECT_EQ(kinds_of(program.region(Section::backward)).at(OpKind::scale_columns_backward), 2);
}

TEST(Dropout, stands_before_adapters_in_training_alone_and_is_drawn_again_in_backward) {
  for (const bool dora : {false, true}) {
    Recipe recipe = recipe_of(Method::lora);
    recipe.lora.target_modules = {"q_proj", "v_proj", "down_proj"};
    recipe.eval_data = "rows.jsonl";
    const Program without = compile(tiny(false), recipe);
    recipe.lora.dropout = 0.1;
    recipe.lora.use_dora = dora;
    const Program with = compile(tiny(false), recipe);
    EXPECT_EQ(kinds_of(with.region(Section::forward)).at(OpKind::dropout), dora ? 6 : 3);
    EXPECT_FALSE(kinds_of(with.region(Section::evaluate)).contains(OpKind::dropout));
    EXPECT_FALSE(kinds_of(without.root).contains(OpKind::dropout));
    // For each module one on the gradient and one that draws what A read; DoRA has one more gradient.
    EXPECT_EQ(kinds_of(with.region(Section::backward)).at(OpKind::dropout), dora ? 9 : 6);
  }
}

TEST(Noise, stands_on_the_embeddings_of_tokens_in_training_alone) {
  Recipe recipe = recipe_of(Method::full);
  recipe.eval_data = "rows.jsonl";
  EXPECT_FALSE(kinds_of(compile(tiny(false), recipe).root).contains(OpKind::noise));
  recipe.neftune_noise_alpha = 5;
  const Program program = compile(tiny(false), recipe);
  EXPECT_EQ(kinds_of(program.root).at(OpKind::noise), 1);
  const std::vector<Item>& items = program.region(Section::forward).items;
  const auto noise = std::find_if(items.begin(), items.end(),
                                  [](const Item& item) { return item.op() != nullptr && item.op()->kind == OpKind::noise; });
  ASSERT_TRUE(noise != items.end() && noise != items.begin());
  const Op* lookup = (noise - 1)->op();
  ASSERT_TRUE(lookup != nullptr && lookup->kind == OpKind::embedding);
  EXPECT_EQ(noise->op()->find(Slot::x), lookup->find(Slot::out));
  const auto numbers = static_cast<double>(program.seq_len * program.tensor(lookup->find(Slot::out)).dim(1));
  EXPECT_DOUBLE_EQ(noise->op()->attributes.scale, 5 / std::sqrt(numbers));  // transformers.integrations.neftune
}

TEST(Lora, modules_that_do_not_exist_are_refused_by_name) {
  for (bool save : {false, true}) {
    Recipe recipe = recipe_of(Method::lora);
    (save ? recipe.lora.modules_to_save : recipe.lora.target_modules) = {"c_attn"};
    EXPECT_THROW(
        try { compile(tiny(true), recipe); } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("c_attn"), std::string::npos);
          throw;
        },
        Error);
  }
}

TEST(Recompute, a_recomputed_block_repeats_its_forward_but_not_what_only_hands_on) {
  Recipe recipe = recipe_of(Method::full);
  recipe.gradient_checkpointing = true;
  const Program program = compile(tiny(true), recipe);
  const auto backward = kinds_of(program.region(Section::backward));
  EXPECT_EQ(backward.at(OpKind::attention), 1);
  EXPECT_EQ(backward.at(OpKind::activation), 1);
  EXPECT_EQ(backward.at(OpKind::add), 1);  // not the block's last, whose result the next block has
}

TEST(Recompute, runs_of_equal_layers_stay_folded) {
  Recipe recipe = recipe_of(Method::full);
  recipe.gradient_checkpointing = true;
  recipe.checkpoint_layers = {0, 1, 3};
  const Program program = compile(tiny(true), recipe);
  std::vector<std::pair<int64_t, int64_t>> runs;
  for (const Item& item : program.region(Section::forward).items)
    if (const Region* region = item.region()) runs.emplace_back(region->first, region->count);
  EXPECT_EQ(runs, (std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {2, 1}, {3, 1}}));
}

TEST(Recompute, a_layer_that_does_not_exist_is_refused) {
  Recipe recipe = recipe_of(Method::full);
  recipe.gradient_checkpointing = true;
  recipe.checkpoint_layers = {4};
  EXPECT_THROW(compile(tiny(true), recipe), Error);
}

// The dump is what a reviewer reads: a refactoring leaves it identical. To accept a change on purpose, run with
// SNUG_UPDATE_GOLDEN=1.
TEST(Dump, programs_and_layouts_are_what_they_were) {
  const struct {
    const char* name;
    Recipe recipe;
  } cases[] = {{"full", recipe_of(Method::full)},
               {"lora_checkpointed",
                [] {
                  Recipe recipe = recipe_of(Method::lora);
                  recipe.bf16 = recipe.gradient_checkpointing = true;
                  recipe.checkpoint_layers = {1, 2};
                  recipe.lora.target_modules = {"all-linear"};
                  return recipe;
                }()},
               {"full_in_a_ring",
                [] {
                  Recipe recipe = recipe_of(Method::full);
                  recipe.batch = 1;
                  recipe.parallel.ranks = recipe.parallel.context = 4;
                  recipe.parallel.context_comm = ContextComm::p2p;
                  recipe.bf16 = true;
                  return recipe;
                }()},
               {"full_in_backward_paged", [] {
                  Recipe recipe = recipe_of(Method::full);
                  recipe.bf16 = recipe.pages_states = recipe.optimizer_in_bwd = true;
                  recipe.optim = Optimizer::adamw_8bit;
                  return recipe;
                }()}};
  for (const auto& [name, recipe] : cases) {
    Program program = compile(tiny(true), recipe);
    fit_to_target(program, {.threads = 2});
    const std::string text = dump(program) + dump(lay_out(program), program);
    const std::string path = std::string(SNUG_SOURCE_DIR) + "/tests/golden/programs/" + name + ".txt";
    if (std::getenv("SNUG_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
    std::ostringstream golden;
    golden << std::ifstream(path).rdbuf();
    EXPECT_EQ(text, golden.str()) << name;
  }
}

}  // namespace

}  // namespace snug::testing
