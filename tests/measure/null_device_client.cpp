// A program of CUDA's interface that tests/measure/null_device_test.cpp starts under the null device: it opens libcuda.so.1
// by name, as PyTorch and Triton do, so it needs no toolkit. Prints each check that does not hold; the exit code is how
// many.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  if (!holds) std::printf("does not hold: %s\n", what), ++failures;
}
#define CHECK(condition) check((condition), #condition)

void* library = nullptr;

// The function of that name; types are those of the call.
template <class... Arguments>
int call(const char* name, Arguments... arguments) {
  void* const found = ::dlsym(library, name);
  if (found == nullptr) {
    std::printf("missing: %s\n", name);
    std::exit(100);
  }
  return reinterpret_cast<int (*)(Arguments...)>(found)(arguments...);
}

constexpr size_t kMiB = 1 << 20, kGiB = 1 << 30;

void allocates_up_to_the_capacity() {
  std::vector<void*> held;
  for (void* p = nullptr; call("cudaMalloc", &p, kGiB) == 0;) held.push_back(p);
  CHECK(held.size() == 3);  // of 4 GiB, of which the context takes 512 MiB
  CHECK(call("cudaGetLastError") == 2 && call("cudaGetLastError") == 0);
  size_t free = 0, total = 0;
  call("cudaMemGetInfo", &free, &total);
  CHECK(total == 4 * kGiB && free == 512 * kMiB);
  for (void* p : held) CHECK(call("cudaFree", p) == 0);
  CHECK(call("cudaFree", held[0]) != 0);  // twice
  call("cudaMemGetInfo", &free, &total);
  CHECK(free == 4 * kGiB - 512 * kMiB);
}

// As NVML's nvmlProcessInfo_t has it.
struct Process {
  unsigned int number;
  unsigned long long bytes;
  unsigned int gpu_instance, compute_instance;
};

void lists_the_processes() {
  void *device = nullptr, *held = nullptr;
  call("nvmlDeviceGetHandleByIndex_v2", 0U, &device);
  CHECK(call("cudaMalloc", &held, kGiB) == 0);
  unsigned int count = 0;
  constexpr int kInsufficientSize = 7;
  CHECK(call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, static_cast<Process*>(nullptr)) ==
        kInsufficientSize);
  CHECK(count == 1);
  Process list[1] = {};
  CHECK(call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, static_cast<Process*>(list)) == 0);
  CHECK(list[0].number == static_cast<unsigned int>(::getpid()) && list[0].bytes == kGiB + 512 * kMiB);
  call("cudaFree", held);
}

// Started with others that hold 1 GiB and 2 GiB of the 4.
void leaves_what_others_hold() {
  size_t free = 0, total = 0;
  call("cudaMemGetInfo", &free, &total);
  CHECK(total == 4 * kGiB && free == 512 * kMiB);
  void *device = nullptr, *held = nullptr;
  CHECK(call("cudaMalloc", &held, kGiB) == 2);
  call("nvmlDeviceGetHandleByIndex_v2", 0U, &device);
  Process list[3] = {};
  unsigned int count = 3;
  CHECK(call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, static_cast<Process*>(list)) == 0);
  CHECK(count == 3 && list[0].bytes == 512 * kMiB && list[1].bytes == kGiB && list[2].bytes == 2 * kGiB);
}

void reuses_addresses() {
  for (int i = 0; i < 3000; ++i) {  // more than the address space of a device, were they not
    void* p = nullptr;
    if (call("cudaMalloc", &p, kGiB) != 0) return check(false, "3000 allocations, one after the other");
    call("cudaFree", p);
  }
}

void keeps_devices_apart() {
  int count = 0;
  CHECK(call("cudaGetDeviceCount", &count) == 0 && count == 2);
  void *first = nullptr, *second = nullptr;
  CHECK(call("cudaMalloc", &first, 3 * kGiB) == 0);
  CHECK(call("cudaSetDevice", 1) == 0);
  CHECK(call("cudaMalloc", &second, 3 * kGiB) == 0);
  struct {
    int type, device;
    void *on_device, *on_host;
  } attributes{};
  CHECK(call("cudaPointerGetAttributes", &attributes, static_cast<const void*>(static_cast<char*>(second) + 5)) == 0);
  CHECK(attributes.type == 2 && attributes.device == 1);
  CHECK(call("cudaSetDevice", 2) == 101);
  call("cudaFree", first);
  call("cudaFree", second);
  call("cudaSetDevice", 0);
}

void reads_zeros() {
  void* device = nullptr;
  call("cudaMalloc", &device, 8 * kMiB);
  std::vector<unsigned char> bytes(8 * kMiB, 7), other(8 * kMiB, 9);
  CHECK(call("cudaMemcpy", device, static_cast<const void*>(bytes.data()), bytes.size(), 1) == 0);
  CHECK(call("cudaMemcpy", static_cast<void*>(bytes.data()), static_cast<const void*>(device), bytes.size(), 2) == 0);
  bool zero = true;
  for (const unsigned char byte : bytes) zero &= byte == 0;
  CHECK(zero);
  call("cudaMemcpy", static_cast<void*>(bytes.data()), static_cast<const void*>(other.data()), bytes.size(), 0);
  CHECK(bytes[4 * kMiB] == 9);
  call("cudaFree", device);
}

