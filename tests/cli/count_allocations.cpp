// A library to preload under `snug train` or `snug generate`: counts requests of at least SNUG_COUNT_FROM bytes (64 KiB
// unless told) that the whole process makes between the first and the last line of a step in metrics.jsonl, libraries
// included, and writes what it saw to the file SNUG_COUNT_FILE at exit: "LINES COUNT LARGEST", then the kinds and sizes of
// the first few. With SNUG_COUNT_STREAM=1 every flush of stdout ends such a line: an answer.
//
// It stands in for the allocator's entry points and hands on to glibc's own; nothing here may allocate.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kKept = 16;

struct Request {
  const char* kind;
  size_t bytes;
};

std::atomic<size_t> least{size_t{64} << 10};
std::atomic<bool> streams{false};
std::atomic<int> lines{0};
std::atomic<int> seen{0};       // requests since the first line
std::atomic<int> confirmed{0};  // … up to the last line
std::atomic<size_t> largest{0}, confirmed_largest{0};
std::array<Request, kKept> kept;

void note(const char* kind, size_t bytes) {
  if (lines.load(std::memory_order_relaxed) == 0 || bytes < least.load(std::memory_order_relaxed)) return;
  const int index = seen.fetch_add(1);
  if (index < kKept) kept[static_cast<size_t>(index)] = {kind, bytes};
  for (size_t before = largest.load(); bytes > before && !largest.compare_exchange_weak(before, bytes);) {
  }
}

void end_line() {
  confirmed.store(seen.load());
  confirmed_largest.store(largest.load());
  lines.fetch_add(1);
}

__attribute__((constructor)) void start() {
  const char* from = std::getenv("SNUG_COUNT_FROM");
  if (from != nullptr) least.store(std::strtoull(from, nullptr, 10));
  streams.store(std::getenv("SNUG_COUNT_STREAM") != nullptr);
}

__attribute__((destructor)) void finish() {
  const char* path = std::getenv("SNUG_COUNT_FILE");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
  if (file == nullptr) return;
  const int count = confirmed.load();
  std::fprintf(file, "%d %d %zu\n", lines.load(), count, confirmed_largest.load());
  for (int i = 0; i < std::min(count, kKept); ++i)
    std::fprintf(file, "%s %zu\n", kept[static_cast<size_t>(i)].kind, kept[static_cast<size_t>(i)].bytes);
  std::fclose(file);
}

}  // namespace

extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

int _IO_fflush(std::FILE* file);

int fflush(std::FILE* file) {
  if (streams.load() && file == stdout) end_line();
  return _IO_fflush(file);
}

ssize_t write(int file, const void* bytes, size_t count) {
  constexpr char kStep[] = "{\"step\"";
  if (count >= sizeof kStep && std::memcmp(bytes, kStep, sizeof kStep - 1) == 0) end_line();
  return syscall(SYS_write, file, bytes, count);
}

void* malloc(size_t bytes) {
  note("malloc", bytes);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  note("calloc", count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* block, size_t bytes) {
  note("realloc", bytes);
  return __libc_realloc(block, bytes);
}
void* reallocarray(void* block, size_t count, size_t bytes) {
  size_t whole = 0;
  if (__builtin_mul_overflow(count, bytes, &whole)) {
    errno = ENOMEM;
    return nullptr;
  }
  note("reallocarray", whole);
  return __libc_realloc(block, whole);
}
void* memalign(size_t alignment, size_t bytes) {
  note("memalign", bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  note("aligned_alloc", bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  note("posix_memalign", bytes);
  *block = __libc_memalign(alignment, bytes);
  return *block != nullptr ? 0 : ENOMEM;
}
void* valloc(size_t bytes) {
  note("valloc", bytes);
  return __libc_memalign(4096, bytes);
}
void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  note("mmap", bytes);
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
void* mmap64(void* address, size_t bytes, int protection, int flags, int file, off64_t offset) {
  note("mmap64", bytes);
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
void* mremap(void* address, size_t before, size_t after, int flags, ...) {
  note("mremap", after);
  void* wish = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    std::va_list rest;
    va_start(rest, flags);
    wish = va_arg(rest, void*);
    va_end(rest);
  }
  return reinterpret_cast<void*>(syscall(SYS_mremap, address, before, after, flags, wish));
}
}
