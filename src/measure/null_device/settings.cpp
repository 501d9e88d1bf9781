#include "measure/null_device/settings.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string_view>

namespace snug::null_device {

namespace {

constexpr int32_t kMostDevices = 64;

template <class T>
void read(const char* variable, T& value) {
  if (const char* text = std::getenv(variable); text != nullptr && *text != '\0')
    value = static_cast<T>(std::strtoll(text, nullptr, 10));
}

std::vector<int64_t> read_list(const char* variable) {
  std::vector<int64_t> values;
  const char* text = std::getenv(variable);
  while (text != nullptr && *text != '\0') {
    char* end = nullptr;
    const int64_t value = std::strtoll(text, &end, 10);
    if (end == text) break;
    values.push_back(value);
    text = *end == ',' ? end + 1 : end;
  }
  return values;
}

// How many devices CUDA_VISIBLE_DEVICES leaves of `devices`: entries up to the first that names none.
int32_t visible(int32_t devices) {
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) return devices;
  int32_t count = 0;
  for (std::string_view list = text; !list.empty(); ++count) {
    const std::string entry(list.substr(0, list.find(',')));
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
    const bool number = !entry.empty() && entry.find_first_not_of("0123456789 ") == std::string::npos;
    if (number ? std::strtoll(entry.c_str(), nullptr, 10) >= devices : !entry.starts_with("GPU-")) break;
  }
  return count;
}

Settings read_all() {
  Settings s;
  if (const char* name = std::getenv("SNUG_NULL_NAME")) s.name = name;
  read("SNUG_NULL_MEMORY", s.memory_bytes);
  read("SNUG_NULL_CONTEXT", s.context_bytes);
  s.others_bytes = read_list("SNUG_NULL_OTHERS");
  read("SNUG_NULL_LISTS", s.lists_processes);
  read("SNUG_NULL_SM", s.compute_capability);
  read("SNUG_NULL_MULTIPROCESSORS", s.multiprocessors);
  read("SNUG_NULL_DEVICES", s.devices);
  s.devices = visible(std::clamp(s.devices, 0, kMostDevices));
  return s;
}

constexpr int32_t kKiB = 1024, kMiB = 1024 * 1024;

}  // namespace

int64_t Settings::free_at_first() const {
  return std::accumulate(others_bytes.begin(), others_bytes.end(), memory_bytes - context_bytes, std::minus<>());
}

const Settings& settings() {
  static const Settings all = read_all();
  return all;
}

Architecture architecture() {
  const int32_t sm = settings().compute_capability, major = sm / 10, minor = sm % 10;
  if (sm < 70) return {major, minor, 2048, 32, 96 * kKiB, 48 * kKiB, 4 * kMiB};
  if (sm < 75) return {major, minor, 2048, 32, 96 * kKiB, 96 * kKiB, 6 * kMiB};
  if (sm < 80) return {major, minor, 1024, 16, 64 * kKiB, 64 * kKiB, 4 * kMiB};
  if (sm == 80) return {major, minor, 2048, 32, 164 * kKiB, 163 * kKiB, 40 * kMiB};
  if (sm < 89) return {major, minor, 1536, 16, 100 * kKiB, 99 * kKiB, 6 * kMiB};
  if (sm == 89) return {major, minor, 1536, 24, 100 * kKiB, 99 * kKiB, 72 * kMiB};
  if (sm < 120) return {major, minor, 2048, 32, 228 * kKiB, 227 * kKiB, 50 * kMiB};
  return {major, minor, 1536, 24, 100 * kKiB, 99 * kKiB, 96 * kMiB};
}

}  // namespace snug::null_device
