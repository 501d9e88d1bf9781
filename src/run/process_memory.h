#pragma once
// What the operating system says of this process's memory: the independent count that plans are held against.

#include <cstdint>

namespace snug {

struct ProcessMemory {
  int64_t resident_bytes = 0;   // VmRSS
  int64_t anonymous_bytes = 0;  // RssAnon: heap and stacks. How much of a file (the program's own) is resident varies from
                                // run to run by half a MiB, with addresses and the page cache; these vary by a page or two
  int64_t peak_bytes = 0;       // VmHWM: the most there ever was
};

// Reads /proc/self/status without allocating.
ProcessMemory process_memory();

}  // namespace snug
