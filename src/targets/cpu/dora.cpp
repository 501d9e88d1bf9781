// DoRA's norms, made a panel of a weight at a time, and the columns that they scale.

#include "base/checked.h"
#include "base/scalars.h"
#include "targets/cpu/sizing.h"

namespace snug::cpu {
namespace {

int64_t floats(int64_t count) { return checked_mul(count, size_of(DType::f32)); }

int64_t dora_norm(const OpView& op, const Machine& machine) {
  if (op.attributes.transpose_b) return floats(machine.threads * kDoraPanel);
  return floats(machine.threads * ((kDoraColumns + 1) * op[Slot::a].dim(0) + 3 * kDoraColumns));
}

int64_t scale_columns(const OpView& op, const Machine&) { return floats(op[Slot::norm].elements); }

int64_t scale_columns_backward(const OpView& op, const Machine& machine) {
  return floats((machine.threads + int64_t{1}) * op[Slot::norm].elements);
}

}  // namespace

const OpSizing sizing::dora_norm = {even_cut, cpu::dora_norm};
const OpSizing sizing::scale_columns = {even_cut, cpu::scale_columns};
const OpSizing sizing::scale_columns_backward = {even_cut, cpu::scale_columns_backward};

}  // namespace snug::cpu
