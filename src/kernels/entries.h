#pragma once
// What a backend has for each kind of op, from the one list of kinds (op/kind.h). SNUG_ENTRIES, once in a namespace of the
// backend's own, declares a Kernel of each kind's name for those that backends run, to be defined beside what it calls,
// and entry(kind): the address of that Kernel, null for a kind that others run.

#include "kernels/backend.h"

#define SNUG_DECLARE_host(kind)
#define SNUG_DECLARE_executor(kind)
#define SNUG_DECLARE_ranks(kind)
#define SNUG_DECLARE_nobody(kind)
#define SNUG_DECLARE_backend(kind) extern const Kernel kind;
#define SNUG_DECLARE(kind, run_by, sizing) SNUG_DECLARE_##run_by(kind)

#define SNUG_ADDRESS_host(kind) nullptr,
#define SNUG_ADDRESS_executor(kind) nullptr,
#define SNUG_ADDRESS_ranks(kind) nullptr,
#define SNUG_ADDRESS_nobody(kind) nullptr,
#define SNUG_ADDRESS_backend(kind) &(kind),
#define SNUG_ADDRESS(kind, run_by, sizing) SNUG_ADDRESS_##run_by(kind)

// clang-format off
#define SNUG_ENTRIES                                                               \
  SNUG_OP_KINDS(SNUG_DECLARE)                                                      \
  inline const Kernel* entry(OpKind kind) {                                        \
    static constexpr const Kernel* kTable[] = {SNUG_OP_KINDS(SNUG_ADDRESS)};       \
    return kTable[static_cast<int>(kind)];                                         \
  }
// clang-format on
