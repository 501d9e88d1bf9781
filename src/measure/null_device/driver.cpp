// The driver: devices, contexts, and how its functions are found. Memory stands in driver_memory.cpp, kernels in
// launches.cpp.

#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "measure/null_device/entry.h"
#include "measure/null_device/memory.h"
#include "measure/null_device/properties.h"
#include "measure/null_device/settings.h"

namespace snug::null_device {

namespace {

Handle context_of(int device) { return as_pointer(static_cast<uint64_t>(device) + 1); }
int device_of(Handle context) { return context == nullptr ? 0 : static_cast<int>(as_number(context)) - 1; }

// The newest version of a function of the driver that stands in this library.
void* find(const char* symbol) {
  static void* const self = [] {
    Dl_info info{};
    ::dladdr(reinterpret_cast<void*>(&find), &info);
    return ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  for (const char* version : {"_v3", "_v2", ""})
    if (void* found = ::dlsym(self, (std::string(symbol) + version).c_str())) return found;
  return nullptr;
}

int look_up(const char* symbol, void** function, int* status) {
  constexpr int kFound = 0, kSymbolNotFound = 1;
  if (symbol == nullptr || function == nullptr) return kInvalidValue;
  return guarded([&] {
    *function = find(symbol);
    if (status != nullptr) *status = *function != nullptr ? kFound : kSymbolNotFound;
    return *function != nullptr ? kSuccess : kNotFound;
  });
}

}  // namespace

SNUG_ENTRY int cuInit(unsigned int) { return kSuccess; }
SNUG_ENTRY int cuGetProcAddress_v2(const char* symbol, void** function, int, uint64_t, int* status) {
  return look_up(symbol, function, status);
}
SNUG_ENTRY int cuGetProcAddress(const char* symbol, void** function, int, uint64_t) {
  return look_up(symbol, function, nullptr);
}
SNUG_ENTRY int cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long, int* status) {
  return look_up(symbol, function, status);
}
SNUG_ENTRY int cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int, unsigned long long,
                                                int* status) {
  return look_up(symbol, function, status);
}
SNUG_ENTRY int cuGetExportTable(const void**, const void*) { return kNotFound; }  // the runtime's private way in

SNUG_ENTRY int cuDeviceGetCount(int* count) { return give(count, settings().devices); }
SNUG_ENTRY int cuDeviceGet(int* device, int ordinal) { return is_device(ordinal) ? give(device, ordinal) : kInvalidDevice; }
SNUG_ENTRY int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return is_device(device) ? give(value, attribute_of(attribute)) : kInvalidDevice;
}
SNUG_ENTRY int cuDeviceGetName(char* text, int bytes, int) {
  if (text == nullptr || bytes <= 0) return kInvalidValue;
  std::snprintf(text, static_cast<size_t>(bytes), "%s", settings().name.c_str());
  return kSuccess;
}
SNUG_ENTRY int cuDeviceGetUuid(unsigned char* uuid, int device) { return write_uuid(uuid, device), kSuccess; }
SNUG_ENTRY int cuDeviceGetUuid_v2(unsigned char* uuid, int device) { return write_uuid(uuid, device), kSuccess; }
SNUG_ENTRY int cuDeviceTotalMem_v2(size_t* bytes, int) { return give(bytes, settings().memory_bytes); }
SNUG_ENTRY int cuDeviceComputeCapability(int* major, int* minor, int) {
  give(major, architecture().major);
  return give(minor, architecture().minor);
}
SNUG_ENTRY int cuDeviceCanAccessPeer(int* can, int, int) { return give(can, 0); }
SNUG_ENTRY int cuDeviceGetPCIBusId(char* text, int bytes, int device) {
  if (text == nullptr || bytes <= 0) return kInvalidValue;
  std::snprintf(text, static_cast<size_t>(bytes), "0000:%02x:00.0", static_cast<unsigned int>(device + 1));
  return kSuccess;
}

SNUG_ENTRY int cuDevicePrimaryCtxGetState(int, unsigned int* flags, int* active) {
  give(flags, 0U);
  return give(active, 1);
}
SNUG_ENTRY int cuDevicePrimaryCtxRetain(Handle* context, int device) { return give(context, context_of(device)); }
SNUG_ENTRY int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
SNUG_ENTRY int cuDevicePrimaryCtxSetFlags_v2(int, unsigned int) { return kSuccess; }
SNUG_ENTRY int cuCtxCreate_v2(Handle* context, unsigned int, int device) { return give(context, context_of(device)); }
SNUG_ENTRY int cuCtxDestroy_v2(Handle) { return kSuccess; }
SNUG_ENTRY int cuCtxGetCurrent(Handle* context) { return give(context, context_of(current_device())); }
SNUG_ENTRY int cuCtxSetCurrent(Handle context) {
  current_device() = device_of(context);
  return kSuccess;
}
SNUG_ENTRY int cuCtxPushCurrent_v2(Handle context) { return cuCtxSetCurrent(context); }
SNUG_ENTRY int cuCtxPopCurrent_v2(Handle* context) { return context == nullptr ? kSuccess : cuCtxGetCurrent(context); }
SNUG_ENTRY int cuCtxGetDevice(int* device) { return give(device, current_device()); }
SNUG_ENTRY int cuCtxGetApiVersion(Handle, unsigned int* version) { return give(version, 3020U); }
SNUG_ENTRY int cuCtxSynchronize() { return kSuccess; }
SNUG_ENTRY int cuCtxGetLimit(size_t* value, int) { return give(value, 1024); }
SNUG_ENTRY int cuCtxSetLimit(int, size_t) { return kSuccess; }
SNUG_ENTRY int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  give(least, 0);
  return give(greatest, -5);
}
SNUG_ENTRY int cuCtxEnablePeerAccess(Handle, unsigned int) { return kSuccess; }

}  // namespace snug::null_device
