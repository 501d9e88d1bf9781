#pragma once
// A compiled Program cut into the parts that can lie on different devices: embedding, each layer, final norm, head. Every
// figure is read from the Program's storages; there is no second formula. It knows no device.

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace snug {

// A part, with the modules that Hugging Face's device_map names. What a Program has for all its layers it has for each.
struct ModelPart {
  std::string name;                  // "embedding", "layer 17", "final norm", "head"
  std::vector<std::string> modules;  // "model.layers.17"; a tied head is in the embedding's part
  int64_t layer = -1;
  int64_t weights = 0;      // bytes, with adapters and the scales of quantized weights
  int64_t gradients = 0;    // of its trained weights
  int64_t optimizer = 0;    // states and master copies, where they are not paged to disk
  int64_t activations = 0;  // that its backward needs
  int64_t temporaries = 0;  // the most that is alive beyond those while it runs, forward or backward
  int64_t staging = 0;      // the most that is alive at load, update or save, when there are no activations

  int64_t resident() const { return weights + gradients + optimizer; }
};

struct ModelParts {
  std::vector<ModelPart> parts;         // in the order of the forward pass
  int64_t common_bytes = 0;             // every device that computes keeps these: scalars, tables
  std::vector<std::string> everywhere;  // modules without weights: "model.rotary_emb"

  int64_t weight_bytes() const;
};

// `weights_only`: what inference under a device map counts, the model's weights alone. Throws Error beyond 1024 layers.
ModelParts parts_of(const Plan& plan, bool weights_only = false);

}  // namespace snug
