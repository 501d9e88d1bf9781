// Products and what stands around them: cuBLAS's workspaces, linear layers, batched products.

#include "eager/torch_ops.h"

namespace snug::eager {

// ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize: (2 x 4096 + 8 x 16) KiB, 32 MiB on Hopper.
void Torch::need_cublas() {
  const int64_t bytes = compute_capability_ >= 90 ? int64_t{32} << 20U : int64_t{8320} << 10U;
  if (stack_.workspace_per_product) {
    device().allocate(bytes, Role::workspace);
    return;
  }
  Storage& workspace = workspaces_[in_backward() ? 1 : 0];
  if (!workspace) workspace = device().allocate(bytes, Role::workspace);
}

Tensor Torch::linear(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t in, int64_t out) {
  const Tensor b = bias.defined() ? autocast_product(bias) : Tensor{};
  const Tensor w = autocast_product(weight);
  const Tensor x = autocast_product(input);
  const int64_t rows = x.count / in;
  const Tensor none;
  const bool biased = bias.defined();
  const Tensors kept{w.requires_grad || linear_is_deepspeeds ? x : none, x.requires_grad ? w : none};
  before({x, w, b}, kept);
  Tensor y = empty(rows * out, x.dtype);
  {  // ATen/cuda/CUDABlas.cpp gemm_and_bias: cuBLASLt has a workspace of its own, 1 MiB
    const Tensor workspace = biased ? empty(int64_t{1} << 20U, DType::u8, Role::workspace) : Tensor{};
    if (!biased || !stack_.workspace_per_product) need_cublas();
  }
  record({x, w, b}, {&y}, kept,
         [this, biased, x_count = x.count, w_count = w.count, out](const Node& node, const Tensors&, Tensors& g) -> Tensors {
           Tensors results(3);
           if (biased && node.needs(0)) {  // addmm: mat1, mat2, self
             results[0] = empty(x_count, g[0].dtype);
             results[0].is_view = true;
             need_cublas();
           }
           if (node.needs(1)) {
             results[1] = empty(w_count, g[0].dtype);
             results[1].is_view = !linear_is_deepspeeds;
             need_cublas();
           }
           if (!biased && node.needs(0)) {
             results[0] = empty(x_count, g[0].dtype);
             results[0].is_view = true;
             need_cublas();
           }
           if (node.needs(2)) results[2] = sum_rows(g[0], out);
           return results;
         });
  return y;
}

Tensor Torch::matmul(const Tensor& left, const Tensor& right, int64_t count) {
  const Tensor b = autocast_product(right);
  const Tensor a = autocast_product(left);
  const Tensor none;
  const Tensors kept{b.requires_grad ? a : none, a.requires_grad ? b : none};
  before({a, b}, kept);
  Tensor y = empty(count, a.dtype);
  need_cublas();
  record({a, b}, {&y}, kept, [this, na = a.count, nb = b.count](const Node& node, const Tensors&, Tensors& g) -> Tensors {
    Tensors results(2);
    if (node.needs(1)) {
      results[1] = empty(nb, g[0].dtype);
      results[1].is_view = true;
      need_cublas();
    }
    if (node.needs(0)) {
      results[0] = empty(na, g[0].dtype);
      results[0].is_view = true;
      need_cublas();
    }
    return results;
  });
  return y;
}

}  // namespace snug::eager
