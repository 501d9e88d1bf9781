#include "eager/device.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace snug::eager {

namespace {

// c10/cuda/CUDACachingAllocator: kSmallSize
bool is_large(int64_t requested_bytes) { return requested_bytes > int64_t{1} << 20U; }

}  // namespace

void Storage::set_role(Role role) const {
  if (cell_ && cell_->role != role) cell_->device->change_role(cell_, role);
}

void Storage::release() {
  if (cell_ && --cell_->references == 0) cell_->device->give_back(cell_);
}

Storage Device::allocate(int64_t bytes, Role role, int64_t stream) {
  if (bytes <= 0) return {};  // PyTorch asks for nothing either
  detail::Cell* cell = take_cell();
  *cell = {this, 0, 0, 0, bytes, 1, role, false};
  Storage storage(cell);  // owns the cell should there be no room
  take_memory(cell, stream);
  return storage;
}

void Device::take_memory(detail::Cell* cell, int64_t stream) {
  const int64_t bytes = cell->requested_bytes;
  const std::optional<int64_t> address = allocator_.allocate(bytes, stream);
  if (!address) throw Error("the device has no room for " + std::to_string(bytes) + " bytes", "", "give it more memory");
  cell->address = *address;
  cell->bytes = allocator_.block_bytes(*address);
  cell->id = count_++;
  if (cell->role != Role::workspace) {
    Work& work = work_[static_cast<size_t>(phase_)];
    ++work.tensors;
    work.bytes += bytes;
  }
  cell->has_memory = true;
  bytes_[static_cast<size_t>(cell->role)] += cell->bytes;
  raise_peaks();
  if (is_large(bytes)) add_to_digest(cell->address, cell->bytes);
  if (listener) listener({true, cell->id, bytes, phase_});
}

void Device::give_memory_back(detail::Cell* cell, bool later) {
  if (!cell->has_memory) return;
  cell->has_memory = false;
  bytes_[static_cast<size_t>(cell->role)] -= cell->bytes;
  later ? allocator_.request_free(cell->address) : allocator_.free(cell->address);
  if (is_large(cell->requested_bytes)) add_to_digest(cell->address, -1);
  if (listener) listener({false, cell->id, cell->requested_bytes, phase_});
}

void Device::drop(const Storage& storage) {
  if (!storage.cell_) return;
  give_memory_back(storage.cell_);
  storage.cell_->bytes = 0;
}

int64_t Device::drop_later(const Storage& storage) {
  give_memory_back(storage.cell_, true);
  storage.cell_->bytes = 0;
  return storage.cell_->address;
}

void Device::refill(const Storage& storage, int64_t stream) {
  if (storage.cell_ && !storage.cell_->has_memory) take_memory(storage.cell_, stream);
}

void Device::give_back(detail::Cell* cell) {
  give_memory_back(cell);
  unused_.push_back(cell);
}

detail::Cell* Device::take_cell() {
  if (unused_.empty()) return &cells_.emplace_back();
  detail::Cell* cell = unused_.back();
  unused_.pop_back();
  return cell;
}

void Device::add_to_digest(int64_t address, int64_t bytes) {
  constexpr uint64_t kPrime = 0x9e3779b97f4a7c15;
  digest_ = (digest_ ^ static_cast<uint64_t>(address)) * kPrime;
  digest_ = (digest_ ^ (digest_ >> 29U) ^ static_cast<uint64_t>(bytes)) * kPrime;
}

void Device::change_role(detail::Cell* cell, Role role) {
  bytes_[static_cast<size_t>(cell->role)] -= cell->bytes;
  cell->role = role;
  bytes_[static_cast<size_t>(role)] += cell->bytes;
}

void Device::raise_peaks() {
  const MemoryTotals& now = allocator_.totals();
  PhasePeak& peak = peaks_[static_cast<size_t>(phase_)];
  peak.allocated_bytes = std::max(peak.allocated_bytes, now.allocated_bytes);
  peak.reserved_bytes = std::max(peak.reserved_bytes, now.reserved_bytes);
  if (now.allocated_bytes > peak_) {
    peak_ = now.allocated_bytes;
    peak_phase_ = phase_;
    at_peak_ = bytes_;
  }
}

void Device::reset_peaks() {
  peaks_ = {};
  peak_ = 0;
  raise_peaks();
}

}  // namespace snug::eager
