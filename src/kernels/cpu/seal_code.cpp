#include "kernels/cpu/seal_code.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace snug::kernels {

namespace {

// The kernel's question for a mapping of a kind (linux/fs.h, struct procmap_query, since Linux 6.11).
struct MapQuery {
  uint64_t size = sizeof(MapQuery), flags = 0, address = 0;
  uint64_t begin = 0, end = 0, found_flags = 0, page_size = 0, offset = 0, inode = 0;
  uint32_t device_major = 0, device_minor = 0, name_size = 0, build_id_size = 0;
  uint64_t name = 0, build_id = 0;
};
constexpr unsigned long kMapQuery = _IOWR('f', 17, MapQuery);
constexpr uint64_t kWritable = 2, kExecutable = 4, kShared = 8, kThisOrNext = 16;

void make_read_only(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  void* address = reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr): the kernel writes addresses as text
  mprotect(address, end - begin, PROT_READ | PROT_EXEC);
}

}  // namespace

// As text: of all mappings, which are many where code is mapped in windows (run/code_pages.h).
std::vector<CodeSeal::Range> CodeSeal::listed_code() {
  std::vector<Range> ranges;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    char* next = nullptr;
    const uint64_t begin = std::strtoull(line.c_str(), &next, 16);
    if (*next != '-') continue;
    const uint64_t end = std::strtoull(next + 1, &next, 16);
    if (std::strncmp(next, " rwxp 00000000 00:00 0", 22) == 0) ranges.push_back({begin, end});
  }
  return ranges;
}

std::vector<CodeSeal::Range> CodeSeal::writable_code() {
  const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  std::vector<Range> ranges;
  MapQuery query{.flags = kWritable | kExecutable | kThisOrNext};
  while (ioctl(maps, kMapQuery, &query) == 0) {
    if ((query.found_flags & kShared) == 0 && query.inode == 0) ranges.push_back({query.begin, query.end});
    query.address = query.end;
  }
  const bool answered = errno == ENOENT;  // there is no further one
  if (maps >= 0) close(maps);
  return answered ? ranges : listed_code();
}

void CodeSeal::seal() const {
  for (const Range& range : writable_code()) {
    uint64_t begin = range.begin;  // neighbours that are alike are one mapping: only what is new of it is sealed
    for (const Range& other : others_) {
      if (other.end <= begin || other.begin >= range.end) continue;
      make_read_only(begin, other.begin);
      begin = other.end;
    }
    make_read_only(begin, range.end);
  }
}

}  // namespace snug::kernels
