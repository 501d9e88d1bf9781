#pragma once
// Ops by the ids that handles know them by, and what is put beside them: a pass counts no positions. An id is looked for
// below one region, since copies of an op keep it.

#include <vector>

#include "program/program.h"

namespace snug {

// The one op of this id below `region`, and where it is. Throws std::logic_error if there is none, or another.
struct OpPlace {
  Region* region = nullptr;
  size_t item = 0;

  Op& op() const { return *region->items[item].op(); }
};
OpPlace find_op(Region& region, OpId id);

void insert_before(const OpPlace& place, std::vector<Op> ops);
void insert_after(const OpPlace& place, std::vector<Op> ops);
void erase(const OpPlace& place);

// The op's one operand in this slot; throws std::logic_error if there is none.
Operand& operand(Op& op, Slot slot);

}  // namespace snug
