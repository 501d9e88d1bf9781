#include "measure/null_device/memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "measure/null_device/settings.h"

namespace snug::null_device {

namespace {

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::byte* address_space(size_t bytes, int protection) {
  void* begin = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return begin == MAP_FAILED ? nullptr : static_cast<std::byte*>(begin);
}

// What of `bytes` the card has less: the driver hands out whole pages, and shares one among small allocations.
int64_t taken(size_t bytes) { return static_cast<int64_t>(rounded(bytes, bytes < kPage / 2 ? 512 : kPage)); }

// The entry of a map of ranges that holds `address`, or end.
template <class Map, class Size>
auto range_of(Map& map, const std::byte* address, Size size_of) {
  auto it = map.upper_bound(const_cast<std::byte*>(address));
  if (it == map.begin()) return map.end();
  --it;
  return address < it->first + size_of(it->second) ? it : map.end();
}

}  // namespace

bool AddressSpace::holds(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  return base_ != nullptr && at >= base_ && at < base_ + span_;
}

std::byte* AddressSpace::take(size_t bytes) {
  if (base_ == nullptr) {
    std::byte* space = address_space(span_ + kPage, PROT_NONE);
    if (space == nullptr) return nullptr;
    base_ = space + (kPage - reinterpret_cast<uintptr_t>(space) % kPage) % kPage;
  }
  const auto offset = bytes > span_ ? std::nullopt : addresses_.take(static_cast<int64_t>(bytes));
  if (!offset) return nullptr;
  taken_.emplace(static_cast<size_t>(*offset), bytes);
  return base_ + *offset;
}

size_t AddressSpace::give_back(std::byte* begin) {
  if (!holds(begin)) return 0;
  const auto it = taken_.find(static_cast<size_t>(begin - base_));
  if (it == taken_.end()) return 0;
  const size_t bytes = it->second;
  addresses_.give_back(begin - base_);
  taken_.erase(it);
  return bytes;
}

std::optional<std::pair<std::byte*, size_t>> AddressSpace::find(const void* address) const {
  if (!holds(address)) return std::nullopt;
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(address) - base_);
  auto it = taken_.upper_bound(offset);
  if (it == taken_.begin()) return std::nullopt;
  --it;
  if (offset >= it->first + std::max<size_t>(it->second, 1)) return std::nullopt;
  return std::pair(base_ + it->first, it->second);
}

Memory& Memory::get() {
  static Memory* const memory = [] {  // never destroyed: programs free memory while they end
    alignas(Memory) static std::byte room[sizeof(Memory)];
    return std::construct_at(reinterpret_cast<Memory*>(room));
  }();
  return *memory;
}

void Memory::Use::add(int64_t bytes) {
  now += bytes;
  peak = std::max(peak, now);
}

AddressSpace& Memory::space(int device) { return spaces_.try_emplace(device, kDeviceSpan).first->second; }

bool Memory::take_capacity(int device, int64_t bytes) {
  if (device < 0 || device >= kMostDevices) return false;
  if (device_use_[device].now + bytes > settings().free_at_first()) return false;
  device_use_[device].add(bytes);
  return true;
}

std::byte* Memory::allocate(int device, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > kDeviceSpan || !take_capacity(device, taken(bytes))) return nullptr;
  std::byte* begin = space(device).take(bytes);
  if (begin == nullptr) device_use_[device].add(-taken(bytes));
  return begin;
}

bool Memory::release(void* address) {
  const std::lock_guard lock(mutex_);
  for (auto& [device, space] : spaces_) {
    if (!space.find(address)) continue;
    device_use_[device].add(-taken(space.give_back(static_cast<std::byte*>(address))));
    return true;
  }
  return false;
}

int64_t Memory::free_bytes(int device) {
  const std::lock_guard lock(mutex_);
  return settings().free_at_first() - device_use_[device].now;
}

int64_t Memory::peak_bytes(int device) {
  const std::lock_guard lock(mutex_);
  return device >= 0 && device < kMostDevices ? device_use_[device].peak : 0;
}

uint64_t Memory::create(int device, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!take_capacity(device, static_cast<int64_t>(bytes))) return 0;
  pieces_.emplace(next_piece_, Piece{device, bytes, 1});
  return next_piece_++;
}

bool Memory::drop_holder(uint64_t piece) {
  const auto it = pieces_.find(piece);
  if (it == pieces_.end()) return false;
  if (--it->second.holders == 0) {
    device_use_[it->second.device].add(-static_cast<int64_t>(it->second.bytes));
    pieces_.erase(it);
  }
  return true;
}

