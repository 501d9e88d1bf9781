// Highway's library measures the clock before main, for a benchmark that we do not have: a third of what snug --version
// takes. Its function is found here first.

#include <cstdint>

#include "kernels/cpu/highway_targets.h"

#include "hwy/nanobenchmark.h"

namespace hwy::platform {

uint64_t TimerResolution() { return 1; }

}  // namespace hwy::platform
