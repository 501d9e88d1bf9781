#pragma once
// The eager model's answer: how much device memory a PyTorch trainer needs, from model, setup and stack, in three figures that
// are never mixed: allocated (what tensors hold), reserved (what PyTorch took from the device), device (and the context of the
// driver, an interval).

#include <string>

#include "eager/device.h"
#include "eager/setup.h"
#include "eager/stack.h"
#include "model/model_spec.h"

namespace snug::eager {

// The card.
struct Target {
  int compute_capability = 80;  // times ten
  int64_t memory_bytes = 0;     // what the allocator can get; 0: as much as it asks for
};

struct Plan {
  int64_t allocated_bytes = 0, reserved_bytes = 0;  // highest of a run, loading left out
  int64_t steady_bytes = 0;                         // allocated between steps
  int64_t static_bytes = 0;                         // allocated before the first step
  Phase phase = Phase::load;                        // of the highest allocated
  RoleBytes breakdown{};                            // at that moment
  std::array<PhasePeak, kPhases> phases{};
};

// Throws Error for what the model of PyTorch does not cover.
Plan estimate(const ModelSpec& spec, const Setup& setup, const StackProfile& stack, const Target& target,
              const std::function<void(const Event&)>& listener = {});

}  // namespace snug::eager
