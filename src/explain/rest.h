#pragma once
// What the rest of a stage would still have taken where no earlier one and no recipe tells it: of copies of the weights from
// the weights themselves, of DDP's first backward from its buckets, of a model's forward from the layers that it came
// through.

#include <cstdint>
#include <optional>

#include "explain/contents.h"

namespace snug {

// How much more than at the moment is held at most, up to the end of the stage; in blocks' bytes.

// Of a second model, of a copy that is merged or written, of DDP: `merges`: adapters are merged into the copy then.
std::optional<int64_t> further_by_weights(const MomentOfFailure& moment, const Contents& held, const Contents& asked,
                                          TorchStage stage, bool merges);

// Of a forward pass of so many layers; behind it comes `after` times what a layer leaves behind, if that is more than what a
// layer takes meanwhile. None where fewer than one layer is done.
std::optional<int64_t> further_by_layers(const MomentOfFailure& moment, int64_t layers, int64_t after = 0);

}  // namespace snug
