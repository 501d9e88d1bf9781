#pragma once
// Watches the allocator of the whole test program, libraries included: support_allocations.cpp stands in for malloc and its
// kin.

#include <cstddef>

namespace snug::tests {

// False under sanitizers, which have an allocator of their own.
bool watches_allocations();
// The largest single request since the last call.
size_t take_largest_allocation();

}  // namespace snug::tests
