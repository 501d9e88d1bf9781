// The CPU backend as a whole: its threads and its name.

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <cctype>
#include <string>

#include "kernels/cpu/highway_targets.h"

#include "hwy/targets.h"
#include "kernels/cpu/table.h"
#include "kernels/cpu/threads.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace snug::kernels {
namespace {

#ifdef _OPENMP
int32_t thread_limit() { return omp_get_max_threads(); }
void limit_threads(int32_t threads) { omp_set_num_threads(std::max(threads, 1)); }
#else
// We have no threads, but oneDNN's own OpenMP would start some: its library is loaded, so ask it by name.
int32_t thread_limit() { return 1; }
void limit_threads(int32_t) {
  static const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(1);
}
#endif

}  // namespace

ThreadLimit::ThreadLimit(int32_t threads) : before_(thread_limit()) { limit_threads(threads); }
ThreadLimit::~ThreadLimit() { limit_threads(before_); }

namespace {

// A first region of this size makes the threads and their stacks; OpenMP keeps them.
void start_threads(int32_t threads) {
  limit_threads(threads);
  int32_t started = 0;
#pragma omp parallel num_threads(threads) reduction(+ : started)
  started += 1;
  static_cast<void>(started);
}

std::string name() {
  const int64_t targets = hwy::SupportedTargets();  // the lowest bit is the best one
  std::string text = std::string("cpu ") + hwy::TargetName(targets & -targets);
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  const auto& version = *dnnl::version();
  return text + ", oneDNN " + std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

}  // namespace

const Backend& built_in_backend() {
  static const Backend backend = {.name = name,
                                  .start_threads = start_threads,
                                  .open = []() -> std::unique_ptr<Session> { return std::make_unique<cpu::CpuSession>(); },
                                  .kernel = cpu::entry};
  return backend;
}

}  // namespace snug::kernels
