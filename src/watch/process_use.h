#pragma once
// A process's memory as the operating system counts it (/proc/PID/status).

#include <cstdint>
#include <optional>
#include <string>

#include "watch/sample.h"

namespace snug {

// VmRSS and VmHWM of the process; none once it has ended. `available_bytes`: what the machine could still give it.
std::optional<MemorySample> sample_process(int64_t pid, int64_t available_bytes);

// The program's name, of at most 15 bytes; empty if there is no such process.
std::string program_of(int64_t pid);

}  // namespace snug
