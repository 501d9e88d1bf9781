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

}  // namespace

std::vector<Key> offload_keys() {
  return {
      home("offload_activations", {"activation_offloading"},
           "Where what blocks save for their backward lies meanwhile; it comes and goes while others compute.",
           &Recipe::offload_activations),
      home("offload_weights", {"offload_param"},
           "Where the frozen matrices of blocks lie; each layer's are fetched before their turn.", &Recipe::offload_weights),
      layers("offload_layers", "With offload_weights: the matrices of these blocks only; empty means all.",
             &Recipe::offload_layers),
      home("offload_optimizer", {"optimizer_offload"}, "Where the optimizer's states lie; a paged optim means disk too.",
           &Recipe::offload_optimizer)};
}

void validate_offload(const Recipe& recipe) {
  if (!recipe.offload_weights && !recipe.offload_layers.empty())
    throw Error("offload_layers has no effect without offload_weights: disk", "", "add it, or remove offload_layers");
  if (!recipe.offload_weights) return;
  if (recipe.method == Method::full)
    throw Error("offload_weights: disk moves frozen weights, and method: full has none", "",
                "use method: lora, or offload_activations and a paged optim");
  if (recipe.lora.use_dora)
    throw Error("offload_weights: disk does not go with use_dora, which needs the lengths of their rows", "",
                "remove one of them");
}

}  // namespace snug
