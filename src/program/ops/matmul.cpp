// matmul: c [m, n] (+)= scale * op(a) op(b).  As a linear layer: a [M, in], b [out, in] transposed or [in, out], c [M, out].
// Adjoint of the first form: d_a += scale * d_c b,  d_b += scale * d_c^T a; of the second: d_a += scale * d_c b^T,  d_b +=
// scale * a^T d_c.

#include "program/adjoint.h"
#include "program/ops/quantized.h"
#include "program/ops/workspace.h"
#include "program/rules.h"

namespace snug {

// Tensors may have more axes than two ([B, T, H, D] is [M, H*D]); the one that is a weight says where rows end.
ProductShape product_shape(const Program& program, const Op& op) {
  const Tensor& a = program.tensor(op.find(Slot::a));
  const Tensor& b = program.tensor(op.find(Slot::b));
  const Tensor& c = program.tensor(op.find(Slot::c));
  const bool quantized = op.find(Slot::absmax) != kNone;
  ProductShape shape{.transpose_a = op.attributes.transpose_a,
                     .transpose_b = op.attributes.transpose_b,
                     .accumulate = op.attributes.accumulate,
                     .a = a.dtype,
                     .b = quantized ? op.attributes.values : b.dtype,
                     .c = c.dtype,
                     .quantized = quantized,
                     .scaled = op.attributes.scale != 1.0};
  if (shape.transpose_a) {  // the gradient of a weight: c has its shape
    shape.m = c.dim(0);
    shape.n = c.elements() / shape.m;
    shape.k = a.elements() / shape.m;
  } else {  // b is the weight [out, in], or its transpose
    shape.n = shape.transpose_b ? b.dim(0) : b.elements() / b.dim(0);
    shape.k = b.elements() / shape.n;
    shape.m = a.elements() / shape.k;
  }
  const bool generates = !program.generation.steps.empty();
  shape.arithmetic =
      generates && has_few_rows(shape) && !quantized ? Arithmetic::fp32_dots : product_arithmetic(shape, program.arithmetic);
  return shape;
}

namespace {

void check(const Program& program, const Op& op) {
  const ProductShape shape = product_shape(program, op);
  expect(program.tensor(op.find(Slot::a)).elements() == shape.m * shape.k, op, "a is m x k");
  expect(program.tensor(op.find(Slot::b)).elements() == shape.k * shape.n, op, "b is k x n");
  expect(program.tensor(op.find(Slot::c)).elements() == shape.m * shape.n, op, "c is m x n");
  check_scales(program, op);
}

OpCut cut(const Program& program, const Op& op, int32_t threads) {
  const ProductShape shape = product_shape(program, op);
  const Blocks blocks = matmul_blocks(shape, threads);
  return {
      .threads = threads, .rows = blocks.rows, .cols = blocks.cols, .depth = blocks.depth, .arithmetic = shape.arithmetic};
}

int64_t workspace(const Program& program, const Op& op, int32_t threads) {
  return matmul_workspace_bytes(product_shape(program, op), threads);
}

Work work(const Program& program, const Op& op) {
  const ProductShape shape = product_shape(program, op);
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

}  // namespace

extern const OpRule kMatmulRule;
const OpRule kMatmulRule = {
    OpKind::matmul, check, cut, workspace, work, adjoint, Recompute::costly, {.sequence = true, .tensor = true}};

}  // namespace snug
