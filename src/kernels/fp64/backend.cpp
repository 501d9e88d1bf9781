// A backend of plain loops in fp64, as a module: what ops mean, written once more and as simply as can be. It is the truth
// that other backends are held against, and the smallest example of one. One thread, no workspace, no hurry.

#include "kernels/fp64/table.h"

extern "C" __attribute__((visibility("default")))
const snug::kernels::Backend snug_backend = {.name = [] { return std::string("fp64 loops"); },
                                             .start_threads = [](int32_t) {},
                                             .open = [] { return std::make_unique<snug::kernels::Session>(); },
                                             .kernel = snug::kernels::fp64::entries::entry};
