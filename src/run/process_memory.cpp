#include "run/process_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

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
  for (std::string line; std::getline(maps, line);) {  // "begin-end r-xp offset device inode  file"
    uintptr_t begin = 0, end = 0;
    std::array<char, 5> rights{};
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, rights.data()) != 3) continue;
    // Code alone is as it stands in its file; what may only be read may have been written before (addresses put in at the
    // start).
    const bool code = std::strcmp(rights.data(), "r-xp") == 0 && line.find(" /") != std::string::npos;
    if (code) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

}  // namespace snug
