#include "watch/process_use.h"

#include <fmt/format.h>

#include <fstream>
#include <limits>

namespace snug {

std::string program_of(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  for (char& c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return name;
}

std::optional<MemorySample> sample_process(int64_t pid, int64_t available_bytes) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  MemorySample sample;
  bool has_memory = false;  // what has ended and is not yet waited for has none
  std::string key;
  while (file >> key) {
    int64_t kib = 0;
    if (key == "VmRSS:" || key == "VmHWM:") {
      file >> kib;
      has_memory = true;
      if (key == "VmRSS:") sample.used_bytes = kib * 1024;
      if (key == "VmHWM:") sample.peak_bytes = kib * 1024;
    }
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  if (!has_memory) return std::nullopt;
  sample.what = fmt::format("process {}, {}", pid, program_of(pid));
  sample.limit_bytes = sample.used_bytes + available_bytes;
  return sample;
}

}  // namespace snug
