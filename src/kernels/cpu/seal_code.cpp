#include "kernels/cpu/seal_code.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace snug::kernels {

namespace {

void make_read_only(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  void* address = reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr): the kernel writes addresses as text
  mprotect(address, end - begin, PROT_READ | PROT_EXEC);
}

}  // namespace

std::vector<CodeSeal::Range> CodeSeal::writable_code() {
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
