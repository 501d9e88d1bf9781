// zero, square_sum, clip_factor, update_scale, adamw, sgd, lion: the optimizer's ops over flat buffers (one for each dtype
// and group, ready to shard). Nothing flows back through them.

#include "base/scalars.h"
#include "program/rules.h"

namespace snug {

namespace {

void check_nothing(const Program&, const Op&) {}

int64_t square_sum_workspace(const Program& program, const Op& op, int32_t) {
  const int64_t elements = program.tensor(op.find(Slot::gradient)).elements();
  return (elements + kSquareSumBlock - 1) / kSquareSumBlock * size_of(DType::f64);
}

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

constexpr OpRule update_rule(OpKind kind) {
  return {kind, check_update, cut_by_rows, no_workspace, memory_work, nullptr, Recompute::never, {}};
}

}  // namespace

extern const OpRule kZeroRule, kSquareSumRule, kClipFactorRule, kUpdateScaleRule, kAdamWRule, kSgdRule, kLionRule;
const OpRule kZeroRule = {OpKind::zero, check_nothing, cut_by_rows,      no_workspace,
                          memory_work,  nullptr,       Recompute::never, {}};
const OpRule kSquareSumRule = {OpKind::square_sum, check_nothing, cut_by_rows,      square_sum_workspace,
                               memory_work,        nullptr,       Recompute::never, {}};
const OpRule kClipFactorRule = {OpKind::clip_factor, check_nothing, cut_by_rows,      no_workspace,
                                memory_work,         nullptr,       Recompute::never, {}};
const OpRule kUpdateScaleRule = {OpKind::update_scale, check_nothing, cut_by_rows,      no_workspace,
                                 memory_work,          nullptr,       Recompute::never, {}};
const OpRule kAdamWRule = update_rule(OpKind::adamw);
const OpRule kSgdRule = update_rule(OpKind::sgd);
const OpRule kLionRule = update_rule(OpKind::lion);

}  // namespace snug
