#pragma once
// Chrome traces of torch.profiler with profile_memory=True: the "[memory]" events, each with what was allocated and reserved
// after it. The file is read by pieces, an event at a time, so that traces of any size take little memory. Knows nothing of
// causes.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

struct TracedDevice {
  int type = 0;  // PyTorch's number: 0 the CPU, 1 CUDA, 20 HIP …
  int index = -1;
  int64_t events = 0;
  int64_t peak_allocated_bytes = 0, peak_reserved_bytes = 0;
  double peak_microseconds = 0;  // of peak_allocated, from the first memory event
  int64_t largest_bytes = 0;     // of one allocation
  int64_t last_allocated_bytes = 0;
};

struct ProfilerTrace {
  std::vector<TracedDevice> devices;  // in the order in which they come up, at most 64
  int64_t events = 0;                 // of all kinds
  int64_t memory_events = 0;
  int64_t passed_over = 0;  // events that are not JSON, or longer than 1 MiB
  bool whole = false;       // the array of events came to its end
};

class ProfilerTraceReader {
 public:
  ProfilerTraceReader();
  ~ProfilerTraceReader();
  ProfilerTraceReader(const ProfilerTraceReader&) = delete;
  ProfilerTraceReader& operator=(const ProfilerTraceReader&) = delete;

  void feed(std::string_view bytes);
  ProfilerTrace finish();

 private:
  struct Parser;

  void take_event();

  std::unique_ptr<Parser> parser_;
  ProfilerTrace trace_;
  std::string event_, key_;
  int depth_ = 0;          // of brackets, from the file's own
  int events_depth_ = -1;  // of the array of events; -1 before it
  bool in_string_ = false, escaped_ = false, too_long_ = false;
  double first_microseconds_ = -1;
};

// True if the first bytes of a file look like such a trace.
bool looks_like_trace(std::string_view head);

}  // namespace snug
