#include "op/kind.h"
#include "op/slot.h"

namespace snug {

const char* name_of(OpKind kind) {
#define SNUG_NAME(kind, run_by, sizing) #kind,
  constexpr const char* kNames[] = {SNUG_OP_KINDS(SNUG_NAME)};
#undef SNUG_NAME
  return kNames[static_cast<int>(kind)];
}

RunBy run_by(OpKind kind) {
#define SNUG_RUN_BY(kind, run_by, sizing) RunBy::run_by,
  constexpr RunBy kRunBy[] = {SNUG_OP_KINDS(SNUG_RUN_BY)};
#undef SNUG_RUN_BY
  return kRunBy[static_cast<int>(kind)];
}

const char* name_of(Slot slot) {
#define SNUG_NAME(slot) #slot,
  constexpr const char* kNames[] = {SNUG_SLOTS(SNUG_NAME)};
#undef SNUG_NAME
  return kNames[static_cast<int>(slot)];
}

}  // namespace snug
