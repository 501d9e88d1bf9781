// zero, square_sum, clip_factor, adamw: the optimizer's ops over flat buffers (one for each dtype and group, ready to
// shard). Nothing flows back through them.

#include "base/scalars.h"
#include "program/rules.h"

namespace snug {

namespace {

void check_nothing(const Program&, const Op&) {}

int64_t square_sum_workspace(const Program& program, const Op& op, int32_t) {
  const int64_t elements = program.tensor(op.find(Slot::gradient)).elements();
  return (elements + kSquareSumBlock - 1) / kSquareSumBlock * size_of(DType::f64);
}

void check_adamw(const Program& program, const Op& op) {
  const int64_t elements = program.tensor(op.find(Slot::parameter)).elements();
  for (Slot slot : {Slot::gradient, Slot::first_moment, Slot::second_moment})
    expect(program.tensor(op.find(slot)).elements() == elements, op, "flat buffers have one length");
}

}  // namespace

extern const OpRule kZeroRule, kSquareSumRule, kClipFactorRule, kAdamWRule;
const OpRule kZeroRule = {OpKind::zero, check_nothing, cut_by_rows,      no_workspace,
                          memory_work,  nullptr,       Recompute::never, {}};
const OpRule kSquareSumRule = {OpKind::square_sum, check_nothing, cut_by_rows,      square_sum_workspace,
                               memory_work,        nullptr,       Recompute::never, {}};
const OpRule kClipFactorRule = {OpKind::clip_factor, check_nothing, cut_by_rows,      no_workspace,
                                memory_work,         nullptr,       Recompute::never, {}};
const OpRule kAdamWRule = {OpKind::adamw, check_adamw, cut_by_rows,      no_workspace,
                           memory_work,   nullptr,     Recompute::never, {}};

}  // namespace snug
