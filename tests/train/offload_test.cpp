// What lies on disk while others compute gives the same bits as what stays.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <random>

#include "plan/layout.h"
#include "plan/workspaces.h"
#include "program/compile.h"
#include "program/support_tiny.h"
#include "run/synthetic_run.h"
#include "sanitized.h"

namespace snug::testing {

namespace {

class Looker final : public Observer {
  void before(const Op&, const Binding&) override {}
  void after(const Op&, const Binding&) override {}
};

struct Outcome {
  std::vector<std::byte> trained;  // after three steps
  int64_t device = 0, disk = 0;    // bytes
  PageLanes::Traffic traffic;
};

// A layer's trained weights, wherever they lie.
void take(Executor& executor, TensorId weight, int64_t layer, std::vector<std::byte>& out) {
  std::vector<std::byte> bytes(static_cast<size_t>(executor.program().tensor(weight).bytes()));
  executor.transfer().read_bytes(weight, layer, 0, bytes);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

constexpr int64_t kRandomSteps = kSanitized ? 2 : 3;

// `look`: pages move where the Program has them, not ahead of it.
Outcome outcome_of(const ModelSpec& spec, const Recipe& recipe, bool look = false, const SavedChoice* saved = nullptr) {
  Program program = compile(spec, recipe, saved);
  fit_to_target(program, {.threads = 2});
  const Layout layout = lay_out(program);
  Executor executor(program, layout, std::filesystem::temp_directory_path() / ("snug-offload-" + std::to_string(getpid())));
  fill_at_random(executor, spec);
  Looker looker;
  if (look) executor.observe(&looker);
  RandomBatches batches(executor, spec);
  for (int64_t step = 1; step <= kRandomSteps; ++step) run_random_step(executor, batches, step);
  Outcome outcome{.device = layout.device().bytes, .disk = layout.of(Home::disk).bytes, .traffic = executor.traffic()};
  for (const Weight& weight : program.weights) {
    if (!weight.trainable) continue;
    for (int64_t layer = weight.parameter.first_layer; layer < weight.parameter.end_layer(program.layers); ++layer)
      take(executor, weight.tensor, layer, outcome.trained);
  }
  return outcome;
}

Recipe recipe_of(Method method) {
  Recipe recipe;
  recipe.method = method;
  recipe.batch = 2;
  recipe.seq_len = 48;
  recipe.accumulation = 2;
  recipe.lora = {.r = 4, .alpha = 8, .target_modules = {"all-linear"}};
  return recipe;
}

ModelSpec larger() {
  ModelSpec spec = tiny_decoder();
  spec.hidden_size = 64;
  spec.intermediate_size = 192;
  spec.layers = 5;
  spec.head_size = 16;
  return spec;
}

// Activations, weights, gradients on disk.
constexpr std::array<std::array<bool, 3>, 7> kWays = {{{true, false, false},
                                                       {false, true, false},
                                                       {true, true, false},
                                                       {false, false, true},
                                                       {true, false, true},
                                                       {false, true, true},
                                                       {true, true, true}}};

class Offloaded : public ::testing::TestWithParam<std::tuple<Method, bool, int>> {};

TEST_P(Offloaded, gives_the_bits_of_what_stays) {
  const auto& [method, bf16, checkpointing] = GetParam();
  Recipe recipe = recipe_of(method);
  recipe.bf16 = bf16;
  if (checkpointing % 2 == 1) recipe.accumulation = 1;
  recipe.gradient_checkpointing = checkpointing > 0;
  if (checkpointing == 2) recipe.checkpoint_layers = {1, 3};
  if (checkpointing == 3) recipe.checkpoint_parts = {BlockPart::activations, BlockPart::norms};
  const Outcome stays = outcome_of(larger(), recipe);
  ASSERT_FALSE(stays.trained.empty());
  EXPECT_EQ(stays.traffic.fetched + stays.traffic.sent + stays.disk, 0);
  const bool full = method == Method::full;
  for (const auto& [activations, weights, gradients] : kWays) {
    if (gradients && !full) continue;
    Recipe away = recipe;
    away.offload_activations = activations;
    away.offload_weights = weights;
    away.offload_gradients = gradients;
    for (const bool look : {false, true}) {
      const Outcome moved = outcome_of(larger(), away, look);
      EXPECT_TRUE(moved.trained == stays.trained) << activations << weights << gradients << look;
      EXPECT_LT(moved.device, stays.device) << activations << weights << gradients << look;
      EXPECT_GT(moved.disk, 0);
      EXPECT_GT(moved.traffic.fetched, 0);
    }
  }
}

// Some blocks' matrices stay: they are fetched once, when all is loaded, the others twice a micro-batch.
TEST(OffloadedLayers, give_the_bits_of_what_stays_and_move_their_share) {
  constexpr int64_t kLayers = 5, kPasses = kRandomSteps * 2 * 2;  // steps, micro-batches, forward and backward
  for (const int checkpointing : {0, 1, 2}) {
    Recipe recipe = recipe_of(Method::lora);
    recipe.bf16 = checkpointing == 1;
    recipe.gradient_checkpointing = checkpointing > 0;
    if (checkpointing == 2) recipe.checkpoint_layers = {0, 3};
    const Outcome stays = outcome_of(larger(), recipe);
    recipe.offload_weights = true;
    const Outcome away = outcome_of(larger(), recipe);
    const int64_t of_layer = away.traffic.fetched / (kLayers * kPasses);
    int64_t before = away.device;
    for (const std::vector<int64_t>& layers :
         thinned(std::vector<std::vector<int64_t>>{{0, 1, 2, 3, 4}, {0, 2, 4}, {1, 3}, {4}}, 2)) {
      recipe.offload_layers = layers;
      for (const bool look : {false, true}) {
        const Outcome some = outcome_of(larger(), recipe, look);
        EXPECT_TRUE(some.trained == stays.trained) << layers.size() << look;
        const auto share = static_cast<int64_t>(layers.size());
        EXPECT_EQ(some.traffic.fetched, of_layer * (kPasses * share + kLayers - share)) << layers.size() << look;
        EXPECT_GE(some.device, before) << layers.size();
        if (!look) before = some.device;
      }
    }
  }
}

// As a plan may choose: of each layer some saved tensors kept, some made again, some on disk.
TEST(OffloadedChoice, of_each_layer_gives_the_bits_of_what_stays) {
  std::mt19937 random(7);
  for (const Method method : {Method::full, Method::lora}) {
    Recipe recipe = recipe_of(method);
    const SavedChoice none;
    const std::vector<StorageId> saved = compile(larger(), recipe, &none).blocks.front().saved;
    for (int round = 0; round < 8; ++round) {
      if (kSanitized && round != 1 && round != 6) continue;  // the others are more of the same code
      SavedChoice choice{.inputs_away = round % 2 == 1};
      recipe.tiled_mlp = round >= 4;
      int64_t away_layers = 0;
      for (int64_t layer = 0; layer < larger().layers; ++layer) {
        if (random() % 4 == 0) continue;  // as it is
        for (StorageId id : saved) {
          const auto way = random() % 3;
          if (way == 1) choice.released[layer].insert(id);
          if (way == 2) choice.away[layer].insert(id);
        }
        away_layers += choice.away.contains(layer) ? 1 : 0;
      }
      const SavedChoice kept{.released = recipe.tiled_mlp ? choice.released : SavedByLayer()};  // tiles sum in other orders
      const Outcome stays = outcome_of(larger(), recipe, false, &kept);
      for (const bool look : {false, true}) {
        const Outcome moved = outcome_of(larger(), recipe, look, &choice);
        EXPECT_TRUE(moved.trained == stays.trained) << round << look;
        EXPECT_EQ(moved.traffic.sent > 0, away_layers > 0 || choice.inputs_away) << round << look;
        EXPECT_EQ(moved.disk > 0, away_layers > 0 || choice.inputs_away);
      }
    }
  }
}

std::string name_of_offloaded(const ::testing::TestParamInfo<Offloaded::ParamType>& test) {
  constexpr const char* kCheckpointing[] = {"kept", "checkpointed", "mixed", "parts"};
  const auto& [method, bf16, checkpointing] = test.param;
  return std::string(method == Method::full ? "full" : "lora") + (bf16 ? "_bf16_" : "_fp32_") +
         kCheckpointing[checkpointing];
}

INSTANTIATE_TEST_SUITE_P(of, Offloaded,
                         ::testing::Combine(::testing::Values(Method::full, Method::lora), ::testing::Bool(),
                                            ::testing::Values(0, 1, 2, 3)),
                         name_of_offloaded);

}  // namespace

}  // namespace snug::testing
