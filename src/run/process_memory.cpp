#include "run/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace snug {

namespace {

int64_t figure(const char* text, const char* key) {
  const char* found = std::strstr(text, key);
  return found == nullptr ? 0 : std::strtoll(found + std::strlen(key), nullptr, 10) * 1024;
}

}  // namespace

ProcessMemory process_memory() {
  std::array<char, 4096> text{};
  const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t length = read(fd, text.data(), text.size() - 1);
  close(fd);
  if (length <= 0) return {};
  const int64_t resident = figure(text.data(), "VmRSS:");
  const bool apart = std::strstr(text.data(), "RssAnon:") != nullptr;  // Linux 4.5 and later
  return {.resident_bytes = resident,
          .anonymous_bytes = apart ? figure(text.data(), "RssAnon:") : resident,
          .peak_bytes = figure(text.data(), "VmHWM:")};
}

}  // namespace snug
