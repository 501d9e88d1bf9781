#include "run/arena.h"

#include <sys/mman.h>

#include <cstring>

#include "base/checked.h"
#include "base/error.h"

namespace snug {

namespace {
constexpr int64_t kPage = 4096;
}

Arena::Arena(int64_t bytes) : bytes_(align_up(bytes, kPage)) {
  void* memory = mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error("the system does not give " + std::to_string(bytes_) + " bytes: " + std::strerror(errno), "arena",
                "free memory, raise the limit, or give a smaller --memory");
  data_ = static_cast<std::byte*>(memory);
  // Huge pages where the system lends them: fewer TLB misses, the same bytes.
  madvise(memory, static_cast<size_t>(bytes_), MADV_HUGEPAGE);
}

void Arena::commit() {
  for (int64_t offset = 0; offset < bytes_; offset += kPage) data_[offset] = std::byte{0};
}

Arena::~Arena() { munmap(data_, static_cast<size_t>(bytes_)); }

}  // namespace snug
