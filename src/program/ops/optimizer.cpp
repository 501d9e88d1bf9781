// zero, square_sum, clip_factor, update_scale, adamw, sgd, lion: the optimizer's ops over flat buffers (one for each dtype
// and group, ready to shard). Nothing flows back through them.

#include "base/scalars.h"
#include "program/rules.h"

namespace snug {

namespace optimizer_rule {

void check_nothing(const Program&, const Op&) {}

// Every flat buffer that is there has the parameter's length.
void check_update(const Program& program, const Op& op) {
  const int64_t elements = program.tensor(op.find(Slot::parameter)).elements();
  for (Slot slot : {Slot::gradient, Slot::master, Slot::first_moment, Slot::second_moment})
    expect(op.find(slot) == kNone || program.tensor(op.find(slot)).elements() == elements, op,
           "flat buffers have one length");
  for (Slot slot : {Slot::first_absmax, Slot::second_absmax})
    expect(op.find(slot) == kNone || program.tensor(op.find(slot)).elements() == (elements + kStateBlock - 1) / kStateBlock,
           op, "a scale for each block");
}

}  // namespace optimizer_rule

const OpRule rules::zero = {.check = optimizer_rule::check_nothing, .work = memory_work};
const OpRule rules::square_sum = {.check = optimizer_rule::check_nothing, .work = memory_work};
const OpRule rules::clip_factor = {.check = optimizer_rule::check_nothing, .work = memory_work};
const OpRule rules::update_scale = {.check = optimizer_rule::check_nothing, .work = memory_work};
const OpRule rules::adamw = {.check = optimizer_rule::check_update, .work = memory_work};
const OpRule rules::sgd = {.check = optimizer_rule::check_update, .work = memory_work};
const OpRule rules::lion = {.check = optimizer_rule::check_update, .work = memory_work};

}  // namespace snug
