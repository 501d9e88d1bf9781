#pragma once
// What a process does once, before anything is measured or committed.

#include <cstdint>

namespace snug {

// Settles the process before memory is counted: one malloc arena, small thread stacks, `threads` threads started.
void settle_process(int32_t threads);

}  // namespace snug
