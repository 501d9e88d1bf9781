#include "recipe/checkpoint_keys.h"

#include <algorithm>

#include "recipe/key_makers.h"

namespace snug {

namespace {

using namespace keys;  // NOLINT(google-build-using-namespace): the table speaks the makers' language

constexpr int64_t kMostTiles = int64_t{1} << 20, kMostInputs = 100'000;

Key gradient_checkpointing() {
  return {"gradient_checkpointing",
          {"grad_checkpoint", "enable_activation_checkpointing", "use_gradient_checkpointing"},
          KeyType::boolean,
          "Keep only block inputs and recompute the rest in backward; auto: of each block keep what fits and saves most "
          "time, with "
          "offload_activations make again or send to disk what costs less.",
          "true|false|auto",
          [](Recipe& recipe, KeyValues values) {
            const std::string& word = single_value("gradient_checkpointing", values);
            recipe.checkpoint_to_budget = word == kAuto;
            recipe.gradient_checkpointing = word == kAuto || parse_boolean("gradient_checkpointing", word);
          },
          [](const Recipe& recipe) {
            return std::string(recipe.checkpoint_to_budget ? kAuto : recipe.gradient_checkpointing ? "true" : "false");
          }};
}

Key checkpoint_layers() {
  return layers("checkpoint_layers", "With gradient_checkpointing: recompute these blocks only; empty means all.",
                &Recipe::checkpoint_layers);
}

BlockPart part_of(const std::string& word) {
  for (int i = 0; i < kBlockPartCount; ++i)
    if (word == name_of(static_cast<BlockPart>(i))) return static_cast<BlockPart>(i);
  throw Error(fmt::format("checkpoint_parts knows no '{}'", word.substr(0, 40)), "",
              "choose among norms, activations, attention, projections");
}

Key checkpoint_parts() {
  return {"checkpoint_parts",
          {},
          KeyType::list,
          "With gradient_checkpointing: recompute these parts of the blocks only; empty means all.",
          "all|norms,activations,attention,projections",
          [](Recipe& recipe, KeyValues values) {
            std::vector<BlockPart> parts;
            std::vector<std::string> items = parse_list("checkpoint_parts", values);
            if (items == std::vector<std::string>{"all"}) items.clear();
            for (const std::string& item : items) {
              parts.push_back(part_of(item));
              if (std::count(parts.begin(), parts.end(), parts.back()) > 1)
                throw Error(fmt::format("checkpoint_parts names '{}' twice", item));
            }
            recipe.checkpoint_parts = std::move(parts);
          },
          [](const Recipe& recipe) {
            std::vector<std::string_view> names;
            for (BlockPart part : recipe.checkpoint_parts) names.emplace_back(name_of(part));
            return fmt::format("{}", fmt::join(names, ","));
          }};
}

}  // namespace

const char* name_of(BlockPart part) {
  constexpr const char* kNames[kBlockPartCount] = {"norms", "activations", "attention", "projections"};
  return kNames[static_cast<int>(part)];
}

std::vector<Key> checkpoint_keys() {
  return {
      gradient_checkpointing(),
      checkpoint_layers(),
      checkpoint_parts(),
      integer("checkpoint_inputs", {},
              "With gradient_checkpointing: so many inputs of blocks are kept at once, the others are made again from them "
              "(binomial checkpointing); 0: every one is kept.",
              {0, kMostInputs, "at least 0"}, &Recipe::checkpoint_inputs),
      boolean("tiled_mlp", {}, "Run MLPs for some tokens at a time: what is as wide as their hidden layer is one tile high.",
              &Recipe::tiled_mlp),
      integer("tiled_mlp_num_shards", {},
              "With tiled_mlp: tiles of a micro-batch; auto: tiles of as many tokens as the model is wide.",
              {1, kMostTiles, "auto or at least 1", true}, &Recipe::tiled_mlp_num_shards)};
}

namespace {

void refuse_alone(const char* key) {
  throw Error(fmt::format("{} has no effect without gradient_checkpointing: true", key), "",
              fmt::format("add it, or remove {}", key));
}

void validate_inputs(const Recipe& recipe, bool chosen_by_hand) {
  if (!chosen_by_hand) refuse_alone("checkpoint_inputs");
  for (const auto& [is_set, key] :
       {std::pair(!recipe.checkpoint_layers.empty(), "checkpoint_layers"),
        std::pair(!recipe.checkpoint_parts.empty(), "checkpoint_parts"),
        std::pair(recipe.offload_activations, "offload_activations"), std::pair(recipe.offload_weights, "offload_weights")})
    if (is_set) throw Error(fmt::format("checkpoint_inputs does not go with {}", key), "", "remove one of the two");
}

}  // namespace

void validate_checkpointing(const Recipe& recipe) {
  const bool chosen_by_hand = recipe.gradient_checkpointing && !recipe.checkpoint_to_budget;
  if (!recipe.checkpoint_layers.empty() && !chosen_by_hand) refuse_alone("checkpoint_layers");
  if (!recipe.checkpoint_parts.empty() && !chosen_by_hand) refuse_alone("checkpoint_parts");
  if (recipe.checkpoint_inputs > 0) validate_inputs(recipe, chosen_by_hand);
  if (recipe.tiled_mlp_num_shards > 0 && !recipe.tiled_mlp)
    throw Error("tiled_mlp_num_shards has no effect without tiled_mlp: true", "", "add it, or remove tiled_mlp_num_shards");
}

}  // namespace snug
