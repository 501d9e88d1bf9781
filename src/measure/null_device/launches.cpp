// Kernels: their registration, what is asked of them, and launches, which do nothing.

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "measure/null_device/copies.h"
#include "measure/null_device/entry.h"
#include "measure/null_device/settings.h"

namespace snug::null_device {

namespace {

struct FunctionAttributes {  // as far as every version of CUDA has it
  size_t shared_bytes, constant_bytes, local_bytes;
  int threads, registers, ptx, binary, cache_mode, dynamic_shared_bytes, carve_out;
};

// What a compiled library holds of its kernels (fatbinary_section.h, and the header of what it points to): an entry for each
// architecture.
struct FatBinary {
  uint32_t magic, version;
  const std::byte* entries;
};
struct FatHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  // after this header
};
struct FatEntry {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;  // after this header
  uint32_t packed_bytes, unused;
  uint16_t minor, major;
  uint32_t architecture;  // 86
};
constexpr uint32_t kFatBinaryMagic = 0x466243b1, kFatHeaderMagic = 0xba55ed50;

static_assert(offsetof(FatEntry, architecture) == 28);

// The architecture of which the card takes the kernels of `binary`: the highest that it can run.
int32_t version_for_card(const FatBinary* binary) {
  const int32_t card = settings().compute_capability;
  if (binary == nullptr || binary->magic != kFatBinaryMagic || binary->entries == nullptr) return card;
  FatHeader header{};
  std::memcpy(&header, binary->entries, sizeof header);
  if (header.magic != kFatHeaderMagic) return card;
  int32_t best = 0;
  for (uint64_t at = header.header_bytes; at + sizeof(FatEntry) <= header.header_bytes + header.bytes;) {
    FatEntry entry{};
    std::memcpy(&entry, binary->entries + at, sizeof entry);
    const auto version = static_cast<int32_t>(entry.architecture);
    if (version <= card) best = std::max(best, version);
    if (entry.header_bytes + entry.bytes == 0) break;
    at += entry.header_bytes + entry.bytes;
  }
  return best > 0 ? best : card;
}

// Which kernels are compiled for another architecture than the card's own; never destroyed, as libraries unload late.
struct Kernels {
  std::mutex mutex;
  std::unordered_map<const void*, int32_t> versions;

  static Kernels& get() {
    static auto* const all = new Kernels;  // NOLINT(cppcoreguidelines-owning-memory): never destroyed
    return *all;
  }
};

struct Registered {
  int32_t version = 0;  // a library's handle begins with it
};

struct Extent {
  unsigned int x, y, z;
};

int32_t version_of(const void* function) {
  Kernels& kernels = Kernels::get();
  const std::lock_guard lock(kernels.mutex);
  const auto it = kernels.versions.find(function);
  return it == kernels.versions.end() ? settings().compute_capability : it->second;
}

int launch() {
  forget_values();
  return kSuccess;
}

int blocks_for(int* blocks, int threads) {
  return give(blocks, threads > 0 && architecture().threads > threads ? architecture().threads / threads : 1);
}

}  // namespace

SNUG_ENTRY Registered* __cudaRegisterFatBinary(const FatBinary* binary) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): a handle in C, there until the process ends
  return new Registered{version_for_card(binary)};
}
SNUG_ENTRY void __cudaRegisterFatBinaryEnd(Registered*) {}
SNUG_ENTRY void __cudaUnregisterFatBinary(Registered*) {}
SNUG_ENTRY void __cudaRegisterFunction(const Registered* library, const void* function) {
  if (library == nullptr || library->version == settings().compute_capability) return;
  Kernels& kernels = Kernels::get();
  const std::lock_guard lock(kernels.mutex);
  kernels.versions[function] = library->version;
}
SNUG_ENTRY void __cudaRegisterVar() {}
SNUG_ENTRY void __cudaRegisterManagedVar() {}
SNUG_ENTRY void __cudaRegisterHostVar() {}
SNUG_ENTRY char __cudaInitModule(Registered*) { return 0; }
SNUG_ENTRY unsigned int __cudaPushCallConfiguration(Extent, Extent, size_t, Handle) { return 0; }
SNUG_ENTRY int __cudaPopCallConfiguration(Extent* grid, Extent* block, size_t* shared, void* stream) {
  if (grid != nullptr) *grid = {1, 1, 1};
  if (block != nullptr) *block = {1, 1, 1};
  give(shared, 0);
  return give(static_cast<Handle*>(stream), nullptr);
}
SNUG_ENTRY int __cudaGetKernel(Handle* kernel, const void* function) { return give(kernel, const_cast<void*>(function)); }
SNUG_ENTRY int __cudaLaunchKernel(Handle, Extent, Extent, void**, size_t, Handle) { return launch(); }
SNUG_ENTRY int __cudaLaunchKernel_ptsz(Handle, Extent, Extent, void**, size_t, Handle) { return launch(); }

SNUG_ENTRY int cudaLaunchKernel(const void*, Extent, Extent, void**, size_t, Handle) { return launch(); }
SNUG_ENTRY int cudaLaunchCooperativeKernel(const void*, Extent, Extent, void**, size_t, Handle) { return launch(); }
SNUG_ENTRY int cudaLaunchKernelExC(const void*, const void*, void**) { return launch(); }

