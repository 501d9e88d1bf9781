#pragma once
// How kernels share work between threads. Parts are fixed by the cut, never by which thread comes first, so that the same
// cut gives the same bits. Without OpenMP everything runs in order on one thread.

#include <algorithm>
#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace snug::kernels {

// work(part, begin, end) for `threads` neighbouring parts of [0, count), cut at multiples of `grain`. Parts may be empty.
template <class Work>
void for_parts(int32_t threads, int64_t count, int64_t grain, const Work& work) {
  const int64_t grains = (count + grain - 1) / grain;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int32_t part = 0; part < threads; ++part) {
    const int64_t begin = grains * part / threads * grain;
    const int64_t end = std::min(count, grains * (part + 1) / threads * grain);
    work(part, std::min(begin, count), end);
  }
}

// work(worker, unit) for every unit, whichever worker is free: for units of uneven length whose results do not depend on the
// worker. worker < threads and runs one unit at a time.
template <class Work>
void for_units(int32_t threads, int64_t units, const Work& work) {
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
  for (int64_t unit = 0; unit < units; ++unit) {
#ifdef _OPENMP
    work(omp_get_thread_num(), unit);
#else
    work(0, unit);
#endif
  }
}

}  // namespace snug::kernels
