#include "measure/null_device/properties.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "measure/null_device/entry.h"
#include "measure/null_device/memory.h"
#include "measure/null_device/settings.h"

namespace snug::null_device {

namespace {

constexpr int kWarp = 32, kBlockThreads = 1024, kRegisters = 65536, kBlockShared = 48 * 1024, kGridX = 2147483647,
              kGridYZ = 65535;
constexpr size_t kProperties11Bytes = offsetof(DeviceProperties12, rest);

static_assert(offsetof(DeviceProperties12, multiprocessors) == 388 && sizeof(DeviceProperties12) == 1032);
static_assert(offsetof(DeviceProperties13, multiprocessors) == 384 && sizeof(DeviceProperties13) == 1008);

template <class Properties>
void describe(Properties& p, int device) {
  const Architecture a = architecture();
  std::snprintf(p.name, sizeof p.name, "%s", settings().name.c_str());
  write_uuid(p.uuid, device);
  p.memory_bytes = static_cast<size_t>(settings().memory_bytes);
  p.major = a.major;
  p.minor = a.minor;
  p.multiprocessors = settings().multiprocessors;
  p.warp = kWarp;
  p.block_threads = p.block_shape[0] = p.block_shape[1] = kBlockThreads;
  p.block_shape[2] = 64;
  p.grid_shape[0] = kGridX;
  p.grid_shape[1] = p.grid_shape[2] = kGridYZ;
  p.block_registers = p.registers = kRegisters;
  p.threads = a.threads;
  p.blocks = a.blocks;
  p.block_shared_bytes = kBlockShared;
  p.block_shared_opt_in_bytes = static_cast<size_t>(a.block_shared_bytes);
  p.shared_bytes = static_cast<size_t>(a.shared_bytes);
  p.block_shared_reserved_bytes = 1024;
  p.l2_bytes = a.l2_bytes;
  p.constant_bytes = 65536;
  p.pitch = kGridX;
  p.texture_alignment = 512;
  p.texture_pitch_alignment = 32;
  p.pci_bus = device + 1;
  p.copy_engines = 2;
  p.concurrent_kernels = p.unified_addressing = p.managed_memory = p.maps_host = p.stream_priorities = 1;
  p.concurrent_managed = p.preemption = p.cooperative = p.host_pointers = 1;
}

template <class Properties>
int properties(void* place, int device, size_t bytes) {
  if (!is_device(device)) return kInvalidDevice;
  Properties p{};
  describe(p, device);
  std::memcpy(place, &p, bytes);
  return kSuccess;
}

bool runtime_is_11() {
  static const bool is = ::dlopen("libcudart.so.11.0", RTLD_LAZY | RTLD_NOLOAD) != nullptr;
  return is;
}

}  // namespace

bool is_device(int device) { return device >= 0 && device < settings().devices; }

void write_uuid(unsigned char* uuid, int device) {
  constexpr unsigned char kPlain[16] = {0x73, 0x6e, 0x75, 0x67, 0, 0, 0x40, 0, 0x80};
  std::copy_n(kPlain, sizeof kPlain, uuid);
  uuid[15] = static_cast<unsigned char>(device);
}

std::optional<unsigned int> bus_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  static_cast<void>(std::strtoul(text, &end, 16));  // the domain
  if (end == text || *end != ':') return std::nullopt;
  const char* digits = end + 1;
  const unsigned long bus = std::strtoul(digits, &end, 16);
  return end == digits ? std::nullopt : std::optional(static_cast<unsigned int>(bus));
}

int attribute_of(int attribute) {
  const Architecture a = architecture();
  switch (attribute) {
    case 1:
    case 2:
    case 3: return kBlockThreads;
    case 4: return 64;
    case 5: return kGridX;
    case 6:
    case 7: return kGridYZ;
    case 8: return kBlockShared;
    case 9: return 65536;  // constant memory
    case 10: return kWarp;
    case 11: return kGridX;  // pitch
    case 12:
    case 82: return kRegisters;
    case 13: return 1410000;  // clock in kHz
    case 14: return 512;      // alignment of textures
    case 16: return settings().multiprocessors;
    case 36: return 1593000;  // clock of the memory in kHz
    case 37: return 5120;     // bits of its bus
    case 38: return a.l2_bytes;
    case 39: return a.threads;
    case 40: return 2;  // copy engines
    case 75: return a.major;
    case 76: return a.minor;
    case 81: return a.shared_bytes;
    case 97: return a.block_shared_bytes;
    case 106: return a.blocks;
    case 111: return 1024;  // shared memory of a block that the driver keeps
    case 15:
    case 19:
    case 31:
    case 41:
    case 78:
    case 79:
    case 80:  // overlap, maps host, concurrent, unified, priorities, L1
    case 83:
    case 89:
    case 90:
    case 91:
    case 95:  // managed, concurrent managed, preemption, host pointers, cooperative
    case 99:
    case 102:
    case 103:
    case 115: return 1;                     // host registration, virtual memory, shared by descriptor, pools
    case 120: return a.major >= 9 ? 1 : 0;  // clusters
    default: return 0;
  }
}

