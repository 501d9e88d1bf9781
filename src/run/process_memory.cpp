#include "run/process_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

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

void give_back_code_pages() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {  // "begin-end r-xp offset device inode  file", hexadecimal
    char* end_of_begin = nullptr;
    char* end_of_end = nullptr;
    const uintptr_t begin = std::strtoull(line.c_str(), &end_of_begin, 16);
    if (*end_of_begin != '-') continue;
    const uintptr_t end = std::strtoull(end_of_begin + 1, &end_of_end, 16);
    // Code alone is as it stands in its file; what may only be read may have been written before (addresses put in at the
    // start).
    const bool code = std::string_view(end_of_end).starts_with(" r-xp ") && line.find(" /") != std::string::npos;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel tells addresses as text
    if (code) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

}  // namespace snug
