#pragma once
// The entries of this backend: each is defined in the file of its kernel.

#include "kernels/binding.h"
#include "kernels/entries.h"

namespace snug::kernels::fp64 {

template <class Args, void (*kRun)(const Args&)>
constexpr Kernel plain() {
  return {.missing = kernels::missing<Args>, .run = [](Session&, const OpView& op) { kRun(bind<Args>(op)); }};
}

namespace entries {
SNUG_ENTRIES
}  // namespace entries

}  // namespace snug::kernels::fp64
