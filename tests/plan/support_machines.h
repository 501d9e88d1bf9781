#pragma once
// Made-up machines that plans of tests are for.

#include <cstdint>

#include "plan/cost.h"
#include "plan/target.h"

namespace snug::testing {

// One core with so much memory, bytes, and rates of which only the order matters.
inline Target target_with(int64_t memory_bytes) {
  Target target{.threads = 1, .memory_bytes = memory_bytes, .runtime_bytes = 1 << 20};
  target.cost = nominal_cpu_rates(1);
  return target;
}

// A machine on which arithmetic alone takes time, one FLOP a second: seconds are the FLOPs.
inline Target counting_machine() {
  Target target{.threads = 1, .memory_bytes = int64_t{1} << 40, .runtime_bytes = 1 << 20};
  for (CostRate& rate : target.cost.rates) rate = {.flops = 1.0};
  target.cost.source = "a machine that counts";
  return target;
}

}  // namespace snug::testing