SNUG_ENTRY int cudaFuncGetAttributes(FunctionAttributes* a, const void* function) {
  if (a == nullptr) return kInvalidValue;
  const Architecture card = architecture();
  const int version = version_of(function);
  *a = {0, 0, 0, 1024, 32, version, version, 0, card.block_shared_bytes, 0};
  return kSuccess;
}
SNUG_ENTRY int cudaFuncSetAttribute(const void*, int, int) { return kSuccess; }
SNUG_ENTRY int cudaFuncSetCacheConfig(const void*, int) { return kSuccess; }
SNUG_ENTRY int cudaFuncSetSharedMemConfig(const void*, int) { return kSuccess; }
SNUG_ENTRY int cudaFuncGetName(const char** name, const void*) { return give(name, "kernel"); }
SNUG_ENTRY int cudaGetFuncBySymbol(Handle* function, const void* symbol) {
  return give(function, const_cast<void*>(symbol));
}
SNUG_ENTRY int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads, size_t) {
  return blocks_for(blocks, threads);
}
SNUG_ENTRY int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int threads, size_t,
                                                                      unsigned int) {
  return blocks_for(blocks, threads);
}
SNUG_ENTRY int cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void*, int, int) {
  return give(bytes, architecture().block_shared_bytes);
}
SNUG_ENTRY int cudaOccupancyMaxActiveClusters(int* clusters, const void*, const void*) {
  return give(clusters, settings().multiprocessors);
}
SNUG_ENTRY int cudaOccupancyMaxPotentialClusterSize(int* size, const void*, const void*) { return give(size, 8); }

SNUG_ENTRY int cuModuleLoad(Handle* module, const char*) { return give(module, new_handle()); }
SNUG_ENTRY int cuModuleLoadData(Handle* module, const void*) { return give(module, new_handle()); }
SNUG_ENTRY int cuModuleLoadDataEx(Handle* module, const void*, unsigned int, int*, void**) {
  return give(module, new_handle());
}
SNUG_ENTRY int cuModuleLoadFatBinary(Handle* module, const void*) { return give(module, new_handle()); }
SNUG_ENTRY int cuModuleUnload(Handle) { return kSuccess; }
SNUG_ENTRY int cuModuleGetLoadingMode(int* mode) { return give(mode, 2); }  // lazy
SNUG_ENTRY int cuModuleGetFunction(Handle* function, Handle, const char*) { return give(function, new_handle()); }
SNUG_ENTRY int cuLibraryLoadData(Handle* library, const void*, int*, void**, unsigned int, int*, void**, unsigned int) {
  return give(library, new_handle());
}
SNUG_ENTRY int cuLibraryUnload(Handle) { return kSuccess; }
SNUG_ENTRY int cuLibraryGetKernel(Handle* kernel, Handle, const char*) { return give(kernel, new_handle()); }
SNUG_ENTRY int cuLibraryGetModule(Handle* module, Handle) { return give(module, new_handle()); }
SNUG_ENTRY int cuKernelGetFunction(Handle* function, Handle kernel) { return give(function, kernel); }
SNUG_ENTRY int cuLinkCreate_v2(unsigned int, int*, void**, Handle* link) { return give(link, new_handle()); }
SNUG_ENTRY int cuLinkAddData_v2(Handle, int, void*, size_t, const char*, unsigned int, int*, void**) { return kSuccess; }
SNUG_ENTRY int cuLinkComplete(Handle, void** image, size_t* bytes) {
  static char nothing[8];
  give(bytes, sizeof nothing);
  return give(image, static_cast<void*>(nothing));
}
SNUG_ENTRY int cuLinkDestroy(Handle) { return kSuccess; }
SNUG_ENTRY int cuFuncGetAttribute(int* value, int attribute, Handle) {
  constexpr int kThreads = 0, kRegisters = 4;
  return give(value, attribute == kThreads ? 1024 : attribute == kRegisters ? 32 : 0);
}
SNUG_ENTRY int cuKernelGetAttribute(int* value, int attribute, Handle kernel, int) {
  return cuFuncGetAttribute(value, attribute, kernel);
}
SNUG_ENTRY int cuFuncSetAttribute(Handle, int, int) { return kSuccess; }
SNUG_ENTRY int cuKernelSetAttribute(int, int, Handle, int) { return kSuccess; }
SNUG_ENTRY int cuFuncSetCacheConfig(Handle, int) { return kSuccess; }
// NOLINTNEXTLINE(readability-function-size): the interface's parameters
SNUG_ENTRY int cuLaunchKernel(Handle, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                              unsigned int, Handle, void**, void**) {
  return launch();
}
SNUG_ENTRY int cuLaunchKernelEx(const void*, Handle, void**, void**) { return launch(); }
// NOLINTNEXTLINE(readability-function-size): the interface's parameters
SNUG_ENTRY int cuLaunchCooperativeKernel(Handle, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                                         unsigned int, unsigned int, Handle, void**) {
  return launch();
}
SNUG_ENTRY int cuLaunchHostFunc(Handle, void (*call)(void*), void* data) {
  call(data);
  return kSuccess;
}
SNUG_ENTRY int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Handle, int threads, size_t) {
  return blocks_for(blocks, threads);
}
SNUG_ENTRY int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Handle, int threads, size_t, unsigned int) {
  return blocks_for(blocks, threads);
}
SNUG_ENTRY int cuOccupancyMaxActiveClusters(int* clusters, Handle, const void*) {
  return give(clusters, settings().multiprocessors);
}
SNUG_ENTRY int cuTensorMapEncodeTiled() { return kSuccess; }
SNUG_ENTRY int cuTensorMapEncodeIm2col() { return kSuccess; }

}  // namespace snug::null_device
