#include "op/product.h"

namespace snug {

ProductShape product_shape(const OpView& op) {
  const OperandView &a = op[Slot::a], &b = op[Slot::b], &c = op[Slot::c];
  const bool quantized = op.has(Slot::absmax);
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
    shape.n = c.elements / shape.m;
    shape.k = a.elements / shape.m;
  } else {  // b is the weight [out, in], or its transpose
    shape.n = shape.transpose_b ? b.dim(0) : b.elements / b.dim(0);
    shape.k = b.elements / shape.n;
    shape.m = a.elements / shape.k;
  }
  return shape;
}

}  // namespace snug
