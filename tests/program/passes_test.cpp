// Passes change a Program as they say, and nothing else.

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(Rules, every_kind_has_its_own_rule_with_shapes_cut_workspace_and_work) {
  for (int kind = 0; kind < kOpKindCount; ++kind) {
    const OpRule& rule = rule_of(static_cast<OpKind>(kind));
    EXPECT_EQ(rule.kind, static_cast<OpKind>(kind)) << name_of(rule.kind);
    EXPECT_TRUE(rule.check != nullptr && rule.cut != nullptr && rule.workspace != nullptr && rule.work != nullptr)
        << name_of(rule.kind);
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
  const auto with = kinds_of(compile(tiny(true), recipe).region("forward"));
  const auto without = kinds_of(compile(tiny(true), recipe_of(Method::full)).region("forward"));
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
  const auto backward = kinds_of(program.region("backward"));
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
  for (const Item& item : program.region("forward").items)
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
  } cases[] = {{"full", recipe_of(Method::full)}, {"lora_checkpointed", [] {
                                                     Recipe recipe = recipe_of(Method::lora);
                                                     recipe.bf16 = recipe.gradient_checkpointing = true;
                                                     recipe.checkpoint_layers = {1, 2};
                                                     recipe.lora.target_modules = {"all-linear"};
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
