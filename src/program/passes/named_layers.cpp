#include "program/passes/named_layers.h"

#include <algorithm>

#include "base/error.h"

namespace snug {

std::vector<int64_t> named_layers(std::vector<int64_t> layers, const ModelSpec& spec, const char* key) {
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  if (!layers.empty() && (layers.front() < 0 || layers.back() >= spec.layers))
    throw Error("layer " + std::to_string(layers.front() < 0 ? layers.front() : layers.back()) + " does not exist",
                std::string("recipe: ") + key, "the model has layers 0 to " + std::to_string(spec.layers - 1));
  return layers;
}

}  // namespace snug
