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

// Gives back the resident pages of code (madvise on what /proc/self/maps calls r-x, of a file): most of it read, resolved
// and planned, and is not run again. What is run is mapped anew from its file as it is reached. Some half a MiB less in a
// run's peak, three where the kernel maps files in large pieces. Does nothing where the system does not let it.
void give_back_code_pages();

}  // namespace snug