void describes_the_card() {
  char properties[1032] = {};  // cudaDeviceProp of CUDA 12
  CHECK(call("cudaGetDeviceProperties_v2", static_cast<void*>(properties), 0) == 0);
  CHECK(std::string_view(properties) == "Test card");
  int value = 0;
  call("cudaDeviceGetAttribute", &value, 16, 0);
  CHECK(value == 77);
  call("cuDeviceGetAttribute", &value, 75, 0);
  CHECK(value == 9);
}

void maps_physical_pieces() {
  struct {
    int type, handles, location, id;
    char rest[32];
  } wanted{1, 0, 1, 0, {}};
  uint64_t address = 0;
  CHECK(call("cuMemAddressReserve", &address, 64 * kGiB, size_t{0}, uint64_t{0}, 0ULL) == 0);
  unsigned long long piece = 0;
  CHECK(call("cuMemCreate", &piece, 3 * kGiB, &wanted, 0ULL) == 0);
  CHECK(call("cuMemMap", address, 3 * kGiB, size_t{0}, piece, 0ULL) == 0);
  CHECK(call("cuMemRelease", piece) == 0);
  unsigned long long more = 0;
  CHECK(call("cuMemCreate", &more, kGiB, &wanted, 0ULL) == 2);  // still mapped
  CHECK(call("cuMemUnmap", address, 3 * kGiB) == 0);
  CHECK(call("cuMemCreate", &more, kGiB, &wanted, 0ULL) == 0);
  CHECK(call("cuMemRelease", more) == 0);
  CHECK(call("cuMemAddressFree", address, 64 * kGiB) == 0);
}

void knows_host_memory() {
  void *pinned = nullptr, *managed = nullptr;
  CHECK(call("cudaHostAlloc", &pinned, kMiB, 0U) == 0);
  CHECK(call("cudaMallocManaged", &managed, kMiB, 1U) == 0);
  std::memset(pinned, 1, kMiB);
  std::memset(managed, 1, kMiB);
  struct {
    int type, device;
    void *on_device, *on_host;
  } attributes{};
  call("cudaPointerGetAttributes", &attributes, static_cast<const void*>(pinned));
  CHECK(attributes.type == 1);
  call("cudaPointerGetAttributes", &attributes, static_cast<const void*>(managed));
  CHECK(attributes.type == 3);
  call("cudaPointerGetAttributes", &attributes, static_cast<const void*>(&attributes));
  CHECK(attributes.type == 0);
  CHECK(call("cudaFreeHost", pinned) == 0 && call("cudaFree", managed) == 0);
}

void captures_streams() {
  void *stream = nullptr, *graph = nullptr;
  int status = -1;
  call("cudaStreamCreate", &stream);
  CHECK(call("cudaStreamIsCapturing", stream, &status) == 0 && status == 0);
  call("cudaStreamBeginCapture", stream, 0);
  CHECK(call("cudaStreamIsCapturing", stream, &status) == 0 && status == 1);
  CHECK(call("cudaStreamEndCapture", stream, &graph) == 0 && graph != nullptr);
  CHECK(call("cudaStreamEndCapture", stream, &graph) != 0);
}

void finds_functions_by_name() {
  void* function = nullptr;
  int status = -1;
  CHECK(call("cuGetProcAddress_v2", "cuMemAlloc", &function, 12000, uint64_t{0}, &status) == 0);
  CHECK(function == ::dlsym(library, "cuMemAlloc_v2"));
  CHECK(::dlsym(library, "cuStreamWriteValue32") != nullptr);  // PyTorch 2.6 and later look for it when memory runs out
  CHECK(call("cuGetProcAddress_v2", "cuNoSuchFunction", &function, 12000, uint64_t{0}, &status) == 500);
  CHECK(call("cudaImportExternalMemory") == 801);  // refused by name
  const auto refused = reinterpret_cast<const char* (*)()>(::dlsym(library, "snug_null_device_refused"));
  CHECK(refused != nullptr && std::string_view(refused()) == "cudaImportExternalMemory");
}

}  // namespace

int main(int arguments, char**) {
  library = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return std::printf("%s\n", ::dlerror()), 101;
  if (arguments > 1) {
    leaves_what_others_hold();
    return failures;
  }
  allocates_up_to_the_capacity();
  lists_the_processes();
  reuses_addresses();
  keeps_devices_apart();
  reads_zeros();
  describes_the_card();
  maps_physical_pieces();
  knows_host_memory();
  captures_streams();
  finds_functions_by_name();
  return failures;
}
