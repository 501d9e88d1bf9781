#pragma once
// How a function of CUDA's interface is written here: exported in C, no exception leaves it. Types are those of the binary
// interface (handles are pointers that nobody follows, enumerations are ints), declared by ourselves, so that no toolkit is
// needed to build. A function that is not implemented refuses by name: it says so once on stderr, is listed for the report,
// and returns an error.

#include <cstddef>
#include <cstdint>
#include <string>

#define SNUG_ENTRY extern "C" __attribute__((visibility("default")))

namespace snug::null_device {

using Handle = void*;  // a stream, an event, a module, a library's context …: a token that is compared and never followed

// The driver's interface gives addresses of memory as numbers, and tokens are made of numbers; nobody follows them.
// NOLINTNEXTLINE(performance-no-int-to-ptr): both are numbers in the binary interface
inline void* as_pointer(uint64_t number) { return reinterpret_cast<void*>(number); }
inline uint64_t as_number(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// Errors, as runtime and driver number them alike.
constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidDevice = 101, kNotFound = 500, kNotSupported = 801;

// A handle that was not given before.
Handle new_handle();

// Notes that `name` was asked for and is not there; returns `error`.
int refuse(const char* name, int error = kNotSupported) noexcept;

// The names refused so far, separated by blanks.
std::string refused_names();

// What `work` returns; out of memory where it throws.
template <class Work>
int guarded(Work work) noexcept {
  try {
    return work();
  } catch (...) {
    return kOutOfMemory;
  }
}

// Writes `value` where `place` points to, if it does.
template <class T, class V>
int give(T* place, V value) noexcept {
  if (place == nullptr) return kInvalidValue;
  *place = static_cast<T>(value);
  return kSuccess;
}

}  // namespace snug::null_device
