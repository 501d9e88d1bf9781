#include "plan/target.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/cpu_features.h"

namespace snug {

namespace {

// A figure of /proc/meminfo in bytes, or -1.
int64_t meminfo(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  std::string name;
  int64_t kib = 0;
  std::string unit;
  while (file >> name >> kib) {
    std::getline(file, unit);
    if (name == key + ":") return kib * 1024;
  }
  return -1;
}

int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : -1;  // "max" is no number
}

// What the cgroup (v2, then v1) still allows, or -1 without a limit.
int64_t cgroup_headroom() {
  for (const auto& [limit_path, usage_path] :
       {std::pair{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
        std::pair{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"}}) {
    const int64_t limit = number_in(limit_path);
    if (limit > 0) return std::max<int64_t>(0, limit - std::max<int64_t>(0, number_in(usage_path)));
  }
  return -1;
}

#if defined(__wasi__)
// A browser's page plans for others' machines: of its own it knows no cores, and pages as they mostly are.
int32_t usable_cores() { return 1; }
bool has_primitives() { return true; }
int64_t page_size() { return 4096; }
#else
int32_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}
int64_t page_size() { return sysconf(_SC_PAGESIZE); }
bool has_primitives() { return has_avx512(); }
#endif

}  // namespace

Target this_cpu(int64_t threads) {
  Target target{.kind = TargetKind::cpu, .name = "this machine's CPU"};
  target.threads = threads > 0 ? static_cast<int32_t>(std::min<int64_t>(threads, 4096)) : usable_cores();
  target.page_bytes = page_size();
  // Two pieces are three products: on tiles that is still faster than fp32, in dot products no more.
  if (multiplies_bf16_faster())
    target.products = bf16_unit() == Bf16Unit::tiles ? Arithmetic::bf16_pieces : Arithmetic::bf16;
  target.memory_bytes = std::max<int64_t>(0, meminfo("MemAvailable"));
  if (const int64_t headroom = cgroup_headroom(); headroom >= 0)
    target.memory_bytes = std::min(target.memory_bytes, headroom);
  // Measured as VmHWM less the arena and what follows, over the recipes of tests/cli/plan_run_test.cpp (Debian 12, oneDNN
  // 2.6.3): 10.5 to 14 MiB, 0.7 of them by how the page cache holds the libraries (run/code_pages.h).
  target.runtime_bytes = int64_t{14} << 20;
  target.runtime_bytes_per_thread = int64_t{128} << 10;
  target.runtime_bytes_per_product = has_primitives() ? int64_t{96} << 10 : int64_t{1} << 10;
  // From 47 000 tensors' worth of headers and lists: 300 to 760 bytes for each (names of experts are the longest).
  target.runtime_bytes_per_file_tensor = 768;
  target.runtime_bytes_of_ranks = 2 * ((int64_t{256} << 10) + 4096);  // two mailboxes (comm/local/shared_memory.h)
  target.cost = nominal_cpu_rates(target.threads);
  return target;
}

}  // namespace snug
