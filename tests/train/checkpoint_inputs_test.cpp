// Of some blocks alone the input is kept, the others are made again from it: the same bits in less memory.

#include "program/passes/checkpoint_inputs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <random>

#include "base/error.h"
#include "families.h"
#include "model/config.h"
#include "run/in_place.h"
#include "sanitized.h"
#include "temporary_directory.h"
#include "train/initialize.h"
#include "train/support_golden.h"

namespace snug::testing {

namespace {

using Json = nlohmann::json;

// ---- Which blocks

// Inputs that are there when backward stands in the last block of each segment, the most of them.
int64_t most_inputs(const std::vector<int64_t>& counts) {
  int64_t most = 0;
  for (size_t i = 0; i < counts.size(); ++i) most = std::max(most, static_cast<int64_t>(i) + counts[i]);
  return most;
}

// Over every way to cut `layers` into segments: the most segments, so the fewest blocks run once more, with `inputs` at
// most; 0: there is none.
size_t most_segments(int64_t layers, int64_t inputs) {
  size_t most = 0;
  for (uint64_t cuts = 0; cuts < (uint64_t{1} << static_cast<unsigned>(layers - 1)); ++cuts) {
    std::vector<int64_t> counts{1};
    for (int64_t i = 0; i + 1 < layers; ++i)
      (cuts >> static_cast<unsigned>(i) & 1U) != 0 ? counts.push_back(1) : static_cast<void>(++counts.back());
    if (most_inputs(counts) <= inputs) most = std::max(most, counts.size());
  }
  return most;
}

TEST(CheckpointInputs, no_way_to_cut_blocks_runs_fewer_of_them_again) {
  for (int64_t layers = 1; layers <= 14; ++layers)
    for (int64_t inputs = 1; inputs <= layers + 1; ++inputs) {
      const size_t best = most_segments(layers, inputs);
      if (best == 0) {
        EXPECT_THROW(segments_of({layers}, inputs), Error) << layers << " " << inputs;
        continue;
      }
      const std::vector<BlockSegment> segments = segments_of({layers}, inputs);
      std::vector<int64_t> counts;
      int64_t next = 0;
      for (const BlockSegment& segment : segments) {
        EXPECT_EQ(segment.first, next);
        next += segment.count;
        counts.push_back(segment.count);
      }
      EXPECT_EQ(next, layers);
      EXPECT_LE(most_inputs(counts), inputs) << layers << " " << inputs;
      EXPECT_EQ(segments.size(), best) << layers << " " << inputs;
    }
}

// Griewank & Walther: with s inputs and each block run forward once more at most, s (s + 1) / 2 blocks.
TEST(CheckpointInputs, as_many_blocks_go_as_the_binomial_says) {
  for (int64_t inputs = 1; inputs <= 20; ++inputs) {
    const int64_t blocks = inputs * (inputs + 1) / 2;
    EXPECT_NO_THROW(segments_of({blocks}, inputs));
    EXPECT_THROW(segments_of({blocks + 1}, inputs), Error);
  }
}

TEST(CheckpointInputs, no_segment_reaches_beyond_a_run_of_like_blocks) {
  for (const BlockSegment& segment : segments_of({3, 20, 5}, 9)) {
    EXPECT_TRUE(segment.first + segment.count <= 3 || segment.first >= 3);
    EXPECT_TRUE(segment.first + segment.count <= 23 || segment.first >= 23);
  }
}

// ---- Bits and bytes

constexpr int64_t kDeep = 8;  // by five inputs: segments of 4, 1, 1, 1, 1; by four: 4, 2, 1, 1

std::filesystem::path deep_model(const std::string& family, Json config) {
  static const test::TemporaryDirectory made;
  const auto path = made / family;
  config[config.contains("n_layer") ? "n_layer" : "num_hidden_layers"] = kDeep;
  if (config.contains("layer_types")) {
    Json types = Json::array();
    for (int64_t i = 0; i < kDeep; ++i)
      types.push_back(config["layer_types"][static_cast<size_t>(i) % config["layer_types"].size()]);
    config["layer_types"] = types;
  }
  if (!std::filesystem::exists(path)) initialize_checkpoint(parse_config(config.dump(), family), DType::f32, 1, path, {});
  return path;
}

std::vector<Json> deep_window(int micro_batches) {
  std::vector<Json> window;
  for (int micro = 0; micro < micro_batches; ++micro) {
    Json batch{{"tokens", Json::array()}, {"labels", Json::array()}, {"documents", {{40, 24}, {64}}}};
    for (int row = 0; row < 2; ++row) {
      Json tokens = Json::array();
      for (int t = 0; t < 64; ++t) tokens.push_back((t * 37 + row * 11 + micro * 5) % 307);
      batch["tokens"].push_back(tokens);
      batch["labels"].push_back(tokens);
    }
    window.push_back(batch);
  }
  return window;
}

struct Trained {
  std::vector<double> losses;
  std::vector<std::byte> weights;
  int64_t device = 0;
};

Trained trained(const std::filesystem::path& model, const Recipe& recipe) {
  const std::vector<Json> window = deep_window(recipe.optimizer_in_bwd ? 1 : 2);
  GoldenRun run(model, recipe, window);
  run.load();
  Trained result{.losses = {}, .weights = {}, .device = run.plan().layout.device().bytes};
  for (int step = 1; step <= 2; ++step) {
    run.set_rate(1e-2, step);
    result.losses.push_back(run.forward_backward(window));
    run.update(1e-2, step);
  }
  for (const Weight& weight : run.program().weights)
    for (int64_t layer = 0; weight.trainable && layer < (weight.parameter.per_layer ? run.program().layers : 1); ++layer) {
      std::vector<std::byte> part(static_cast<size_t>(run.program().tensor(weight.tensor).bytes()));
      run.executor().transfer().read_bytes(weight.tensor, layer, 0, part);
      result.weights.insert(result.weights.end(), part.begin(), part.end());
    }
  return result;
}

void expect_the_same_bits(const std::filesystem::path& model, Recipe recipe, const std::string& what) {
  recipe.gradient_checkpointing = true;
  const Trained all = trained(model, recipe);
  int64_t least = all.device;
  for (const int64_t inputs : {5, 4}) {
    recipe.checkpoint_inputs = inputs;
    const Trained some = trained(model, recipe);
    EXPECT_EQ(some.losses, all.losses) << what << inputs;
    EXPECT_TRUE(some.weights == all.weights) << what << inputs;
    EXPECT_LT(some.device, least) << what << inputs;
    least = some.device;
  }
}

Recipe adapted() {
  Recipe recipe;
  recipe.method = Method::lora;
  recipe.lora = {.r = 4, .alpha = 16, .target_modules = {"all-linear"}};
  return recipe;
}

TEST(CheckpointInputs, every_family_trains_to_the_same_bits_in_less_memory) {
  for (const auto& [family, config] : test::families(307)) {
    if (kSanitized && family != "gemma2" && family != "gpt2") continue;
    if (parse_config(config.dump(), family).experts.count > 0) continue;
    const auto model = deep_model(family, config);
    Recipe recipe = adapted();
    recipe.bf16 = true;
    expect_the_same_bits(model, recipe, family + " lora ");
    Recipe full;
    full.method = Method::full;
    expect_the_same_bits(model, full, family + " full ");
  }
}

TEST(CheckpointInputs, goes_with_experts) {
  for (const auto& [family, config] : test::families(307))
    if (parse_config(config.dump(), family).experts.count > 0 && (!kSanitized || family == "mixtral"))
      expect_the_same_bits(deep_model(family, config), adapted(), family + " ");
}

TEST(CheckpointInputs, goes_with_dropout_noise_dora_tiles_and_updates_in_backward) {
  const auto [family, config] = test::families(307)[0];
  const auto model = deep_model(family, config);
  Recipe drawn = adapted();
  drawn.lora.dropout = 0.25;
  drawn.lora.use_dora = true;
  drawn.neftune_noise_alpha = 5;
  expect_the_same_bits(model, drawn, "drawn ");
  Recipe tiled = adapted();
  tiled.tiled_mlp = true;
  tiled.tiled_mlp_num_shards = 3;
  expect_the_same_bits(model, tiled, "tiled ");
  Recipe in_backward;
  in_backward.method = Method::full;
  in_backward.optimizer_in_bwd = true;
  in_backward.max_grad_norm = 0;
  expect_the_same_bits(model, in_backward, "in backward ");
}

}  // namespace

}  // namespace snug::testing
