// The runtime's memory: allocations, pools, host memory, and what a pointer is.

#include "measure/null_device/entry.h"
#include "measure/null_device/memory.h"
#include "measure/null_device/settings.h"

namespace snug::null_device {

namespace {

int last_error = kSuccess;  // of any thread: what cudaGetLastError tells

// As the runtime does: an error stands until it is asked for.
int keep(int error) {
  if (error != kSuccess) last_error = error;
  return error;
}

int allocate(void** place, size_t bytes) {
  if (place == nullptr) return kInvalidValue;
  *place = nullptr;
  if (bytes == 0) return kSuccess;
  *place = Memory::get().allocate(current_device(), bytes);
  return *place == nullptr ? kOutOfMemory : kSuccess;
}

int allocate_host(void** place, size_t bytes, Kind kind) {
  if (place == nullptr) return kInvalidValue;
  *place = Memory::get().allocate_host(bytes, kind, current_device());
  return *place == nullptr ? kOutOfMemory : kSuccess;
}

struct PointerAttributes {
  int type;
  int device;
  void* device_pointer;
  void* host_pointer;
};

Handle pool() {
  static void* const only = new_handle();
  return only;
}

}  // namespace

SNUG_ENTRY int cudaGetLastError() {
  const int error = last_error;
  last_error = kSuccess;
  return error;
}
SNUG_ENTRY int cudaPeekAtLastError() { return last_error; }

SNUG_ENTRY int cudaMalloc(void** place, size_t bytes) {
  return keep(guarded([&] { return allocate(place, bytes); }));
}
SNUG_ENTRY int cudaMallocAsync(void** place, size_t bytes, Handle) { return cudaMalloc(place, bytes); }
SNUG_ENTRY int cudaMallocFromPoolAsync(void** place, size_t bytes, Handle, Handle) { return cudaMalloc(place, bytes); }
SNUG_ENTRY int cudaMallocPitch(void** place, size_t* pitch, size_t width, size_t height) {
  const size_t row = (width + 511) / 512 * 512;
  return give(pitch, row) == kSuccess ? cudaMalloc(place, row * height) : kInvalidValue;
}
SNUG_ENTRY int cudaFree(void* address) {
  return keep(guarded([&] {
    if (address == nullptr || Memory::get().release(address) || Memory::get().release_host(address)) return kSuccess;
    return kInvalidValue;
  }));
}
SNUG_ENTRY int cudaFreeAsync(void* address, Handle) { return cudaFree(address); }
SNUG_ENTRY int cudaMemGetInfo(size_t* free, size_t* total) {
  return guarded([&] {
    give(free, Memory::get().free_bytes(current_device()));
    return give(total, settings().memory_bytes);
  });
}

SNUG_ENTRY int cudaHostAlloc(void** place, size_t bytes, unsigned int) {
  return keep(guarded([&] { return allocate_host(place, bytes, Kind::host); }));
}
SNUG_ENTRY int cudaMallocHost(void** place, size_t bytes) { return cudaHostAlloc(place, bytes, 0); }
SNUG_ENTRY int cudaFreeHost(void* address) {
  return guarded([&] { return address == nullptr || Memory::get().release_host(address) ? kSuccess : kInvalidValue; });
}
SNUG_ENTRY int cudaHostRegister(void* address, size_t bytes, unsigned int) {
  constexpr int kAlreadyRegistered = 712;
  return guarded([&] { return Memory::get().pin(address, bytes) ? kSuccess : kAlreadyRegistered; });
}
SNUG_ENTRY int cudaHostUnregister(void* address) {
  constexpr int kNotRegistered = 713;
  return guarded([&] { return Memory::get().unpin(address) ? kSuccess : kNotRegistered; });
}
SNUG_ENTRY int cudaHostGetDevicePointer(void** place, void* address, unsigned int) { return give(place, address); }
SNUG_ENTRY int cudaHostGetFlags(unsigned int* flags, void*) { return give(flags, 0U); }
SNUG_ENTRY int cudaMallocManaged(void** place, size_t bytes, unsigned int) {
  return keep(guarded([&] { return allocate_host(place, bytes, Kind::managed); }));
}

SNUG_ENTRY int cudaPointerGetAttributes(PointerAttributes* attributes, const void* address) {
  if (attributes == nullptr) return kInvalidValue;
  return guarded([&] {
    const Place place = Memory::get().place_of(address);
    auto* const pointer = const_cast<void*>(address);
    attributes->type = static_cast<int>(place.kind);
    attributes->device = place.kind == Kind::unknown ? -2 : place.device;
    attributes->device_pointer = place.kind == Kind::unknown ? nullptr : pointer;
    attributes->host_pointer = place.kind == Kind::host || place.kind == Kind::managed ? pointer : nullptr;
    return kSuccess;
  });
}

SNUG_ENTRY int cudaDeviceGetDefaultMemPool(Handle* place, int) { return give(place, pool()); }
SNUG_ENTRY int cudaDeviceGetMemPool(Handle* place, int) { return give(place, pool()); }
SNUG_ENTRY int cudaDeviceSetMemPool(int, Handle) { return kSuccess; }
SNUG_ENTRY int cudaMemPoolCreate(Handle* place, const void*) { return give(place, new_handle()); }
SNUG_ENTRY int cudaMemPoolDestroy(Handle) { return kSuccess; }
SNUG_ENTRY int cudaMemPoolTrimTo(Handle, size_t) { return kSuccess; }
SNUG_ENTRY int cudaMemPoolSetAccess(Handle, const void*, size_t) { return kSuccess; }
SNUG_ENTRY int cudaMemPoolSetAttribute(Handle, int, void*) { return kSuccess; }
SNUG_ENTRY int cudaMemPoolGetAttribute(Handle, int attribute, void* value) {
  constexpr int kFirstOf64Bits = 4;  // the switches before it are ints
  return attribute < kFirstOf64Bits ? give(static_cast<int*>(value), 0) : give(static_cast<uint64_t*>(value), 0);
}

// What Python asks for at the end.
SNUG_ENTRY int64_t snug_null_device_peak_bytes(int device) { return Memory::get().peak_bytes(device); }
SNUG_ENTRY int64_t snug_null_device_pinned_peak_bytes() { return Memory::get().pinned_peak(); }
SNUG_ENTRY int64_t snug_null_device_managed_peak_bytes() { return Memory::get().managed_peak(); }
SNUG_ENTRY const char* snug_null_device_refused() {
  thread_local std::string names;
  names = refused_names();
  return names.c_str();  // NOLINT(clang-analyzer-cplusplus.InnerPointer): held until the thread asks again
}

}  // namespace snug::null_device
