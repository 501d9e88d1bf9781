#pragma once
// What the allocator holds at one moment, in PyTorch's words.

#include <cstdint>

namespace snug {

struct MemoryTotals {
  int64_t requested_bytes = 0;  // of active blocks, as asked for
  int64_t allocated_bytes = 0;  // blocks handed out (torch.cuda.memory_allocated)
  int64_t active_bytes = 0;     // and those freed that another stream still uses
  int64_t reserved_bytes = 0;   // segments (torch.cuda.memory_reserved)
  int64_t cached_bytes = 0;     // segments without an active block: freed by PyTorch before it gives up

  int64_t rounding_bytes() const { return active_bytes - requested_bytes; }
  int64_t unused_bytes() const { return reserved_bytes - active_bytes; }
  int64_t fragment_bytes() const { return unused_bytes() - cached_bytes; }  // free, but in segments that are in use
  bool operator==(const MemoryTotals&) const = default;
};

}  // namespace snug
