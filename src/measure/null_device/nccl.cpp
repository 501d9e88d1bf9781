// NCCL: communicators know rank and size; collectives do nothing, since nothing is there to be sent. NCCL's own buffers on
// the device (tens to hundreds of MiB a communicator, by topology and version) are outside PyTorch's allocator and are not
// pretended.

#include <cstring>
#include <map>
#include <mutex>

#include "measure/null_device/entry.h"
#include "measure/null_device/memory.h"

namespace snug::null_device {

namespace {

struct UniqueId {
  char bytes[128];
};

struct Communicator {
  int size = 1, rank = 0, device = 0;
};

std::mutex mutex;
std::map<Handle, Communicator>& communicators() {
  static std::map<Handle, Communicator> all;
  return all;
}

int open(Handle* place, int size, int rank) {
  return guarded([&] {
    const std::lock_guard lock(mutex);
    void* const handle = new_handle();
    communicators()[handle] = {size, rank, current_device()};
    return give(place, handle);
  });
}

Communicator find(Handle handle) {
  const std::lock_guard lock(mutex);
  const auto it = communicators().find(handle);
  return it == communicators().end() ? Communicator{} : it->second;
}

}  // namespace

SNUG_ENTRY int ncclGetVersion(int* version) { return give(version, 22703); }
SNUG_ENTRY int ncclGetUniqueId(UniqueId* id) {
  std::memset(id->bytes, 1, sizeof id->bytes);
  return kSuccess;
}
SNUG_ENTRY int ncclCommInitRank(Handle* place, int size, UniqueId, int rank) { return open(place, size, rank); }
SNUG_ENTRY int ncclCommInitRankConfig(Handle* place, int size, UniqueId, int rank, void*) { return open(place, size, rank); }
SNUG_ENTRY int ncclCommInitRankScalable(Handle* place, int size, int rank, int, UniqueId*, void*) {
  return open(place, size, rank);
}
SNUG_ENTRY int ncclCommInitAll(Handle* places, int count, const int*) {
  for (int rank = 0; rank < count; ++rank) open(places + rank, count, rank);
  return kSuccess;
}
SNUG_ENTRY int ncclCommSplit(Handle parent, int, int key, Handle* place, void*) {
  return open(place, find(parent).size, key);
}
SNUG_ENTRY int ncclCommCount(Handle communicator, int* count) { return give(count, find(communicator).size); }
SNUG_ENTRY int ncclCommUserRank(Handle communicator, int* rank) { return give(rank, find(communicator).rank); }
SNUG_ENTRY int ncclCommCuDevice(Handle communicator, int* device) { return give(device, find(communicator).device); }
SNUG_ENTRY int ncclCommGetAsyncError(Handle, int* error) { return give(error, 0); }
SNUG_ENTRY const char* ncclGetErrorString(int error) { return error == 0 ? "no error" : "error of the null device"; }
SNUG_ENTRY const char* ncclGetLastError(Handle) { return ""; }
SNUG_ENTRY int ncclCommRegister(Handle, void*, size_t, Handle* place) { return give(place, new_handle()); }
SNUG_ENTRY int ncclRedOpCreatePreMulSum(int* operation, void*, int, int, Handle) { return give(operation, 5); }

}  // namespace snug::null_device
