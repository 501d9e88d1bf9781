// The search over meshes against plans of all of them, one by one.

#include "advise/mesh_search.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/catalogue.h"
#include "plan/accelerator_target.h"
#include "plan/plan.h"
#include "recipe/keys.h"

namespace snug::testing {

namespace {

Target nodes_of(const char* card, int64_t gpus) {
  Target target = target_of(*find_accelerator(card));
  target.cost.ranks_per_node = gpus;
  return target;
}

Recipe recipe_for(int64_t ranks) {
  Recipe recipe;
  recipe.method = Method::full;
  recipe.bf16 = true;
  recipe.seq_len = 4096;
  recipe.accumulation = 2;
  recipe.parallel.ranks = ranks;
  return recipe;
}

// The fastest that fits, of plans in full; seconds.
double fastest_of_all(const ModelSpec& model, const Target& target, Recipe recipe) {
  double fastest = INFINITY;
  const int64_t ranks = recipe.parallel.ranks, accumulation = recipe.accumulation;
  for (int64_t tensor = 1; tensor <= std::min(ranks, target.cost.ranks_per_node); tensor *= 2)
    for (int64_t context = 1; context <= 4; context *= 2)
      for (int64_t pipeline = 1; tensor * context * pipeline <= ranks; pipeline *= 2)
        for (int64_t variant = 0; variant < 4 * 2 * 3; ++variant) {
          const int64_t stage = variant % 4;
          recipe.accumulation = accumulation * tensor * context * pipeline;
          recipe.gradient_checkpointing = variant / 4 % 2 == 1;
          recipe.parallel.chunks = int64_t{1} << variant / 8;
          recipe.parallel.tensor = tensor, recipe.parallel.context = context, recipe.parallel.pipeline = pipeline;
          recipe.parallel.zero_stage = stage;
          try {
            validate(recipe);
            const Plan plan = make_plan(model, recipe, target);
            if (plan.fits()) fastest = std::min(fastest, plan.step_time.seconds);
          } catch (const Error&) {
          }
        }
  return fastest;
}

TEST(MeshSearch, finds_the_fastest_of_all_that_fit) {
  const ModelSpec model = resolve_model("meta-llama/Llama-3.1-8B");
  const Target target = nodes_of("H100", 8);
  const Recipe recipe = recipe_for(8);
  const MeshAnswer answer = search_meshes(model, recipe, target, {});
  ASSERT_FALSE(answer.fastest.empty());
  EXPECT_NEAR(answer.fastest.front().step_seconds, fastest_of_all(model, target, recipe),
              0.01 * answer.fastest.front().step_seconds);
  for (const MeshChoice& choice : answer.fastest) {
    const Plan plan = make_plan(model, choice.recipe, target);
    EXPECT_TRUE(plan.fits());
    EXPECT_EQ(plan.peak_bytes, choice.peak_bytes);
    const RankMesh& mesh = plan.program.mesh;
    EXPECT_EQ(choice.recipe.batch * choice.recipe.accumulation * mesh.batches(), answer.step_rows) << "the same step";
  }
}

// Where sequences are long, keys and values that go round a ring take less than those that are gathered.
TEST(MeshSearch, tries_rings_of_keys_and_values) {
  const ModelSpec model = resolve_model("Qwen/Qwen3-4B-Instruct-2507");
  Recipe recipe = recipe_for(16);
  recipe.method = Method::lora;
  recipe.seq_len = 262144;
  recipe.accumulation = 1;
  recipe.memory_bytes = int64_t{1} << 30;
  const Target target = nodes_of("RTX-4090", 8);
  const MeshAnswer gathered = search_meshes(model, recipe, target, {"cp_comm_type"});
  ASSERT_TRUE(gathered.least.has_value());
  recipe.memory_bytes = gathered.least->peak_bytes - 1;
  EXPECT_TRUE(search_meshes(model, recipe, target, {"cp_comm_type"}).fastest.empty());
  const MeshAnswer both = search_meshes(model, recipe, target, {});
  ASSERT_FALSE(both.fastest.empty());
  EXPECT_EQ(both.fastest.front().recipe.parallel.context_comm, ContextComm::p2p);
  EXPECT_TRUE(make_plan(model, both.fastest.front().recipe, target).fits());
}

TEST(MeshSearch, keeps_what_was_asked_for_and_splits_products_within_a_node) {
  const ModelSpec model = resolve_model("meta-llama/Llama-3.1-8B");
  Recipe recipe = recipe_for(32);
  recipe.parallel.tensor = 2;
  recipe.parallel.zero_stage = 1;
  for (const MeshChoice& choice : search_meshes(model, recipe, nodes_of("H100", 4), {"tp_size", "zero_stage"}).fastest) {
    EXPECT_EQ(choice.recipe.parallel.tensor, 2);
    EXPECT_EQ(choice.recipe.parallel.zero_stage, 1);
  }
  for (const MeshChoice& choice : search_meshes(model, recipe, nodes_of("H100", 4), {}).fastest)
    EXPECT_LE(choice.recipe.parallel.tensor, 4);
}

TEST(MeshSearch, names_what_needs_least_where_nothing_fits) {
  const ModelSpec model = resolve_model("meta-llama/Llama-3.1-70B");
  Recipe recipe = recipe_for(2);
  const MeshAnswer none = search_meshes(model, recipe, nodes_of("H100", 8), {});
  EXPECT_TRUE(none.fastest.empty());
  recipe.method = Method::lora;
  recipe.seq_len = 8192;
  const MeshAnswer adapters = search_meshes(model, recipe, nodes_of("RTX 4090", 8), {});
  EXPECT_TRUE(adapters.fastest.empty());
  ASSERT_TRUE(adapters.least.has_value());
  EXPECT_GT(adapters.least->peak_bytes, budget_of(recipe, nodes_of("RTX 4090", 8)));
}

// A ring that leaves the node is as slow as the network, one that does not is not.
TEST(MeshSearch, the_network_between_nodes_counts) {
  const ModelSpec model = resolve_model("meta-llama/Llama-3.1-8B");
  Recipe recipe = recipe_for(8);
  recipe.parallel.tensor = 8;
  const auto seconds = [&](int64_t node) { return make_plan(model, recipe, nodes_of("H100", node)).step_time.seconds; };
  EXPECT_DOUBLE_EQ(seconds(8), seconds(16));
  EXPECT_GT(seconds(4), 1.2 * seconds(8));
}

}  // namespace

}  // namespace snug::testing
