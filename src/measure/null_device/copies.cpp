#include "measure/null_device/copies.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "measure/null_device/entry.h"
#include "measure/null_device/memory.h"

namespace snug::null_device {

namespace {

constexpr size_t kHostPage = 4096, kLarge = 1 << 20, kSmall = 1 << 16;

// What small copies brought to devices since the last kernel.
class Kept {
 public:
  void keep(const void* to, const void* from, size_t bytes) {
    const std::lock_guard lock(mutex_);
    drop_old();
    const auto* begin = static_cast<const std::byte*>(from);
    values_[static_cast<const std::byte*>(to)].assign(begin, begin + bytes);
  }

  void drop(const void* to) {
    const std::lock_guard lock(mutex_);
    values_.erase(static_cast<const std::byte*>(to));
  }

  // True if all of the bytes are known; then they are written.
  bool write(void* to, const void* from, size_t bytes) {
    const std::lock_guard lock(mutex_);
    drop_old();
    const auto* at = static_cast<const std::byte*>(from);
    auto it = values_.upper_bound(at);
    if (it == values_.begin()) return false;
    --it;
    if (at + bytes > it->first + it->second.size()) return false;
    std::memcpy(to, it->second.data() + (at - it->first), bytes);
    return true;
  }

  void kernel() { kernels_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void drop_old() {
    const uint64_t now = kernels_.load(std::memory_order_relaxed);
    if (now != seen_) values_.clear();
    seen_ = now;
  }

  std::mutex mutex_;
  std::map<const std::byte*, std::vector<std::byte>> values_;
  std::atomic<uint64_t> kernels_{0};
  uint64_t seen_ = 0;
};

Kept& kept() {
  static Kept* const all = [] {  // never destroyed: programs copy while they end
    alignas(Kept) static std::byte room[sizeof(Kept)];
    return std::construct_at(reinterpret_cast<Kept*>(room));
  }();
  return *all;
}

// Zeros that cost no memory: whole pages of large ranges are handed back to the kernel, which gives zeros when they are
// touched again.
void clear(void* to, size_t bytes) {
  auto* begin = static_cast<std::byte*>(to);
  if (bytes < kLarge) {
    std::memset(begin, 0, bytes);
    return;
  }
  const size_t head = (kHostPage - reinterpret_cast<uintptr_t>(begin) % kHostPage) % kHostPage;
  const size_t pages = (bytes - head) / kHostPage * kHostPage;
  std::memset(begin, 0, head);
  if (::madvise(begin + head, pages, MADV_DONTNEED) != 0) std::memset(begin + head, 0, pages);
  std::memset(begin + head + pages, 0, bytes - head - pages);
}

}  // namespace

void forget_values() noexcept { kept().kernel(); }

void copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || to == nullptr || from == nullptr) return;
  const bool from_device = Memory::get().on_device(from);
  if (Memory::get().on_device(to)) {
    if (from_device || bytes > kSmall) {
      kept().drop(to);
    } else {
      kept().keep(to, from, bytes);
    }
  } else if (!from_device) {
    std::memmove(to, from, bytes);
  } else if (bytes > kSmall || !kept().write(to, from, bytes)) {
    clear(to, bytes);
  }
}

void fill(void* to, int value, size_t bytes) {
  if (bytes == 0 || to == nullptr) return;
  if (Memory::get().on_device(to)) {
    kept().drop(to);
  } else if (value == 0) {
    clear(to, bytes);
  } else {
    std::memset(to, value, bytes);
  }
}

SNUG_ENTRY int cudaMemcpy(void* to, const void* from, size_t bytes, int) {
  return guarded([&] { return copy(to, from, bytes), kSuccess; });
}
SNUG_ENTRY int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, Handle) {
  return cudaMemcpy(to, from, bytes, kind);
}
SNUG_ENTRY int cudaMemcpyPeer(void*, int, const void*, int, size_t) { return kSuccess; }
SNUG_ENTRY int cudaMemcpyPeerAsync(void*, int, const void*, int, size_t, Handle) { return kSuccess; }
SNUG_ENTRY int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                            int) {
  return guarded([&] {
    for (size_t row = 0; row < height; ++row)
      copy(static_cast<std::byte*>(to) + row * to_pitch, static_cast<const std::byte*>(from) + row * from_pitch, width);
    return kSuccess;
  });
}
SNUG_ENTRY int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                                 int kind, Handle) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
SNUG_ENTRY int cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, int) { return kSuccess; }
SNUG_ENTRY int cudaMemcpyToSymbolAsync(const void*, const void*, size_t, size_t, int, Handle) { return kSuccess; }
SNUG_ENTRY int cudaMemcpyFromSymbol(void* to, const void*, size_t bytes, size_t, int) {
  return guarded([&] { return fill(to, 0, bytes), kSuccess; });
}
SNUG_ENTRY int cudaMemset(void* to, int value, size_t bytes) {
  return guarded([&] { return fill(to, value, bytes), kSuccess; });
}
SNUG_ENTRY int cudaMemsetAsync(void* to, int value, size_t bytes, Handle) { return cudaMemset(to, value, bytes); }
SNUG_ENTRY int cudaMemPrefetchAsync(const void*, size_t, int, Handle) { return kSuccess; }
SNUG_ENTRY int cudaMemAdvise(const void*, size_t, int, int) { return kSuccess; }

SNUG_ENTRY int cuMemcpy(uint64_t to, uint64_t from, size_t bytes) {
  return cudaMemcpy(as_pointer(to), as_pointer(from), bytes, 0);
}
SNUG_ENTRY int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, Handle) { return cuMemcpy(to, from, bytes); }
SNUG_ENTRY int cuMemcpyHtoD_v2(uint64_t, const void*, size_t) { return kSuccess; }
SNUG_ENTRY int cuMemcpyHtoDAsync_v2(uint64_t, const void*, size_t, Handle) { return kSuccess; }
SNUG_ENTRY int cuMemcpyDtoH_v2(void* to, uint64_t, size_t bytes) { return cudaMemset(to, 0, bytes); }
SNUG_ENTRY int cuMemcpyDtoHAsync_v2(void* to, uint64_t, size_t bytes, Handle) { return cudaMemset(to, 0, bytes); }
SNUG_ENTRY int cuMemcpyDtoD_v2(uint64_t, uint64_t, size_t) { return kSuccess; }
SNUG_ENTRY int cuMemcpyDtoDAsync_v2(uint64_t, uint64_t, size_t, Handle) { return kSuccess; }
SNUG_ENTRY int cuMemsetD8_v2(uint64_t, unsigned char, size_t) { return kSuccess; }
SNUG_ENTRY int cuMemsetD8Async(uint64_t, unsigned char, size_t, Handle) { return kSuccess; }
SNUG_ENTRY int cuMemsetD32_v2(uint64_t, unsigned int, size_t) { return kSuccess; }
SNUG_ENTRY int cuMemsetD32Async(uint64_t, unsigned int, size_t, Handle) { return kSuccess; }

}  // namespace snug::null_device
