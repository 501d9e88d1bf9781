#include "recipe/offload_keys.h"

#include <utility>

#include "recipe/key_makers.h"

namespace snug {

namespace {

using namespace keys;  // NOLINT(google-build-using-namespace): the table speaks the makers' language

Key home(std::string_view name, Names aliases, std::string_view help, bool Recipe::*field) {
  constexpr std::string_view kOnTheDevice = "is the memory of the device itself, on a CPU";
  return choice<bool>(name, std::move(aliases), help, "none|disk",
                      {{"none", false},
                       {"disk", true},
                       {"false", false},
                       {"nvme", true},
                       {"true", true, kOnTheDevice},
                       {"cpu", true, kOnTheDevice},
                       {"host", true, kOnTheDevice}},
                      field);
}

// The optimizer goes through what is trained on disk chunk by chunk, once all gradients are there.
void require_whole_updates(const Recipe& recipe) {
  const char* const key = recipe.offload_weights ? "offload_weights" : "offload_gradients";
  if (recipe.optimizer_in_bwd)
    throw Error(std::string(key) + ": disk does not go with optimizer_in_bwd in full fine-tuning", "",
                "remove one of them; offload_optimizer: disk goes with it");
  if (recipe.optim == Optimizer::adafactor)
    throw Error(std::string(key) + ": disk does not go with optim: adafactor, which needs whole matrices", "",
                "use another optim, or remove it");
}

}  // namespace

std::vector<Key> offload_keys() {
  return {home("offload_activations", {"activation_offloading"},
               "Where what blocks save for their backward lies meanwhile; it comes and goes while others compute.",
               &Recipe::offload_activations),
          home("offload_weights", {"offload_param"},
               "Where the matrices of blocks lie, frozen or trained; each layer's are fetched before their turn.",
               &Recipe::offload_weights),
          layers("offload_layers", "With offload_weights: the matrices of these blocks only; empty means all.",
                 &Recipe::offload_layers),
          home("offload_gradients", {}, "Where the gradients of the blocks' matrices lie, in full fine-tuning.",
               &Recipe::offload_gradients),
          home("offload_optimizer", {"optimizer_offload"}, "Where the optimizer's states lie; a paged optim means disk too.",
               &Recipe::offload_optimizer)};
}

void validate_offload(const Recipe& recipe) {
  const bool full = recipe.method == Method::full;
  if (!recipe.offload_weights && !recipe.offload_layers.empty())
    throw Error("offload_layers has no effect without offload_weights: disk", "", "add it, or remove offload_layers");
  if (full && !recipe.offload_layers.empty())
    throw Error("offload_layers names blocks whose frozen weights lie on disk, and method: full has none", "",
                "remove it: all blocks' matrices lie on disk");
  if (recipe.offload_gradients && !full)
    throw Error("offload_gradients: disk is for method: full; gradients of adapters are small", "", "remove it");
  if (full && (recipe.offload_weights || recipe.offload_gradients)) require_whole_updates(recipe);
  if (recipe.offload_weights && recipe.lora.use_dora)
    throw Error("offload_weights: disk does not go with use_dora, which needs the lengths of their rows", "",
                "remove one of them");
}

}  // namespace snug
