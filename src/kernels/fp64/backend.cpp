// A backend of plain loops in fp64, as a module: what ops mean, written once more and as simply as can be. It is the truth
// that other backends are held against, and the smallest example of one. One thread, no workspace, no hurry.

#include "kernels/fp64/table.h"

namespace snug::kernels::fp64 {
namespace {

const Kernel* kernel(OpKind kind) {
#define SNUG_ENTRY_host(kind) nullptr,
#define SNUG_ENTRY_executor(kind) nullptr,
#define SNUG_ENTRY_nobody(kind) nullptr,
#define SNUG_ENTRY_backend(kind) &entries::kind,
#define SNUG_ENTRY(kind, run_by, sizing) SNUG_ENTRY_##run_by(kind)
  static const Kernel* const kTable[] = {SNUG_OP_KINDS(SNUG_ENTRY)};
#undef SNUG_ENTRY
#undef SNUG_ENTRY_backend
#undef SNUG_ENTRY_nobody
#undef SNUG_ENTRY_executor
#undef SNUG_ENTRY_host
  return kTable[static_cast<int>(kind)];
}

}  // namespace
}  // namespace snug::kernels::fp64

extern "C" __attribute__((visibility("default")))
const snug::kernels::Backend snug_backend = {.name = [] { return std::string("fp64 loops"); },
                                             .start_threads = [](int32_t) {},
                                             .open = [] { return std::make_unique<snug::kernels::Session>(); },
                                             .kernel = snug::kernels::fp64::kernel};
