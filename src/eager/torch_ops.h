#pragma once
// The ATen ops that transformers' models are made of, on sizes: what each allocates forward and backward, in which order,
// and what it keeps (tools/autograd/derivatives.yaml). Arguments are shared as Python's are: a caller that gives a tensor up
// frees it after the op. Autocast casts what its lists say (aten/src/ATen/autocast_mode.cpp). Knows no model.

#include <map>
#include <optional>

#include "eager/autograd.h"
#include "eager/stack.h"

namespace snug::eager {

class Torch : public Autograd {
 public:
  Torch(Device& device, const StackProfile& stack, int compute_capability);

  const StackProfile& stack() const { return stack_; }
  int compute_capability() const { return compute_capability_; }

  // --- autocast ---
  // torch.autocast("cuda", dtype): products in `dtype`, sums and losses in fp32. Casts of leaves are kept until it is left.
  void enter_autocast(DType dtype);
  void leave_autocast();
  bool autocasts() const { return autocast_.has_value(); }
  DType autocast_dtype() const { return *autocast_; }

  // model.train(): whether dropout drops; off under model.eval().
  bool training = true;

  // --- casts and copies ---
  Tensor to(const Tensor& x, DType dtype);
  Tensor clone(const Tensor& x);                  // contiguous(), where it copies
  Tensor repeat(const Tensor& x, int64_t times);  // expand and reshape: a copy
  Tensor expand(const Tensor& x, int64_t times);  // … a view
  Tensor slice(const Tensor& x, int64_t count);   // a part of it: a view
  Tensor full_slices(Tensor x, int number);       // ":" of an index expression, where these are nodes
  // A view whose gradient must be copied to be viewed (a reshape of a transposed tensor's gradient).
  Tensor transposed_view(const Tensor& x);
  // Parts of one tensor, whose gradients are put together in one (split, chunk).
  Tensors split(const Tensor& x, const std::vector<int64_t>& counts);

  // --- element by element ---
  Tensor add(const Tensor& a, const Tensor& b);
  Tensor add_in_place(const Tensor& a, const Tensor& b);               // a += b
  Tensor mul(const Tensor& a, const Tensor& b, bool by_rows = false);  // by_rows: b has one number for each row of a
  Tensor scale(const Tensor& x);                                       // x * number, x / number
  Tensor add_number(const Tensor& x);
  Tensor neg(const Tensor& x);
  Tensor square(const Tensor& x);  // x.pow(2)
  Tensor rsqrt(const Tensor& x);
  Tensor mean(const Tensor& x, int64_t rows);
  Tensor keeps_input(const Tensor& x);   // silu, gelu: backward needs the input
  Tensor keeps_output(const Tensor& x);  // tanh, sigmoid, softmax: backward needs the output
  Tensor dropout(const Tensor& x, double probability);
  Tensor cat(const Tensors& parts);

  // --- products ---
  // DeepSpeed's third stage has a linear of its own (zero/linear.py): it keeps the input of frozen weights too, and the
  // weight's gradient is no view through weight.t().
  bool linear_is_deepspeeds = false;
  // torch.nn.functional.linear: weight [out, in]; an undefined bias is none.
  Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t in, int64_t out);
  // torch.matmul of batches; `count` elements result.
  Tensor matmul(const Tensor& left, const Tensor& right, int64_t count);
  // The workspace of the handle that is used now (ATen/cuda/CublasHandlePool.cpp), at its first product.
  void need_cublas();

  // --- along a sequence ---
  Tensor view(const Tensor& x);  // whose gradient is a view too: nothing is added to it in place
  Tensor sum(const Tensor& x, int64_t rows);
  Tensor subtract(const Tensor& a, const Tensor& b, int64_t count);  // both may be repeated, to `count` elements
  Tensor cumsum(const Tensor& x, bool strided);                      // strided: of a tensor that does not lie row by row
  Tensor masked_fill(const Tensor& x, const Tensor& mask);
  Tensor pad(const Tensor& x, int64_t count);                 // to so many elements; a copy where nothing is added
  Tensor with_part(const Tensor& whole, const Tensor& part);  // whole[...] = part
  // Of each channel for itself; `count` elements result.
  Tensor convolution(const Tensor& input, const Tensor& weight, int64_t count);
  // Of so many systems, each with as many right sides as a row of `sides` has numbers.
  Tensor solve_triangular(const Tensor& matrices, const Tensor& sides, int64_t systems);

  // --- others ---
  Tensor embedding(const Tensor& weight, int64_t tokens, int64_t width);
  Tensor layer_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t rows);
  Tensor layer_norm_as_it_is(const Tensor& x, const Tensor& w, const Tensor& b, int64_t rows);  // without autocast
  Tensor softmax(const Tensor& input, DType dtype);

  // Casts to autocast's dtype, if it is on; keeps those of leaves.
  Tensor autocast_product(const Tensor& x);
  Tensor autocast_float(const Tensor& x);

 private:
  void need_systems(int64_t systems);

  const StackProfile& stack_;
  int compute_capability_;
  std::optional<DType> autocast_, recompute_autocast_;  // now; where a checkpoint recomputes
  int autocast_depth_ = 0;
  std::map<const Node*, Tensor> casts_;  // by leaf
  Storage workspaces_[2];                // of the main thread and of autograd's
};

// The dtype of an operation on both.
DType promoted(DType a, DType b);

}  // namespace snug::eager
