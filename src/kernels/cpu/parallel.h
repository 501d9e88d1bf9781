#pragma once
// How kernels share work between threads. Parts are fixed by the cut, never by which thread comes first, so that the same
// cut gives the same bits. Without OpenMP everything runs in order on one thread.

#include <algorithm>
#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace snug::kernels {

inline constexpr int64_t kLineGrain = 64;  // elements: parts begin on cache lines, whatever the vector

// Calls on one thread stay clear of OpenMP, which allocates even for a team of one.

// work(part, begin, end) for `threads` neighbouring parts of [0, count), cut at multiples of `grain`. Parts may be empty.
template <class Work>
void for_parts(int32_t threads, int64_t count, int64_t grain, const Work& work) {
  const int64_t grains = (count + grain - 1) / grain;
  const auto part_of = [&](int32_t part) {
    work(part, std::min(grains * part / threads * grain, count), std::min(grains * (part + 1) / threads * grain, count));
  };
  if (threads == 1) return part_of(0);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int32_t part = 0; part < threads; ++part) part_of(part);
}

// work(worker, unit) for every unit, whichever worker is free: for units of uneven length whose results do not depend on the
// worker. worker < threads and runs one unit at a time.
template <class Work>
void for_units([[maybe_unused]] int32_t threads, int64_t units, const Work& work) {
#ifdef _OPENMP
  if (threads > 1) {
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t unit = 0; unit < units; ++unit) work(omp_get_thread_num(), unit);
    return;
  }
#endif
  for (int64_t unit = 0; unit < units; ++unit) work(0, unit);
}

}  // namespace snug::kernels
