// What the optimizer's ops sum up apart, in fp64.

#include "base/scalars.h"
#include "targets/cpu/sizing.h"

namespace snug::cpu {
namespace {

int64_t square_sum(const OpView& op, const Machine&) {
  return (op[Slot::gradient].elements + kSquareSumBlock - 1) / kSquareSumBlock * size_of(DType::f64);
}

// A double for each row, and for each matrix, of which there are no more than rows.
int64_t adafactor(const OpView& op, const Machine&) {
  const OperandView& parameter = op[Slot::parameter];
  const int64_t rows = parameter.elements / parameter.last_dim();
  const int64_t rows_in_matrix = op.has(Slot::row_factor) ? parameter.dim(parameter.axes - size_t{2}) : rows;
  return (rows + rows / rows_in_matrix) * size_of(DType::f64);
}

}  // namespace

const OpSizing sizing::square_sum = {even_cut, cpu::square_sum};
const OpSizing sizing::adafactor = {even_cut, cpu::adafactor};

}  // namespace snug::cpu
