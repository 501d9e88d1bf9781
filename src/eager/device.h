#pragma once
// The pretended device of an eager run: every allocation goes through the simulation of PyTorch's caching allocator, is
// counted by role, and raises the peaks of the phase that is running. A Storage is a counted reference, as in c10: its
// memory goes back when the last one goes. Knows nothing of tensors, models or libraries.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "torch/allocator.h"

namespace snug::eager {

// What memory is for, in the words of the plan's breakdown.
enum class Role : uint8_t { weights, adapters, gradients, optimizer, activations, temporaries, workspace, batch };
inline constexpr size_t kRoles = 8;
inline constexpr std::array<const char*, kRoles> kRoleNames = {"weights",     "adapters",    "gradients", "optimizer",
                                                               "activations", "temporaries", "workspace", "batch"};

// The stages that peaks are told apart by.
enum class Phase : uint8_t { load, between, forward, backward, optimizer, evaluate, save };
inline constexpr size_t kPhases = 7;
inline constexpr std::array<const char*, kPhases> kPhaseNames = {"load",      "between steps", "forward", "backward",
                                                                 "optimizer", "evaluate",      "save"};

using RoleBytes = std::array<int64_t, kRoles>;

// One event of the stream, for comparisons with a real run: `id` counts allocations from 0.
struct Event {
  bool is_allocation;
  int64_t id, requested_bytes;
  Phase phase;
};

class Device;

namespace detail {
struct Cell {
  Device* device = nullptr;
  int64_t address = 0, bytes = 0, id = 0, requested_bytes = 0;
  int32_t references = 0;
  Role role{};
  bool has_memory = false;
};
}  // namespace detail

// A reference to memory; empty ones refer to none.
class Storage {
 public:
  Storage() = default;
  explicit Storage(detail::Cell* cell) : cell_(cell) {}
  Storage(const Storage& other) : cell_(other.cell_) {
    if (cell_) ++cell_->references;
  }
  Storage(Storage&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
  Storage& operator=(Storage other) noexcept {
    std::swap(cell_, other.cell_);
    return *this;
  }
  ~Storage() { release(); }

  explicit operator bool() const { return cell_ != nullptr; }
  bool is_unique() const { return cell_ && cell_->references == 1; }
  int64_t bytes() const { return cell_ ? cell_->bytes : 0; }  // of the block
  bool operator==(const Storage& other) const { return cell_ == other.cell_; }
  void set_role(Role role) const;
  Role role() const { return cell_->role; }

 private:
  friend class Device;
  void release();
  detail::Cell* cell_ = nullptr;
};

// What a phase did, as far as allocations tell: nearly every kernel makes one tensor, and writes it.
struct Work {
  int64_t tensors = 0, bytes = 0;
  int64_t waits = 0;  // for the device, whose numbers decide what comes next
};

// What a phase reached.
struct PhasePeak {
  int64_t allocated_bytes = 0, reserved_bytes = 0;
};

class Device {
 public:
  explicit Device(const AllocatorSettings& settings) : allocator_(settings) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Throws OutOfMemory (a snug Error) if the device's limit does not allow it. Memory of one stream is not reused by
  // another.
  Storage allocate(int64_t bytes, Role role, int64_t stream = 0);

  // untyped_storage().resize_(0) and back: all who refer to the storage see it without memory, and with new memory.
  void drop(const Storage& storage);
  void refill(const Storage& storage, int64_t stream = 0);
  // As drop, of memory that another stream may still use (record_stream): nobody has it, nor gets it, until what is returned
  // is given to `complete`.
  int64_t drop_later(const Storage& storage);
  void complete(int64_t address) { allocator_.complete_free(address); }

  void enter(Phase phase) {
    phase_ = phase;
    raise_peaks();
  }
  Phase phase() const { return phase_; }

  // The host asks the device for a number.
  void wait() { ++work_[static_cast<size_t>(phase_)].waits; }

  // Forgets the peaks so far, and gives cached segments back: what a trainer does before its first step.
  void reset_peaks();
  void release_cached() { allocator_.release_cached(); }

  const MemoryTotals& totals() const { return allocator_.totals(); }
  const PhasePeak& peak(Phase phase) const { return peaks_[static_cast<size_t>(phase)]; }
  const Work& work(Phase phase) const { return work_[static_cast<size_t>(phase)]; }
  Phase peak_phase() const { return peak_phase_; }
  const RoleBytes& bytes_at_peak() const { return at_peak_; }
  const RoleBytes& bytes_now() const { return bytes_; }

  // A digest of every allocation and free of large blocks so far (those above 1 MiB lie in a pool of their own), in order,
  // with addresses and sizes, begun anew by `restart_digest`.
  uint64_t digest() const { return digest_; }
  void restart_digest() { digest_ = kEmptyDigest; }

  // Called with each event; none by default.
  std::function<void(const Event&)> listener;

 private:
  friend class Storage;
  void raise_peaks();
  detail::Cell* take_cell();
  void take_memory(detail::Cell* cell, int64_t stream);
  void give_memory_back(detail::Cell* cell, bool later = false);
  void give_back(detail::Cell* cell);
  void change_role(detail::Cell* cell, Role role);
  void add_to_digest(int64_t address, int64_t bytes);

  std::deque<detail::Cell> cells_;     // stay where they are
  std::vector<detail::Cell*> unused_;  // of them
  static constexpr uint64_t kEmptyDigest = 0xcbf29ce484222325;
  uint64_t digest_ = kEmptyDigest;
  Allocator allocator_;
  std::array<PhasePeak, kPhases> peaks_{};
  std::array<Work, kPhases> work_{};
  RoleBytes bytes_{}, at_peak_{};
  int64_t peak_ = 0, count_ = 0;
  Phase phase_ = Phase::load, peak_phase_ = Phase::load;
};

}  // namespace snug::eager