SNUG_ENTRY int cudaGetDeviceProperties_v2(void* place, int device) {
  return properties<DeviceProperties12>(place, device, sizeof(DeviceProperties12));
}
SNUG_ENTRY int cudaGetDeviceProperties(void* place, int device) {  // 12 has it under the other name
  if (runtime_is_11()) return properties<DeviceProperties12>(place, device, kProperties11Bytes);
  return properties<DeviceProperties13>(place, device, sizeof(DeviceProperties13));
}
SNUG_ENTRY int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  return is_device(device) ? give(value, attribute_of(attribute)) : kInvalidDevice;
}
SNUG_ENTRY int cudaGetDeviceCount(int* count) {
  constexpr int kNoDevice = 100;
  give(count, settings().devices);
  return settings().devices > 0 ? kSuccess : kNoDevice;
}
SNUG_ENTRY int cudaGetDevice(int* device) { return give(device, current_device()); }
SNUG_ENTRY int cudaSetDevice(int device) {
  if (!is_device(device)) return kInvalidDevice;
  current_device() = device;
  return kSuccess;
}
SNUG_ENTRY int cudaInitDevice(int device, unsigned int, unsigned int) {
  return is_device(device) ? kSuccess : kInvalidDevice;
}
SNUG_ENTRY int cudaSetValidDevices(int*, int) { return kSuccess; }
SNUG_ENTRY int cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  if (text == nullptr || bytes <= 0 || !is_device(device)) return kInvalidValue;
  std::snprintf(text, static_cast<size_t>(bytes), "0000:%02x:00.0", static_cast<unsigned int>(device + 1));
  return kSuccess;
}
SNUG_ENTRY int cudaDeviceGetByPCIBusId(int* device, const char* text) {
  const std::optional<unsigned int> bus = bus_of(text);
  return bus ? give(device, static_cast<int>(*bus) - 1) : kInvalidValue;
}
SNUG_ENTRY int cudaChooseDevice(int* device, const void*) { return give(device, 0); }
SNUG_ENTRY int cudaDeviceCanAccessPeer(int* can, int, int) { return give(can, 0); }
SNUG_ENTRY int cudaDeviceEnablePeerAccess(int, unsigned int) { return kSuccess; }
SNUG_ENTRY int cudaDeviceDisablePeerAccess(int) { return kSuccess; }
SNUG_ENTRY int cudaDeviceGetP2PAttribute(int* value, int, int, int) { return give(value, 0); }
SNUG_ENTRY int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  give(least, 0);
  return give(greatest, -5);
}
SNUG_ENTRY int cudaDeviceSynchronize() { return kSuccess; }
SNUG_ENTRY int cudaDeviceReset() { return kSuccess; }
SNUG_ENTRY int cudaDeviceGetLimit(size_t* value, int) { return give(value, 1024); }
SNUG_ENTRY int cudaDeviceSetLimit(int, size_t) { return kSuccess; }
SNUG_ENTRY int cudaDeviceGetCacheConfig(int* value) { return give(value, 0); }
SNUG_ENTRY int cudaDeviceSetCacheConfig(int) { return kSuccess; }
SNUG_ENTRY int cudaDeviceSetSharedMemConfig(int) { return kSuccess; }
SNUG_ENTRY int cudaGetDeviceFlags(unsigned int* flags) { return give(flags, 0U); }
SNUG_ENTRY int cudaSetDeviceFlags(unsigned int) { return kSuccess; }
SNUG_ENTRY int cudaProfilerStart() { return kSuccess; }
SNUG_ENTRY int cudaProfilerStop() { return kSuccess; }

}  // namespace snug::null_device
