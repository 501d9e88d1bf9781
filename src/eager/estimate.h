#pragma once
// The eager model's answer: how much device memory a PyTorch trainer needs, from model, setup and stack, in three figures
// that are never mixed: allocated (what tensors hold), reserved (what PyTorch took from the device), device (and the context
// of the driver, an interval).

#include <array>
#include <functional>

#include "eager/device.h"
#include "eager/setup.h"
#include "eager/stack.h"
#include "model/model_spec.h"

namespace snug::eager {

// The card.
struct Target {
  int compute_capability = 80;  // times ten
  int64_t multiprocessors = 108;
  int64_t memory_bytes = 0;  // of the whole card; 0: as much as is asked for
  // The driver's context of a process that has PyTorch's kernels loaded: device less reserved bytes, as published runs on an
  // A100 show it.
  int64_t context_least_bytes = int64_t{447} << 20U, context_most_bytes = int64_t{620} << 20U;
};

struct Plan {
  int64_t allocated_bytes = 0, reserved_bytes = 0;      // highest of a run, loading left out
  int64_t device_low_bytes = 0, device_high_bytes = 0;  // reserved and the context
  int64_t steady_bytes = 0;                             // allocated between steps
  int64_t static_bytes = 0;                             // allocated before the first step
  int64_t loading_bytes = 0;                            // highest allocated while weights are loaded and prepared
  Phase phase = Phase::load;                            // of the highest allocated
  RoleBytes breakdown{};                                // at that moment; its sum is allocated_bytes
  std::array<PhasePeak, kPhases> phases{};
  std::array<Work, kPhases> work{};  // of all steps
  bool fits = true;  // the card holds what must be had beside the largest context; cached memory can be given back
};

// Throws Error for what the model of PyTorch does not cover. `listener` gets each event of the allocator.
Plan estimate(const ModelSpec& spec, const Setup& setup, const StackProfile& stack, const Target& target,
              const std::function<void(const Event&)>& listener = {});

}  // namespace snug::eager
