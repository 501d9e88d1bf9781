// The driver's memory: allocations, and the virtual memory interface, on which expandable segments stand.

#include "measure/null_device/entry.h"
#include "measure/null_device/memory.h"
#include "measure/null_device/settings.h"

namespace snug::null_device {

namespace {

struct Location {
  int type;  // 1: a device
  int id;
};

struct AllocationProperties {  // CUmemAllocationProp, as far as it is read
  int type;
  int handle_types;
  Location location;
};

int give_address(uint64_t* place, std::byte* address) {
  if (address == nullptr) return kOutOfMemory;
  return give(place, as_number(address));
}

}  // namespace

SNUG_ENTRY int cuMemAlloc_v2(uint64_t* place, size_t bytes) {
  return guarded([&] { return give_address(place, Memory::get().allocate(current_device(), bytes)); });
}
SNUG_ENTRY int cuMemAllocAsync(uint64_t* place, size_t bytes, Handle) { return cuMemAlloc_v2(place, bytes); }
SNUG_ENTRY int cuMemFree_v2(uint64_t address) {
  return guarded([&] {
    const bool known =
        address == 0 || Memory::get().release(as_pointer(address)) || Memory::get().release_host(as_pointer(address));
    return known ? kSuccess : kInvalidValue;
  });
}
SNUG_ENTRY int cuMemFreeAsync(uint64_t address, Handle) { return cuMemFree_v2(address); }
SNUG_ENTRY int cuMemGetInfo_v2(size_t* free, size_t* total) {
  return guarded([&] {
    give(free, Memory::get().free_bytes(current_device()));
    return give(total, settings().memory_bytes);
  });
}
SNUG_ENTRY int cuMemAllocManaged(uint64_t* place, size_t bytes, unsigned int) {
  return guarded([&] { return give_address(place, Memory::get().allocate_host(bytes, Kind::managed, current_device())); });
}
SNUG_ENTRY int cuMemHostAlloc(void** place, size_t bytes, unsigned int) {
  return guarded([&] {
    std::byte* address = Memory::get().allocate_host(bytes, Kind::host, current_device());
    return address == nullptr ? kOutOfMemory : give(place, static_cast<void*>(address));
  });
}
SNUG_ENTRY int cuMemAllocHost_v2(void** place, size_t bytes) { return cuMemHostAlloc(place, bytes, 0); }
SNUG_ENTRY int cuMemFreeHost(void* address) {
  return guarded([&] { return Memory::get().release_host(address) ? kSuccess : kInvalidValue; });
}
SNUG_ENTRY int cuMemHostRegister_v2(void* address, size_t bytes, unsigned int) {
  return guarded([&] { return Memory::get().pin(address, bytes) ? kSuccess : 712; });
}
SNUG_ENTRY int cuMemHostUnregister(void* address) {
  return guarded([&] { return Memory::get().unpin(address) ? kSuccess : 713; });
}
SNUG_ENTRY int cuMemHostGetDevicePointer_v2(uint64_t* place, void* address, unsigned int) {
  return give(place, as_number(address));
}
SNUG_ENTRY int cuMemGetAddressRange_v2(uint64_t* begin, size_t* bytes, uint64_t address) {
  return guarded([&] {
    const Place place = Memory::get().place_of(as_pointer(address));
    if (place.kind == Kind::unknown) return kInvalidValue;
    if (begin != nullptr) *begin = as_number(place.begin);
    if (bytes != nullptr) *bytes = place.bytes;
    return kSuccess;
  });
}
SNUG_ENTRY int cuPointerGetAttribute(void* value, int attribute, uint64_t address) {
  constexpr int kContext = 1, kMemoryType = 2, kDevicePointer = 3, kHostPointer = 4, kManaged = 8, kOrdinal = 9,
                kDeviceMemory = 2;
  return guarded([&] {
    const Place place = Memory::get().place_of(as_pointer(address));
    if (place.kind == Kind::unknown) return kInvalidValue;
    switch (attribute) {
      case kContext: return give(static_cast<Handle*>(value), as_pointer(static_cast<uint64_t>(place.device) + 1));
      case kMemoryType: return give(static_cast<unsigned int*>(value), place.kind == Kind::host ? 1 : kDeviceMemory);
      case kDevicePointer:
      case kHostPointer: return give(static_cast<uint64_t*>(value), address);
      case kManaged: return give(static_cast<unsigned int*>(value), place.kind == Kind::managed ? 1 : 0);
      case kOrdinal: return give(static_cast<int*>(value), place.device);
      default: return refuse(("cuPointerGetAttribute(" + std::to_string(attribute) + ")").c_str());
    }
  });
}

SNUG_ENTRY int cuMemGetAllocationGranularity(size_t* bytes, const AllocationProperties*, int) { return give(bytes, kPage); }
SNUG_ENTRY int cuMemAddressReserve(uint64_t* place, size_t bytes, size_t, uint64_t, unsigned long long) {
  return guarded([&] { return give_address(place, Memory::get().reserve(bytes)); });
}
SNUG_ENTRY int cuMemAddressFree(uint64_t address, size_t) {
  return guarded([&] { return Memory::get().unreserve(as_pointer(address)) ? kSuccess : kInvalidValue; });
}
SNUG_ENTRY int cuMemCreate(unsigned long long* piece, size_t bytes, const AllocationProperties* properties,
                           unsigned long long) {
  if (piece == nullptr || properties == nullptr || bytes % kPage != 0) return kInvalidValue;
  return guarded([&] {
    *piece = Memory::get().create(properties->location.id, bytes);
    return *piece == 0 ? kOutOfMemory : kSuccess;
  });
}
SNUG_ENTRY int cuMemRelease(unsigned long long piece) {
  return guarded([&] { return Memory::get().destroy(piece) ? kSuccess : kInvalidValue; });
}
SNUG_ENTRY int cuMemMap(uint64_t address, size_t bytes, size_t, unsigned long long piece, unsigned long long) {
  return guarded([&] { return Memory::get().map(as_pointer(address), bytes, piece) ? kSuccess : kInvalidValue; });
}
SNUG_ENTRY int cuMemUnmap(uint64_t address, size_t bytes) {
  return guarded([&] { return Memory::get().unmap(as_pointer(address), bytes) ? kSuccess : kInvalidValue; });
}
SNUG_ENTRY int cuMemSetAccess(uint64_t, size_t, const void*, size_t) { return kSuccess; }
SNUG_ENTRY int cuMemRetainAllocationHandle(unsigned long long*, void*) { return refuse("cuMemRetainAllocationHandle"); }
SNUG_ENTRY int cuMemExportToShareableHandle(void*, unsigned long long, int, unsigned long long) {
  return refuse("cuMemExportToShareableHandle");
}
SNUG_ENTRY int cuMemImportFromShareableHandle(unsigned long long*, void*, int) {
  return refuse("cuMemImportFromShareableHandle");
}

}  // namespace snug::null_device
