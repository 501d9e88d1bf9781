#include "kernels/cpu/seal_code.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

namespace snug::kernels {

void seal_generated_code() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    char* next = nullptr;
    const uint64_t begin = std::strtoull(line.c_str(), &next, 16);
    if (*next != '-') continue;
    const uint64_t end = std::strtoull(next + 1, &next, 16);
    if (std::strncmp(next, " rwxp 00000000 00:00 0", 22) != 0) continue;
    void* address =
        reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr): the kernel writes addresses as text
    mprotect(address, end - begin, PROT_READ | PROT_EXEC);
  }
}

}  // namespace snug::kernels
