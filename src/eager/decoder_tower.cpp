// A vision tower beside the decoder, of rows without images: its weights are there, and what peft puts around them; forward
// never comes by, so nothing of it gets a gradient.

#include <fmt/format.h>

#include <algorithm>

#include "eager/decoder.h"

namespace snug::eager {

// In their order of registration, each layer after the other. A matrix of a layer is a linear's, its bias follows it.
void Decoder::make_tower() {
  const std::vector<KnownTensor>& known = spec_.tower;
  const auto end_of_layers = [&](size_t i) {
    while (i < known.size() && known[i].layers > 0) ++i;
    return i;
  };
  const auto add = [&](const KnownTensor& tensor, const std::string& name) {
    const bool matrix = tensor.layers > 0 && tensor.shape.size() == 2;
    const std::string path = name.substr(0, name.rfind('.'));
    if (!tower_.empty() && tower_.back().linear.path == path) {
      tower_.back().linear.biased = true;
      return;
    }
    TowerPart part;
    part.name = name;
    part.count = 1;
    for (const int64_t size : tensor.shape) part.count *= size;
    if (matrix) {
      Linear& l = part.linear;
      l.path = path, l.name = path.substr(path.rfind('.') + 1);
      l.out = tensor.shape[0], l.in = tensor.shape[1], l.present = true;
    }
    tower_.push_back(std::move(part));
  };
  for (size_t i = 0; i < known.size();) {
    const size_t end = end_of_layers(i);
    for (int64_t layer = 0; end > i && layer < known[i].layers; ++layer)
      for (size_t j = i; j < end; ++j) add(known[j], fmt::format(fmt::runtime(known[j].name), layer));
    if (end == i) add(known[i], known[i].name);
    i = std::max(end, i + 1);
  }
}

void Decoder::visit_tower(const Visit& visit) {
  for (TowerPart& part : tower_) {
    if (part.linear.present) {
      visit_linear(part.linear, visit);
    } else {
      visit(part.tensor, part.count, 0, false);
    }
  }
}

void Decoder::each_tower_linear(const std::function<void(Linear&)>& visit) {
  for (TowerPart& part : tower_)
    if (part.linear.present) visit(part.linear);
}

// Those that adapters are put around: peft asks for names alone, whichever part of a model has them.
void Decoder::each_adaptable_linear(const std::function<void(Linear&)>& visit) {
  if (setup_.adapts_tower) each_tower_linear(visit);
  each_linear(visit);
}

}  // namespace snug::eager
