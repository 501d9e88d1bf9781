// What models with recurrent layers take beside the ops of attention: sums along rows, parts written in place, a convolution
// over tokens, triangular systems.

#include <algorithm>

#include "eager/torch_ops.h"

namespace snug::eager {

Tensor Torch::view(const Tensor& x) {
  Tensor y = x.detached();
  record({x}, {&y}, {}, [](const Node&, const Tensors&, Tensors& g) -> Tensors {
    g[0].is_view = true;
    return {g[0]};
  });
  return y;
}

Tensor Torch::sum(const Tensor& x, int64_t rows) {
  Tensor y = empty(rows, x.dtype);
  record({x}, {&y}, {}, [count = x.count](const Node&, const Tensors&, Tensors& g) -> Tensors {
    Tensor wide = g[0];  // expanded: a view
    wide.count = count;
    wide.is_view = true;
    return {wide};
  });
  return y;
}

Tensor Torch::subtract(const Tensor& a, const Tensor& b, int64_t count) {
  Tensor y = empty(count, promoted(a.dtype, b.dtype));
  record({a, b}, {&y}, {}, [this](const Node& node, const Tensors&, Tensors& g) -> Tensors {
    Tensors results(2);
    if (node.needs(1)) results[1] = empty_like(g[0]);
    if (node.needs(0)) results[0] = g[0];
    return results;
  });
  return y;
}

Tensor Torch::cumsum(const Tensor& x, bool strided) {
  Tensor y = empty_like(x);
  if (strided) const Tensor dense = empty_like(x);
  record({x}, {&y}, {}, [this](const Node&, const Tensors&, Tensors& g) -> Tensors {
    const Tensor flipped = empty_like(g[0]), sums = empty_like(g[0]);
    return {empty_like(g[0])};
  });
  return y;
}

Tensor Torch::masked_fill(const Tensor& x, const Tensor& mask) {
  Tensor y = empty_like(x);
  record({x}, {&y}, {mask}, [this](const Node&, const Tensors&, Tensors& g) -> Tensors { return {empty_like(g[0])}; });
  return y;
}

Tensor Torch::pad(const Tensor& x, int64_t count) {
  Tensor y = empty(count, x.dtype);
  record({x}, {&y}, {},
         [this, from = x.count](const Node&, const Tensors&, Tensors& g) -> Tensors { return {empty(from, g[0].dtype)}; });
  return y;
}

// torch/csrc/autograd/functions/tensor.cpp, CopySlices around CopyBackwards
Tensor Torch::with_part(const Tensor& whole, const Tensor& part) {
  Tensor y = whole.detached();
  record({whole, part}, {&y}, {},
         [this, count = part.count, from = part.dtype](const Node& node, const Tensors&, Tensors& g) -> Tensors {
           Tensors results(2);
           results[0] = empty_like(g[0]);
           Tensor slice = empty(count, g[0].dtype);
           if (node.needs(0)) const Tensor zeros = empty(count, g[0].dtype);
           if (node.needs(1)) results[1] = from == slice.dtype ? std::move(slice) : empty(count, from);
           return results;
         });
  return y;
}

// conv1d of each channel for itself (ATen/native/cuda/DepthwiseConv2d.cu), of rows that lie token by token: a copy lies
// channel by channel.
Tensor Torch::convolution(const Tensor& input, const Tensor& weight, int64_t count) {
  const Tensor w = autocast_product(weight);
  const Tensor x = autocast_product(input);
  before({x, w}, {x, w});
  Tensor y;
  {
    const Tensor dense = empty_like(x);
    y = empty(count, x.dtype);
  }
  record({x, w}, {&y}, {x, w}, [this](const Node& node, const Tensors& saved, Tensors&) -> Tensors {
    Tensors results(2);
    const Tensor dense = empty_like(saved[0]);
    if (node.needs(1)) results[1] = empty_like(saved[1]);
    if (node.needs(0)) results[0] = empty_like(saved[0]);
    return results;
  });
  return y;
}

// The pointers that cuBLAS takes for a batch of systems: to each matrix, to each right side.
void Torch::need_systems(int64_t systems) {
  const Tensor matrices = empty(systems, DType::i64), sides = empty(systems, DType::i64);
  need_cublas();
}

// linalg.solve_triangular (ATen/native/cuda/linalg/BatchLinearAlgebra.cpp; FunctionsManual.cpp,
// linalg_solve_triangular_backward)
Tensor Torch::solve_triangular(const Tensor& matrices, const Tensor& sides, int64_t systems) {
  Tensor y = empty_like(sides);
  need_systems(systems);
  record({matrices, sides}, {&y}, {matrices, y},
         [this, systems](const Node& node, const Tensors& saved, Tensors& g) -> Tensors {
           Tensors results(2);
           Tensor solved = empty_like(g[0]);
           need_systems(systems);
           if (node.needs(0)) {
             Tensor negated;
             {
               const Tensor product = empty_like(saved[0]);
               need_cublas();
               negated = empty_like(product);
             }
             results[0] = empty_like(negated);  // tril
           }
           if (node.needs(1)) results[1] = std::move(solved);
           return results;
         });
  return y;
}

}  // namespace snug::eager
