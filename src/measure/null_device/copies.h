#pragma once
// Copies where one side is not there: what comes from a device is zeros, what goes to it is forgotten; between host and host
// they copy.

#include <cstddef>

namespace snug::null_device {

void copy(void* to, const void* from, size_t bytes);
void fill(void* to, int value, size_t bytes);

// A kernel was launched: what a device holds is not known any more.
void forget_values() noexcept;

}  // namespace snug::null_device
