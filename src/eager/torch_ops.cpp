#include "eager/torch_ops.h"

#include <algorithm>

namespace snug::eager {

DType promoted(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::f32 || b == DType::f32) return DType::f32;
  if (is_half(a) && is_half(b)) return DType::f32;
  return is_half(a) ? a : b;
}

Torch::Torch(Device& device, const StackProfile& stack, int compute_capability)
    : Autograd(device), stack_(stack), compute_capability_(compute_capability) {
  on_recompute = [this](bool entering) {
    if (!recompute_autocast_) return;
    if (entering) return enter_autocast(*recompute_autocast_);
    leave_autocast();
  };
}

// --- autocast ---

void Torch::enter_autocast(DType dtype) {
  autocast_ = recompute_autocast_ = dtype;
  ++autocast_depth_;
}

void Torch::leave_autocast() {
  if (--autocast_depth_ == 0) casts_.clear();
  if (autocast_depth_ == 0) autocast_.reset();
}

Tensor Torch::autocast_product(const Tensor& x) {
  if (!autocast_ || x.dtype == *autocast_ || !(x.dtype == DType::f32 || is_half(x.dtype))) return x;
  const bool keeps = x.dtype == DType::f32 && x.requires_grad && x.node && x.node->is_leaf;
  if (!keeps) return to(x, *autocast_);
  if (const auto found = casts_.find(x.node.get()); found != casts_.end()) return found->second;
  return casts_[x.node.get()] = to(x, *autocast_);
}

Tensor Torch::autocast_float(const Tensor& x) { return autocast_ && is_half(x.dtype) ? to(x, DType::f32) : x; }

// --- casts and copies ---

Tensor Torch::to(const Tensor& x, DType dtype) {
  if (x.dtype == dtype) return x;
  Tensor y = empty(x.count, dtype);
  record({x}, {&y}, {},
         [this, from = x.dtype](const Node&, const Tensors&, Tensors& g) -> Tensors { return {empty(g[0].count, from)}; });
  return y;
}

Tensor Torch::clone(const Tensor& x) {
  Tensor y = empty_like(x);
  record({x}, {&y}, {}, [](const Node&, const Tensors&, Tensors& g) -> Tensors { return {g[0]}; });
  return y;
}

Tensor Torch::repeat(const Tensor& x, int64_t times) {
  Tensor y = empty(x.count * times, x.dtype);
  record({x}, {&y}, {}, [this, count = x.count](const Node&, const Tensors&, Tensors& g) -> Tensors {
    return {empty(count, g[0].dtype)};  // sum
  });
  return y;
}

Tensor Torch::expand(const Tensor& x, int64_t times) {
  Tensor y = x.detached();
  y.count = x.count * times;
  record({x}, {&y}, {}, [this, count = x.count](const Node&, const Tensors&, Tensors& g) -> Tensors {
    return {empty(count, g[0].dtype)};  // sum
  });
  return y;
}

Tensor Torch::slice(const Tensor& x, int64_t count) {
  Tensor y = x.detached();
  y.count = count;
  record({x}, {&y}, {},
         [this, whole = x.count](const Node&, const Tensors&, Tensors& g) -> Tensors { return {empty(whole, g[0].dtype)}; });
  return y;
}

Tensor Torch::full_slices(Tensor x, int number) {
  if (!stack_.full_slices_are_nodes) return x;
  for (int i = 0; i < number; ++i) x = slice(x, x.count);
  return x;
}

Tensor Torch::transposed_view(const Tensor& x) {
  Tensor y = x.detached();
  record({x}, {&y}, {}, [this](const Node&, const Tensors&, Tensors& g) -> Tensors { return {empty_like(g[0])}; });
  return y;
}

Tensors Torch::split(const Tensor& x, const std::vector<int64_t>& counts) {
  Tensors parts;
  std::vector<Tensor*> outputs;
  for (const int64_t count : counts) {
    parts.push_back(x.detached());
    parts.back().count = count;
  }
  for (Tensor& part : parts) outputs.push_back(&part);
  record({x}, outputs, {}, [this, whole = x.count, dtype = x.dtype](const Node&, const Tensors&, Tensors&) -> Tensors {
    return {empty(whole, dtype)};  // cat
  });
  return parts;
}

// --- element by element ---

Tensor Torch::add(const Tensor& a, const Tensor& b) {
  Tensor y = empty(std::max(a.count, b.count), promoted(a.dtype, b.dtype));
  record({a, b}, {&y}, {}, [](const Node& node, const Tensors&, Tensors& g) -> Tensors {
    return {node.needs(0) ? g[0] : Tensor{}, node.needs(1) ? g[0] : Tensor{}};
  });
  return y;
}

Tensor Torch::add_in_place(const Tensor& a, const Tensor& b) {
  Tensor y = a.detached();
  record({a, b}, {&y}, {}, [](const Node& node, const Tensors&, Tensors& g) -> Tensors {
    return {node.needs(0) ? g[0] : Tensor{}, node.needs(1) ? g[0] : Tensor{}};
  });
  return y;
}

Tensor Torch::mul(const Tensor& a, const Tensor& b, bool by_rows) {
  const Tensor none;
  const Tensors kept{b.requires_grad ? a : none, a.requires_grad ? b : none};
  before({a, b}, kept);
  Tensor y = empty(std::max(a.count, b.count), promoted(a.dtype, b.dtype));
  record({a, b}, {&y}, kept,
         [this, da = a.dtype, db = b.dtype, by_rows, nb = b.count](const Node& node, const Tensors&, Tensors& g) -> Tensors {
           Tensors results(2);
           if (node.needs(1)) results[1] = empty(g[0].count, promoted(g[0].dtype, da));
           if (node.needs(0)) results[0] = empty(g[0].count, promoted(g[0].dtype, db));
           if (by_rows && node.needs(1)) results[1] = empty(nb, results[1].dtype);
           return results;
         });
  return y;
}

