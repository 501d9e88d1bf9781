// MLPs that run tile by tile reckon what they do in one piece: the same but for the order in which rows are added up in
// gradients of weights, in less memory.

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "families.h"
#include "model/config.h"
#include "run/in_place.h"
#include "sanitized.h"
#include "temporary_directory.h"
#include "train/initialize.h"
#include "train/support_golden.h"
#include "train/support_shadow.h"

namespace snug::testing {

namespace {

using Json = nlohmann::json;

std::filesystem::path tiled_model(const std::string& family, const Json& config) {
  static const test::TemporaryDirectory made;
  const auto path = made / family;
  if (!std::filesystem::exists(path)) initialize_checkpoint(parse_config(config.dump(), family), DType::f32, 1, path, {});
  return path;
}

// One micro-batch of two rows of 127 tokens that predict the next.
std::vector<Json> tiled_window() {
  Json batch{{"tokens", Json::array()}, {"labels", Json::array()}, {"documents", {{40, 87}, {127}}}};
  for (int row = 0; row < 2; ++row) {
    Json tokens = Json::array(), labels = Json::array();
    for (int t = 0; t < 127; ++t) {
      tokens.push_back((t * 37 + row * 11) % 307);
      labels.push_back(t % 7 == 0 ? -100 : tokens.back().get<int>());
    }
    batch["tokens"].push_back(tokens);
    batch["labels"].push_back(labels);
  }
  return {batch};
}

// Adapters begin at zero, where most of their gradients are zero too.
void stir_adapters(GoldenRun& run) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 0.05F);
  for (const Weight& weight : run.program().weights)
    for (int64_t layer = 0; weight.adapter && layer < (weight.parameter.per_layer ? run.program().layers : 1); ++layer)
      for (float& x : InPlace::elements<float>(run.executor(), weight.tensor, layer)) x += normal(random);
}

struct Gradients {
  double loss = 0;
  std::vector<std::pair<std::string, std::vector<double>>> of;  // every trained weight of every layer
  int64_t device = 0;                                           // bytes of the arena
};

Gradients gradients_of(const std::filesystem::path& model, const Recipe& recipe) {
  GoldenRun run(model, recipe, tiled_window());
  run.load();
  stir_adapters(run);
  Gradients result{.loss = run.forward_backward(tiled_window()), .of = {}, .device = run.plan().layout.device().bytes};
  for (const Weight& weight : run.program().weights)
    for (int64_t layer = 0; weight.trainable && layer < (weight.parameter.per_layer ? run.program().layers : 1); ++layer) {
      const auto gradient = InPlace::elements<float>(run.executor(), weight.gradient, layer);
      result.of.emplace_back(weight.parameter.name, std::vector<double>(gradient.begin(), gradient.end()));
    }
  return result;
}

// The gradient of a bias of keys is what is left of terms that cancel: softmax does not see what is added to all keys of a
// row, and only RoPE tells them apart.
double rounding_of(const std::string& name) { return name.find("k_proj.bias") != std::string::npos ? 4e-6 : 1e-6; }

void expect_the_same(const Gradients& tiled, const Gradients& whole, const std::string& what) {
  EXPECT_LE(std::abs(tiled.loss - whole.loss), 1e-6 * std::abs(whole.loss)) << what;
  ASSERT_EQ(tiled.of.size(), whole.of.size()) << what;
  for (size_t i = 0; i < whole.of.size(); ++i)
    EXPECT_LE(relative_error(tiled.of[i].second, whole.of[i].second), rounding_of(whole.of[i].first))
        << what << " " << whole.of[i].first;
}

Recipe tiled_recipe(Method method, int64_t shards) {
  Recipe recipe;
  recipe.method = method;
  recipe.lora = {.r = 8, .alpha = 16, .target_modules = {"all-linear"}};
  recipe.tiled_mlp = shards > 0;
  recipe.tiled_mlp_num_shards = shards;
  return recipe;
}

// Of 254 rows: tiles of 64 and one of 62; a tile for every 4 rows, and one of 2.
std::vector<int64_t> tilings() { return kSanitized ? std::vector<int64_t>{4} : std::vector<int64_t>{4, 64}; }

