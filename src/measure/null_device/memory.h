#pragma once
// The memory of the null devices: address space that nothing may touch, with the capacity of the card. Three ways lead to
// it, as on a card: allocations, physical pieces that are mapped into reserved addresses (the virtual memory interface), and
// host memory that is pinned or managed, which is real, but whose pages exist only once they are touched. Every call may
// come from any thread.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "base/driver_addresses.h"

namespace snug::null_device {

constexpr int64_t kPage = 2 << 20;  // the driver's granularity

enum class Kind { unknown, host, device, managed };  // numbered as cudaMemoryType

struct Place {
  Kind kind = Kind::unknown;
  int device = 0;
  std::byte* begin = nullptr;  // of the allocation
  size_t bytes = 0;
};

// Ranges of addresses within one reservation, where a driver would put them.
class AddressSpace {
 public:
  explicit AddressSpace(size_t bytes) : span_(bytes), addresses_(0, static_cast<int64_t>(bytes)) {}
  bool holds(const void* address) const;
  std::byte* take(size_t bytes);       // null where none is left
  size_t give_back(std::byte* begin);  // bytes that it had; 0: not one of these
  std::optional<std::pair<std::byte*, size_t>> find(const void* address) const;

 private:
  size_t span_;
  std::byte* base_ = nullptr;
  DriverAddresses addresses_;       // of offsets
  std::map<size_t, size_t> taken_;  // offset → bytes
};

class Memory {
 public:
  static Memory& get();

  std::byte* allocate(int device, size_t bytes);  // null: out of memory
  bool release(void* address);
  int64_t free_bytes(int device);
  int64_t peak_bytes(int device);  // most that was taken, without the context

  uint64_t create(int device, size_t bytes);  // a physical piece; 0: out of memory
  bool destroy(uint64_t piece);
  bool retain(uint64_t piece);
  std::byte* reserve(size_t bytes);
  bool unreserve(void* begin);
  bool map(void* begin, size_t bytes, uint64_t piece);
  bool unmap(void* begin, size_t bytes);
  int device_of(uint64_t piece);

  std::byte* allocate_host(size_t bytes, Kind kind, int device);
  bool release_host(void* address);
  bool pin(void* address, size_t bytes);  // memory of the program itself
  bool unpin(void* address);
  int64_t pinned_peak();
  int64_t managed_peak();

  Place place_of(const void* address);
  bool on_device(const void* address);

 private:
  static constexpr int kMostDevices = 64;
  static constexpr size_t kDeviceSpan = size_t{1} << 40, kMappedSpan = size_t{1} << 44;

  struct Use {
    int64_t now = 0, peak = 0;
    void add(int64_t bytes);
  };
  struct Piece {
    int device = 0;
    size_t bytes = 0;
    int holders = 1;  // its creator and its mappings
  };
  struct HostRange {
    size_t bytes = 0;
    Kind kind = Kind::host;
    int device = 0;
    bool ours = true;  // else registered
  };
  struct Mapping {
    size_t bytes = 0;
    uint64_t piece = 0;
  };

  bool take_capacity(int device, int64_t bytes);
  bool drop_holder(uint64_t piece);
  AddressSpace& space(int device);

  std::mutex mutex_;
  std::map<int, AddressSpace> spaces_;
  AddressSpace mapped_space_{kMappedSpan};
  Use device_use_[kMostDevices];
  Use pinned_, managed_;
  std::map<uint64_t, Piece> pieces_;
  uint64_t next_piece_ = 1;
  std::map<std::byte*, Mapping> mappings_;
  std::map<std::byte*, HostRange> host_;
};

// The device that calls of this thread go to.
int& current_device();

}  // namespace snug::null_device
