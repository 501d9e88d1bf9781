#include "explain/expected.h"

#include <algorithm>

namespace snug {

namespace {

ExpectedStep step_of(const eager::Plan& plan) {
  const auto peak = [&](eager::Phase phase) { return plan.phases[static_cast<size_t>(phase)].allocated_bytes; };
  return {.load = plan.loading_bytes,
          .forward = std::max(peak(eager::Phase::forward), peak(eager::Phase::between)),
          .backward = peak(eager::Phase::backward),
          .optimizer = peak(eager::Phase::optimizer)};
}

}  // namespace

std::optional<int64_t> ExpectedStep::from(TorchStage stage) const {
  switch (stage) {
    case TorchStage::load: return load;
    case TorchStage::forward:
    case TorchStage::loss: return std::max({forward, backward, optimizer});
    case TorchStage::backward: return std::max(backward, optimizer);
    case TorchStage::optimizer: return optimizer;
    default: return std::nullopt;
  }
}

std::optional<Expected> expected_of(PyTorchEngine& engine, const Recipe& recipe) {
  const eager::Plan* later = engine.follow(recipe);
  if (later == nullptr) return std::nullopt;
  const auto first = engine.first_step(recipe), own = engine.first_step(recipe, true);
  if (!first || !own) return std::nullopt;
  return Expected{engine.side().trainer, step_of(*first), step_of(*later), step_of(*own)};
}

}  // namespace snug
