#include "measure/null_device/entry.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>

namespace snug::null_device {

namespace {

struct Refusals {
  std::mutex mutex;
  std::set<std::string> names;
};

Refusals& refusals() {
  static Refusals all;
  return all;
}

}  // namespace

Handle new_handle() {
  static std::atomic<uint64_t> next{0x10000};
  return as_pointer(next.fetch_add(16));
}

int refuse(const char* name, int error) noexcept {
  return guarded([&] {
    const std::lock_guard lock(refusals().mutex);
    if (refusals().names.insert(name).second)
      std::fprintf(stderr, "snug measure: the program calls %s, which the null device does not have\n", name);
    return error;
  });
}

std::string refused_names() {
  const std::lock_guard lock(refusals().mutex);
  std::string all;
  for (const std::string& name : refusals().names) all += (all.empty() ? "" : " ") + name;
  return all;
}

}  // namespace snug::null_device