Tensor Torch::scale(const Tensor& x) {
  Tensor y = empty_like(x);
  record({x}, {&y}, {}, [this](const Node&, const Tensors&, Tensors& g) -> Tensors { return {empty_like(g[0])}; });
  return y;
}

Tensor Torch::add_number(const Tensor& x) {
  Tensor y = empty_like(x);
  record({x}, {&y}, {}, [](const Node&, const Tensors&, Tensors& g) -> Tensors { return {g[0]}; });
  return y;
}

Tensor Torch::neg(const Tensor& x) { return scale(x); }

Tensor Torch::square(const Tensor& x) {
  before({x}, {x});
  Tensor y = empty_like(x);
  record({x}, {&y}, {x}, [this](const Node&, const Tensors& saved, Tensors& g) -> Tensors {
    const Tensor power = empty_like(saved[0]), doubled = empty_like(saved[0]);  // self.pow(1), its double
    return {empty_like(g[0])};
  });
  return y;
}

Tensor Torch::rsqrt(const Tensor& x) {
  Tensor y = empty_like(x);
  record({x}, {&y}, {y}, [this](const Node&, const Tensors& saved, Tensors& g) -> Tensors {
    const Tensor cube = empty_like(saved[0]), halved = empty_like(g[0]);
    return {empty_like(g[0])};
  });
  return y;
}

Tensor Torch::mean(const Tensor& x, int64_t rows) {
  Tensor y = empty(rows, x.dtype);
  record({x}, {&y}, {},
         [this, count = x.count](const Node&, const Tensors&, Tensors& g) -> Tensors { return {empty(count, g[0].dtype)}; });
  return y;
}

Tensor Torch::keeps_input(const Tensor& x) {
  before({x}, {x});
  Tensor y = empty_like(x);
  record({x}, {&y}, {x}, [this](const Node&, const Tensors&, Tensors& g) -> Tensors { return {empty_like(g[0])}; });
  return y;
}

Tensor Torch::keeps_output(const Tensor& x) {
  Tensor y = empty_like(x);
  record({x}, {&y}, {y}, [this](const Node&, const Tensors&, Tensors& g) -> Tensors { return {empty_like(g[0])}; });
  return y;
}

Tensor Torch::dropout(const Tensor& x, double probability) {
  if (probability <= 0 || !training) return x;
  const Tensor mask = empty(x.count, DType::u8);
  Tensor y = empty_like(x);
  record({x}, {&y}, {mask}, [this](const Node&, const Tensors&, Tensors& g) -> Tensors { return {empty_like(g[0])}; });
  return y;
}

Tensor Torch::cat(const Tensors& parts) {
  int64_t count = 0;
  std::vector<int64_t> counts;
  for (const Tensor& part : parts) {
    count += part.count;
    counts.push_back(part.count);
  }
  Tensor y = empty(count, parts[0].dtype);
  record(parts, {&y}, {}, [counts](const Node& node, const Tensors&, Tensors& g) -> Tensors {
    Tensors results(counts.size());
    for (size_t i = 0; i < counts.size(); ++i) {
      if (!node.needs(i)) continue;
      results[i] = g[0];  // a view
      results[i].count = counts[i];
      results[i].is_view = true;
    }
    return results;
  });
  return y;
}

// --- others ---

Tensor Torch::embedding(const Tensor& weight, int64_t tokens, int64_t width) {
  Tensor y = empty(tokens * width, weight.dtype);
  record({weight}, {&y}, {}, [this, count = weight.count](const Node&, const Tensors&, Tensors& g) -> Tensors {
    return {empty(count, g[0].dtype)};
  });
  return y;
}

// native_layer_norm keeps mean and deviation of each row in fp32.
Tensor Torch::layer_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t rows) {
  const Tensor b = autocast_float(bias), w = autocast_float(weight), x = autocast_float(input);
  return layer_norm_as_it_is(x, w, b, rows);
}

Tensor Torch::layer_norm_as_it_is(const Tensor& x, const Tensor& w, const Tensor& b, int64_t rows) {
  Tensor y = empty_like(x);
  const Tensor mean = empty(rows, DType::f32), deviation = empty(rows, DType::f32);
  record({x, w, b}, {&y}, {x, mean, deviation, w, b}, [this](const Node& node, const Tensors& saved, Tensors&) -> Tensors {
    Tensors results(3);
    if (node.needs(0)) results[0] = empty_like(saved[0]);
    if (node.needs(1)) results[1] = empty_like(saved[3]);
    if (node.needs(2)) results[2] = empty_like(saved[4]);
    return results;
  });
  return y;
}

// softmax(x, dtype=float32): fp16 is widened by the kernel itself, bf16 before it (ATen/native/SoftMax.cpp).
Tensor Torch::softmax(const Tensor& input, DType dtype) {
  const Tensor x = input.dtype == DType::f16 ? input : to(input, dtype);
  Tensor y = empty(x.count, dtype);
  record({x}, {&y}, {y}, [this, from = x.dtype](const Node&, const Tensors&, Tensors& g) -> Tensors {
    Tensor result = empty(g[0].count, from);
    const Tensor product = empty_like(g[0]);  // gradient times output
    return {result};
  });
  return y;
}

}  // namespace snug::eager
