// Fuzz target: Chrome traces of torch.profiler, in pieces. Whatever comes in, counts agree and memory stays bounded.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "torch/profiler_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = size_t{data[0]} + 1;
  snug::ProfilerTraceReader reader;
  for (size_t at = 0; at < text.size(); at += piece) reader.feed(text.substr(at, piece));
  const snug::ProfilerTrace trace = reader.finish();
  if (trace.memory_events + trace.passed_over > trace.events || trace.devices.size() > 64) std::abort();
  int64_t events = 0;
  for (const snug::TracedDevice& device : trace.devices) {
    events += device.events;
    if (device.peak_allocated_bytes < 0 || device.last_allocated_bytes > device.peak_allocated_bytes) std::abort();
  }
  if (events != trace.memory_events) std::abort();
  snug::looks_like_trace(text);
  return 0;
}
