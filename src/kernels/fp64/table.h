#pragma once
// The entries of this backend: each is defined in the file of its kernel.

#include "kernels/backend.h"
#include "kernels/binding.h"

namespace snug::kernels::fp64 {

template <class Args, void (*kRun)(const Args&)>
constexpr Kernel plain() {
  return {.missing = kernels::missing<Args>, .run = [](Session&, const OpView& op) { kRun(bind<Args>(op)); }};
}

namespace entries {
#define SNUG_ENTRY_host(kind)
#define SNUG_ENTRY_executor(kind)
#define SNUG_ENTRY_nobody(kind)
#define SNUG_ENTRY_backend(kind) extern const Kernel kind;
#define SNUG_ENTRY(kind, run_by, sizing) SNUG_ENTRY_##run_by(kind)
SNUG_OP_KINDS(SNUG_ENTRY)
#undef SNUG_ENTRY
#undef SNUG_ENTRY_backend
#undef SNUG_ENTRY_nobody
#undef SNUG_ENTRY_executor
#undef SNUG_ENTRY_host
}  // namespace entries

}  // namespace snug::kernels::fp64