bool Memory::destroy(uint64_t piece) {
  const std::lock_guard lock(mutex_);
  return drop_holder(piece);
}

bool Memory::retain(uint64_t piece) {
  const std::lock_guard lock(mutex_);
  const auto it = pieces_.find(piece);
  if (it != pieces_.end()) ++it->second.holders;
  return it != pieces_.end();
}

std::byte* Memory::reserve(size_t bytes) {
  const std::lock_guard lock(mutex_);
  return mapped_space_.take(bytes);
}

bool Memory::unreserve(void* begin) {
  const std::lock_guard lock(mutex_);
  return mapped_space_.give_back(static_cast<std::byte*>(begin)) > 0;
}

bool Memory::map(void* begin, size_t bytes, uint64_t piece) {
  const std::lock_guard lock(mutex_);
  const auto it = pieces_.find(piece);
  if (it == pieces_.end() || !mapped_space_.find(begin)) return false;
  ++it->second.holders;
  mappings_[static_cast<std::byte*>(begin)] = {bytes, piece};
  return true;
}

bool Memory::unmap(void* begin, size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto* const from = static_cast<std::byte*>(begin);
  auto it = mappings_.lower_bound(from);
  bool any = false;
  while (it != mappings_.end() && it->first < from + bytes) {
    drop_holder(it->second.piece);
    it = mappings_.erase(it);
    any = true;
  }
  return any;
}

int Memory::device_of(uint64_t piece) {
  const std::lock_guard lock(mutex_);
  const auto it = pieces_.find(piece);
  return it == pieces_.end() ? -1 : it->second.device;
}

std::byte* Memory::allocate_host(size_t bytes, Kind kind, int device) {
  std::byte* begin = address_space(std::max<size_t>(bytes, 1), PROT_READ | PROT_WRITE);
  if (begin == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  host_[begin] = {bytes, kind, device, true};
  (kind == Kind::managed ? managed_ : pinned_).add(static_cast<int64_t>(bytes));
  return begin;
}

bool Memory::release_host(void* address) {
  const std::lock_guard lock(mutex_);
  const auto it = host_.find(static_cast<std::byte*>(address));
  if (it == host_.end() || !it->second.ours) return false;
  ::munmap(address, std::max<size_t>(it->second.bytes, 1));
  (it->second.kind == Kind::managed ? managed_ : pinned_).add(-static_cast<int64_t>(it->second.bytes));
  host_.erase(it);
  return true;
}

bool Memory::pin(void* address, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!host_.try_emplace(static_cast<std::byte*>(address), HostRange{bytes, Kind::host, 0, false}).second) return false;
  pinned_.add(static_cast<int64_t>(bytes));
  return true;
}

bool Memory::unpin(void* address) {
  const std::lock_guard lock(mutex_);
  const auto it = host_.find(static_cast<std::byte*>(address));
  if (it == host_.end() || it->second.ours) return false;
  pinned_.add(-static_cast<int64_t>(it->second.bytes));
  host_.erase(it);
  return true;
}

int64_t Memory::pinned_peak() {
  const std::lock_guard lock(mutex_);
  return pinned_.peak;
}

int64_t Memory::managed_peak() {
  const std::lock_guard lock(mutex_);
  return managed_.peak;
}

Place Memory::place_of(const void* address) {
  const std::lock_guard lock(mutex_);
  const auto* at = static_cast<const std::byte*>(address);
  for (const auto& [device, space] : spaces_)
    if (const auto found = space.find(address)) return {Kind::device, device, found->first, found->second};
  if (const auto it = range_of(mappings_, at, [](const Mapping& m) { return m.bytes; }); it != mappings_.end())
    return {Kind::device, pieces_.at(it->second.piece).device, it->first, it->second.bytes};
  if (const auto it = range_of(host_, at, [](const HostRange& r) { return r.bytes; }); it != host_.end())
    return {it->second.kind, it->second.device, it->first, it->second.bytes};
  return {};
}

bool Memory::on_device(const void* address) {
  const std::lock_guard lock(mutex_);
  for (const auto& [device, space] : spaces_)
    if (space.holds(address)) return true;
  return mapped_space_.holds(address);
}

int& current_device() {
  thread_local int device = 0;
  return device;
}

}  // namespace snug::null_device
