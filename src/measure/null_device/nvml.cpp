// NVML, which programs ask for free memory, names and links; a card without work answers.

#include <unistd.h>

#include <cstdio>
#include <optional>

#include "measure/null_device/entry.h"
#include "measure/null_device/memory.h"
#include "measure/null_device/properties.h"
#include "measure/null_device/settings.h"

namespace snug::null_device {

namespace {

constexpr int kInvalidArgument = 2, kUnsupported = 3, kInsufficientSize = 7;

struct MemoryInfo {
  unsigned long long total, free, used;
};
struct MemoryInfo2 {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};

struct ProcessInfo1 {
  unsigned int process;
  unsigned long long bytes;
};
struct ProcessInfo {
  unsigned int process;
  unsigned long long bytes;
  unsigned int gpu_instance, compute_instance;
};

int index_of(Handle device) { return static_cast<int>(as_number(device)) - 1; }

int write(char* text, unsigned int bytes, const char* words) {
  if (text == nullptr) return kInvalidArgument;
  std::snprintf(text, bytes, "%s", words);
  return kSuccess;
}

// This process with all that it has taken, and the others, whose numbers are made up.
template <class Info>
int list_processes(Handle device, unsigned int* count, Info* list) {
  if (count == nullptr) return kInvalidArgument;
  return guarded([&] {
    const std::vector<int64_t>& others = settings().others_bytes;
    const unsigned int room = *count;
    *count = settings().lists_processes ? static_cast<unsigned int>(others.size()) + 1 : 0;
    if (*count == 0) return kSuccess;
    if (room < *count || list == nullptr) return kInsufficientSize;
    const auto own = static_cast<unsigned int>(::getpid());
    const int64_t at_first = settings().free_at_first(), now = Memory::get().free_bytes(index_of(device));
    list[0] = Info{};
    list[0].process = own;
    list[0].bytes = static_cast<unsigned long long>(settings().context_bytes + at_first - now);
    for (unsigned int i = 1; i < *count; ++i) {
      list[i] = Info{};
      list[i].process = own + 1000 * i;
      list[i].bytes = static_cast<unsigned long long>(others[i - 1]);
    }
    return kSuccess;
  });
}

}  // namespace

SNUG_ENTRY int nvmlInit_v2() { return kSuccess; }
SNUG_ENTRY int nvmlInit() { return kSuccess; }
SNUG_ENTRY int nvmlInitWithFlags(unsigned int) { return kSuccess; }
SNUG_ENTRY int nvmlShutdown() { return kSuccess; }
SNUG_ENTRY const char* nvmlErrorString(int error) { return error == kSuccess ? "Success" : "Not Supported"; }
SNUG_ENTRY int nvmlSystemGetDriverVersion(char* text, unsigned int bytes) { return write(text, bytes, "590.00"); }
SNUG_ENTRY int nvmlSystemGetCudaDriverVersion_v2(int* version) { return give(version, 13030); }
SNUG_ENTRY int nvmlSystemGetNVMLVersion(char* text, unsigned int bytes) { return write(text, bytes, "13.590.00"); }
SNUG_ENTRY int nvmlDeviceGetCount_v2(unsigned int* count) { return give(count, settings().devices); }
SNUG_ENTRY int nvmlDeviceGetHandleByIndex_v2(unsigned int index, Handle* device) {
  if (!is_device(static_cast<int>(index))) return kInvalidArgument;
  return give(device, as_pointer(uint64_t{index} + 1));
}
SNUG_ENTRY int nvmlDeviceGetHandleByPciBusId_v2(const char* text, Handle* device) {
  const std::optional<unsigned int> bus = bus_of(text);
  return bus.value_or(0) > 0 ? nvmlDeviceGetHandleByIndex_v2(*bus - 1, device) : kInvalidArgument;
}
SNUG_ENTRY int nvmlDeviceGetHandleByUUID(const char*, Handle* device) { return nvmlDeviceGetHandleByIndex_v2(0, device); }
SNUG_ENTRY int nvmlDeviceGetIndex(Handle device, unsigned int* index) { return give(index, index_of(device)); }
SNUG_ENTRY int nvmlDeviceGetName(Handle, char* text, unsigned int bytes) {
  return write(text, bytes, settings().name.c_str());
}
SNUG_ENTRY int nvmlDeviceGetMemoryInfo(Handle device, MemoryInfo* info) {
  return guarded([&] {
    const auto total = static_cast<unsigned long long>(settings().memory_bytes);
    const auto free = static_cast<unsigned long long>(Memory::get().free_bytes(index_of(device)));
    return give(info, MemoryInfo{total, free, total - free});
  });
}
SNUG_ENTRY int nvmlDeviceGetMemoryInfo_v2(Handle device, MemoryInfo2* info) {
  MemoryInfo plain{};
  const int status = nvmlDeviceGetMemoryInfo(device, &plain);
  if (status == kSuccess) *info = {info->version, plain.total, 0, plain.free, plain.used};
  return status;
}
SNUG_ENTRY int nvmlDeviceGetCudaComputeCapability(Handle, int* major, int* minor) {
  give(major, architecture().major);
  return give(minor, architecture().minor);
}
SNUG_ENTRY int nvmlDeviceGetComputeRunningProcesses_v3(Handle device, unsigned int* count, ProcessInfo* list) {
  return list_processes(device, count, list);
}
SNUG_ENTRY int nvmlDeviceGetComputeRunningProcesses_v2(Handle device, unsigned int* count, ProcessInfo* list) {
  return list_processes(device, count, list);
}
SNUG_ENTRY int nvmlDeviceGetComputeRunningProcesses(Handle device, unsigned int* count, ProcessInfo1* list) {
  return list_processes(device, count, list);
}
SNUG_ENTRY int nvmlDeviceGetUtilizationRates(Handle, unsigned int* rates) {
  give(rates, 0U);
  return give(rates + 1, 0U);
}
SNUG_ENTRY int nvmlDeviceGetTemperature(Handle, int, unsigned int* degrees) { return give(degrees, 30U); }
SNUG_ENTRY int nvmlDeviceGetPowerUsage(Handle, unsigned int* milliwatts) { return give(milliwatts, 50000U); }
SNUG_ENTRY int nvmlDeviceGetEnforcedPowerLimit(Handle, unsigned int* milliwatts) { return give(milliwatts, 300000U); }
SNUG_ENTRY int nvmlDeviceGetNvLinkRemoteDeviceType(Handle, unsigned int, int*) { return kUnsupported; }
SNUG_ENTRY int nvmlDeviceGetNvLinkRemotePciInfo_v2(Handle, unsigned int, void*) { return kUnsupported; }
SNUG_ENTRY int nvmlDeviceGetNvLinkState(Handle, unsigned int, int*) { return kUnsupported; }
SNUG_ENTRY int nvmlDeviceGetCpuAffinity(Handle, unsigned int words, unsigned long* set) {
  for (unsigned int i = 0; i < words; ++i) set[i] = ~0UL;
  return kSuccess;
}

}  // namespace snug::null_device
