#include "watch/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "watch/process_use.h"

namespace snug {

namespace {

// As nvml.h has them.
using Status = int;
using Device = void*;
constexpr Status kSuccess = 0, kTooSmall = 7;
constexpr unsigned long long kNotTold = ~0ULL;

struct Memory {
  unsigned long long total, free, used;
};

struct ProcessInfo {  // _v2 and _v3
  unsigned int pid;
  unsigned long long used;
  unsigned int gpu_instance, compute_instance;
};

}  // namespace

struct Nvml::Functions {
  Status (*init)();
  Status (*shutdown)();
  const char* (*error)(Status);
  Status (*count)(unsigned int*);
  Status (*handle)(unsigned int, Device*);
  Status (*name)(Device, char*, unsigned int);
  Status (*memory)(Device, Memory*);
  Status (*processes)(Device, unsigned int*, ProcessInfo*);  // null: the driver is older than 2021

  std::string words(Status status) const {
    const char* text = error == nullptr ? nullptr : error(status);
    return text != nullptr ? text : fmt::format("error {}", status);
  }
  void require(Status status, int device) const {
    if (status != kSuccess) throw Error(words(status), fmt::format("GPU {}", device), "see nvidia-smi");
  }
};

namespace {

template <class F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

void Nvml::Unload::operator()(void* library) const { dlclose(library); }

Nvml::Nvml(Token /*token*/, std::unique_ptr<void, Unload> library, std::unique_ptr<Functions> functions, int devices)
    : library_(std::move(library)), functions_(std::move(functions)), devices_(devices) {}

Nvml::~Nvml() { functions_->shutdown(); }

std::unique_ptr<Nvml> Nvml::open(std::string& reason) {
  std::unique_ptr<void, Unload> library(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
  if (!library) {
    reason = "there is no NVIDIA driver here (libnvidia-ml.so.1)";
    return nullptr;
  }
  auto f = std::make_unique<Functions>();
  void* const from = library.get();
  const bool all = find(from, "nvmlInit_v2", f->init) && find(from, "nvmlShutdown", f->shutdown) &&
                   find(from, "nvmlErrorString", f->error) && find(from, "nvmlDeviceGetCount_v2", f->count) &&
                   find(from, "nvmlDeviceGetHandleByIndex_v2", f->handle) && find(from, "nvmlDeviceGetName", f->name) &&
                   find(from, "nvmlDeviceGetMemoryInfo", f->memory);
  if (!all) {
    reason = "NVIDIA's driver is too old to be asked";
    return nullptr;
  }
  if (!find(from, "nvmlDeviceGetComputeRunningProcesses_v3", f->processes))
    find(from, "nvmlDeviceGetComputeRunningProcesses_v2", f->processes);
  if (const Status status = f->init(); status != kSuccess) {
    reason = "NVIDIA's driver says: " + f->words(status);
    return nullptr;
  }
  unsigned int count = 0;
  if (f->count(&count) != kSuccess) count = 0;
  constexpr unsigned int kMost = 1024;
  return std::make_unique<Nvml>(Token{}, std::move(library), std::move(f), static_cast<int>(std::min(count, kMost)));
}

MemorySample Nvml::sample(int device) const {
  const Functions& f = *functions_;
  Device handle = nullptr;
  f.require(f.handle(static_cast<unsigned int>(device), &handle), device);
  std::array<char, 97> name{};  // NVML_DEVICE_NAME_V2_BUFFER_SIZE, and a zero
  f.require(f.name(handle, name.data(), name.size() - 1), device);
  Memory memory{};
  f.require(f.memory(handle, &memory), device);
  MemorySample sample;
  sample.what = fmt::format("GPU {}, {}", device, name.data());
  sample.used_bytes = static_cast<int64_t>(memory.used);
  sample.limit_bytes = static_cast<int64_t>(memory.total);
  if (f.processes == nullptr) return sample;
  std::array<ProcessInfo, 256> found{};
  unsigned int count = found.size();
  const Status status = f.processes(handle, &count, found.data());
  if (status != kSuccess && status != kTooSmall) return sample;  // some drivers do not tell
  for (unsigned int i = 0; i < std::min<size_t>(count, found.size()); ++i) {
    const ProcessInfo& one = found[i];
    MemoryUser user{.pid = one.pid, .name = program_of(one.pid), .bytes = {}};
    if (one.used != kNotTold) user.bytes = static_cast<int64_t>(one.used);
    sample.users.push_back(std::move(user));
  }
  std::ranges::stable_sort(
      sample.users, [](const MemoryUser& a, const MemoryUser& b) { return a.bytes.value_or(0) > b.bytes.value_or(0); });
  return sample;
}

}  // namespace snug
