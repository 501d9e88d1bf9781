// A stand-in for NVIDIA's management library: two devices, one nearly full, and two processes. With the signatures of
// nvml.h. SNUG_FAKE_NVML=refuse: as without a loaded kernel module.

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kDriverNotLoaded = 9, kInvalid = 2;
constexpr unsigned long long kGiB = 1ULL << 30;

struct Memory {
  unsigned long long total, free, used;
};
struct ProcessInfo {
  unsigned int pid;
  unsigned long long used;
  unsigned int gpu_instance, compute_instance;
};

int devices[2] = {0, 1};

bool is_second(const void* device) { return device == &devices[1]; }

}  // namespace

extern "C" {

int nvmlInit_v2() {
  const char* mode = std::getenv("SNUG_FAKE_NVML");
  return mode != nullptr && std::strcmp(mode, "refuse") == 0 ? kDriverNotLoaded : kSuccess;
}
int nvmlShutdown() { return kSuccess; }
const char* nvmlErrorString(int status) { return status == kDriverNotLoaded ? "Driver Not Loaded" : "Invalid Argument"; }

int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 2;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  if (index > 1) return kInvalid;
  *device = &devices[index];
  return kSuccess;
}

int nvmlDeviceGetName(void* /*device*/, char* name, unsigned int length) {
  std::snprintf(name, length, "NVIDIA Test 24GB");
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  const unsigned long long used = is_second(device) ? 23 * kGiB : 6 * kGiB;
  *memory = {24 * kGiB, 24 * kGiB - used, used};
  return kSuccess;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned int* count, ProcessInfo* list) {
  if (is_second(device)) {
    *count = 0;
    return kSuccess;
  }
  list[0] = {1, 2 * kGiB, 0, 0};
  list[1] = {999999, 3 * kGiB, 0, 0};
  list[2] = {999998, ~0ULL, 0, 0};
  *count = 3;
  return kSuccess;
}
}
