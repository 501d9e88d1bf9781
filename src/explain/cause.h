#pragma once
// Why memory ran out, from the figures of the message alone, with the arithmetic that a reader can check. It must not guess:
// where the text does not decide, the cause is unknown and the answer says what is missing. Knows no model and no recipe.
// Rules: CUDACachingAllocator.cpp returns every wholly free segment before it gives up, so what is reserved and unallocated
// then are pieces; what it asks for are segments, not tensors.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "torch/oom_log.h"

namespace snug {

enum class Cause {
  unknown,
  shortage,            // the tensors do not fit
  fragmentation,       // enough is reserved and unused, in pieces
  other_process,       // somebody else holds what is missing
  impossible_request,  // one tensor larger than the device, or than half of it with little else there
  memory_limit,        // a limit that was set, below what the device has
  overcommit,          // more is allocated than the device has: Windows moves it to host memory
  host_memory,         // RAM, the container's limit, /dev/shm, the page file
  driver               // the driver, the context or a library's handle, not PyTorch's tensors
};

std::string_view name_of(Cause cause);

struct Diagnosis {
  Cause cause = Cause::unknown;
  std::optional<Cause> or_cause;        // where the figures do not decide between two: the less likely one
  std::string answer;                   // what ran out, in one line
  std::vector<std::string> arithmetic;  // lines of at most 80 columns
  std::vector<std::string> remarks;     // what else the text tells: segments, ranks, figures that cannot be true

  std::optional<int64_t> unused_bytes;   // reserved, in no tensor
  std::optional<int64_t> outside_bytes;  // on the device and not PyTorch's: context, libraries, other processes
  std::optional<int64_t> others_bytes;   // other processes, as listed or as the rest
  std::optional<int64_t> missing_bytes;  // what must come free, at least, for the request to be granted
  std::optional<int64_t> own_pid;        // of the processes listed, the one that is probably this one
  bool nearly_full = false;              // tensors fill over nine tenths of the device
};

Diagnosis diagnose(const OomMessage& message);

// Of the message taken for the cause; also says how many there were, and whether ranks share a device.
Diagnosis diagnose(const OomLog& log);

}  // namespace snug
