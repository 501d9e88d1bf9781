// matmul: c [m, n] (+)= scale * op(a) op(b).  As a linear layer: a [M, in], b [out, in] transposed or [in, out], c [M, out].
// Adjoint of the first form: d_a += scale * d_c b,  d_b += scale * d_c^T a; of the second: d_a += scale * d_c b^T,  d_b +=
// scale * a^T d_c.

#include "op/product.h"
#include "program/adjoint.h"
#include "program/ops/quantized.h"
#include "program/rules.h"

namespace snug {

namespace matmul_rule {

void check(const Program& program, const Op& op) {
  const ProductShape shape = product_shape(view_of(program, op));
  expect(program.tensor(op.find(Slot::a)).elements() == shape.m * shape.k, op, "a is m x k");
  expect(program.tensor(op.find(Slot::b)).elements() == shape.k * shape.n, op, "b is k x n");
  expect(program.tensor(op.find(Slot::c)).elements() == shape.m * shape.n, op, "c is m x n");
  check_scales(program, op);
}

Work work(const Program& program, const Op& op) {
  const ProductShape shape = product_shape(view_of(program, op));
  return {.flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k),
          .bytes = memory_work(program, op).bytes};
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId a = op.find(Slot::a);
  const TensorId b = op.find(Slot::b);
  const TensorId d_c = adjoint.gradient(op.find(Slot::c));
  if (d_c == kNone) return;
  expect(!op.attributes.transpose_a, op, "only linear forms have an adjoint");
  const bool output_first = op.attributes.transpose_b;  // b is [out, in]
  if (adjoint.wanted(a)) {
    const auto d_a = adjoint.destination(a);
    Op back{OpKind::matmul};
    back.attributes = {.transpose_b = !output_first, .accumulate = d_a.accumulate, .scale = op.attributes.scale};
    back.reads(Slot::a, d_c).reads(Slot::b, b).with(Slot::c, d_a.access(), d_a.tensor);
    read_scales(op, back);
    adjoint.emit(std::move(back));
  }
  if (adjoint.wanted(b)) {
    const auto d_b = adjoint.destination(b);
    Op back{OpKind::matmul};
    back.attributes = {.transpose_a = true, .accumulate = d_b.accumulate, .scale = op.attributes.scale};
    back.reads(Slot::a, output_first ? d_c : a).reads(Slot::b, output_first ? a : d_c);
    back.with(Slot::c, d_b.access(), d_b.tensor);
    adjoint.emit(std::move(back));
  }
}

}  // namespace matmul_rule

const OpRule rules::matmul = {.check = matmul_rule::check, .work = matmul_rule::work, .adjoint = matmul_rule::adjoint};

}  // namespace snug
