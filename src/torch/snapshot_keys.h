#pragma once
// The keys of PyTorch's snapshots that are read (torch/csrc/cuda/memory_snapshot.cpp and Module.cpp), as numbers; all others
// are ignored.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/pickle.h"

namespace snug {

enum class SnapshotKey : uint8_t {
  action,
  addr,
  size,
  stream,
  time_us,
  compile_context,
  user_metadata,
  frames,
  device_free,
  pool_id,
  address,
  total_size,
  allocated_size,
  active_size,
  requested_size,
  segment_type,
  segment_pool_id,
  is_expandable,
  blocks,
  device,
  state,
  history,
  real_size,
  filename,
  name,
  line
};

inline constexpr std::array<std::string_view, 26> kKeyNames = {
    "action",         "addr",        "size",           "stream",       "time_us",         "compile_context",
    "user_metadata",  "frames",      "device_free",    "pool_id",      "address",         "total_size",
    "allocated_size", "active_size", "requested_size", "segment_type", "segment_pool_id", "is_expandable",
    "blocks",         "device",      "state",          "history",      "real_size",       "filename",
    "name",           "line"};

// The known entries of one dict.
class Fields {
 public:
  void set(SnapshotKey key, PickleValue value) {
    values_[static_cast<size_t>(key)] = value;
    present_ |= bit(key);
  }
  bool has(SnapshotKey key) const { return (present_ & bit(key)) != 0; }
  PickleValue operator[](SnapshotKey key) const { return has(key) ? values_[static_cast<size_t>(key)] : PickleValue(); }

 private:
  static uint32_t bit(SnapshotKey key) { return uint32_t{1} << static_cast<unsigned>(key); }

  std::array<PickleValue, kKeyNames.size()> values_;
  uint32_t present_ = 0;
};

}  // namespace snug
