// adafactor: updates one weight from its gradient and the running means of its rows' and columns' squares. It scales its
// step by a sum over the whole weight, so it works weight by weight, not on flat buffers. Nothing flows back through it.

#include "program/rules.h"

namespace snug {

namespace adafactor_rule {

void check(const Program& program, const Op& op) {
  const Tensor& parameter = program.tensor(op.find(Slot::parameter));
  const int64_t cols = parameter.shape.back().bound, rows = parameter.elements() / cols;
  const TensorId row_factor = op.find(Slot::row_factor);
  expect(program.tensor(op.find(Slot::gradient)).elements() == parameter.elements(), op, "a gradient of the weight's size");
  expect(row_factor != kNone || rows == 1, op, "rows have factors");
  const int64_t in_matrix = row_factor == kNone ? 1 : parameter.dim(parameter.shape.size() - 2);
  expect(row_factor == kNone || program.tensor(row_factor).elements() == rows, op, "a factor for each row");
  expect(program.tensor(op.find(Slot::column_factor)).elements() == rows / in_matrix * cols, op, "a factor for each column");
}

}  // namespace adafactor_rule

const OpRule rules::adafactor = {.check = adafactor_rule::check, .work = memory_work};

}  // namespace snug