TEST(TiledMlp, gives_the_loss_and_the_gradients_of_the_mlp_in_one_piece) {
  for (const auto& [family, config] : test::families(307)) {
    if (parse_config(config.dump(), family).experts.count > 0) continue;
    if (kSanitized && family != "gemma2" && family != "phi3" && family != "gpt2")
      continue;  // the others have no op of their own
    const std::filesystem::path model = tiled_model(family, config);
    for (const Method method : {Method::full, Method::lora})
      for (const bool checkpointing : {false, true}) {
        const auto with = [&](int64_t shards) {
          Recipe recipe = tiled_recipe(method, shards);
          recipe.gradient_checkpointing = checkpointing;
          return gradients_of(model, recipe);
        };
        const Gradients whole = with(0);
        for (const int64_t count : tilings()) {
          const Gradients tiled = with(count);
          const std::string what = family + (method == Method::full ? " full " : " lora ") + std::to_string(count);
          expect_the_same(tiled, whole, what);
          if (checkpointing && count == 4) {
            EXPECT_LT(tiled.device, whole.device) << what;
          }
        }
      }
  }
}

// Draws count rows where they stand in the whole, and norms of columns see all of them.
TEST(TiledMlp, goes_with_dropout_dora_and_what_is_kept_of_a_block) {
  const auto [family, config] = test::families(307)[1];
  const std::filesystem::path model = tiled_model(family, config);
  for (const bool dora : {false, true})
    for (const int kept : {0, 1, 2}) {
      const auto with = [&](int64_t shards) {
        Recipe recipe = tiled_recipe(Method::lora, shards);
        recipe.lora.dropout = 0.25;
        recipe.lora.use_dora = dora;
        recipe.gradient_checkpointing = kept > 0;
        if (kept == 2) recipe.checkpoint_parts = {BlockPart::activations, BlockPart::norms};
        return gradients_of(model, recipe);
      };
      const Gradients whole = with(0);
      for (const int64_t count : tilings())
        expect_the_same(with(count), whole, std::to_string(dora) + std::to_string(kept) + std::to_string(count));
    }
}

// What else is put between an MLP's ops moves out of the way, and changes no bit of the tiled step.
TEST(TiledMlp, gives_the_same_bits_with_what_lies_on_disk_and_with_updates_in_backward) {
  const auto [family, config] = test::families(307)[0];
  const std::filesystem::path model = tiled_model(family, config);
  const auto trained = [&](const Recipe& recipe) {
    GoldenRun run(model, recipe, tiled_window());
    run.load();
    for (int step = 1; step <= 3; ++step) {
      run.set_rate(1e-3, step);
      run.forward_backward(tiled_window());
      run.update(1e-3, step);
    }
    std::vector<std::byte> bytes;
    for (const Weight& weight : run.program().weights)
      for (int64_t layer = 0; weight.trainable && layer < (weight.parameter.per_layer ? run.program().layers : 1); ++layer) {
        std::vector<std::byte> part(static_cast<size_t>(run.program().tensor(weight.tensor).bytes()));
        run.executor().transfer().read_bytes(weight.tensor, layer, 0, part);
        bytes.insert(bytes.end(), part.begin(), part.end());
      }
    return bytes;
  };
  for (const Method method : {Method::full, Method::lora})
    for (const bool checkpointing : {false, true}) {
      Recipe recipe = tiled_recipe(method, 4);
      recipe.gradient_checkpointing = checkpointing;
      recipe.max_grad_norm = 0;
      const std::vector<std::byte> stays = trained(recipe);
      Recipe away = recipe;
      away.offload_activations = away.offload_weights = true;
      away.offload_gradients = method == Method::full;
      EXPECT_TRUE(trained(away) == stays) << checkpointing;
      Recipe in_backward = recipe;
      in_backward.optimizer_in_bwd = true;
      EXPECT_TRUE(trained(in_backward) == stays) << checkpointing;
      Recipe both = in_backward;
      both.offload_activations = true;
      EXPECT_TRUE(trained(both) == stays) << checkpointing;
    }
}

// A tile's neighbours are alive while it runs: nothing that one tile leaves to the next is written over.
TEST(TiledMlp, touches_no_red_zone_and_writes_what_was_planned) {
  const auto [family, config] = test::families(307)[0];
  const std::filesystem::path model = tiled_model(family, config);
  constexpr int64_t kRedZone = 256;
  for (const Method method : {Method::full, Method::lora}) {
    Recipe recipe = tiled_recipe(method, 4);
    recipe.gradient_checkpointing = true;
    GoldenRun zoned(model, recipe, tiled_window(), kRedZone);
    Shadow guard(zoned.executor(), kRedZone);
    zoned.executor().observe(&guard);
    zoned.load();
    const double loss = zoned.forward_backward(tiled_window());
    EXPECT_GT(guard.zones_checked(), 100);
    EXPECT_EQ(guard.zones_touched(), 0);
    GoldenRun plain(model, recipe, tiled_window());
    plain.load();
    EXPECT_EQ(plain.forward_backward(tiled_window()), loss);
  }
}

}  // namespace

}  // namespace snug::testing
