// Mixtures of experts since transformers 5: a block's experts lie in one tensor each for gate and up and for down, and all
// tokens go through one grouped product (integrations/moe.py, grouped_mm_experts_forward), whose sizes do not depend on
// where the router sends them. S: pairs of tokens and chosen experts.

#include <algorithm>
#include <utility>

#include "eager/decoder.h"

namespace snug::eager {

namespace {

// IndexBackward: zeros, to which rows are added in the order of sorted indices (ATen/native/cuda/Indexing.cu,
// index_put_with_sort_kernel).
Tensor gathered(Torch& torch, const Tensor& x, const Tensor& indices, int64_t count) {
  torch.before({x}, {indices});
  Tensor y = torch.empty(count, x.dtype);
  torch.record({x}, {&y}, {indices},
               [&torch, whole = x.count, dtype = x.dtype](const Node&, const Tensors& saved, Tensors&) -> Tensors {
                 Tensor gradient = torch.empty(whole, dtype);
                 Tensor wrapped = torch.empty_like(saved[0]);
                 const Tensor linear = torch.empty_like(saved[0]);
                 wrapped = {};
                 const Tensor sorted = torch.empty_like(saved[0]), places = torch.empty_like(saved[0]),
                              scratch = torch.empty_like(saved[0]);
                 { const Tensor temporary = torch.empty(1, DType::u8); }
                 return {gradient};
               });
  return y;
}

// TopkBackward: zeros, into which the gradient is scattered.
Tensor chosen_of(Torch& torch, const Tensor& x, int64_t count, Tensor& indices) {
  Tensor values = torch.empty(count, x.dtype);
  indices = torch.empty(count, DType::i64);
  torch.record({x}, {&values}, {indices}, [&torch, whole = x.count](const Node&, const Tensors&, Tensors& g) -> Tensors {
    return {torch.empty(whole, g[0].dtype)};
  });
  return values;
}

// values /= values.sum(dim=-1, keepdim=True): in place, so what backward needs of the values is a copy.
Tensor normalized_rows(Torch& torch, const Tensor& values, int64_t rows) {
  Tensor sum = torch.empty(rows, values.dtype);
  torch.record({values}, {&sum}, {}, [count = values.count](const Node&, const Tensors&, Tensors& g) -> Tensors {
    Tensor spread = g[0];
    spread.count = count;
    spread.is_view = true;
    return {spread};
  });
  const Tensor kept = torch.grad_enabled && values.requires_grad ? torch.empty_like(values) : Tensor{};
  Tensor shares = values.detached();
  torch.record({values, sum}, {&shares}, {sum, kept}, [&torch, rows](const Node&, const Tensors&, Tensors& g) -> Tensors {
    Tensor of_sum;
    {
      const Tensor negated = torch.empty_like(g[0]), once = torch.empty_like(g[0]), twice = torch.empty_like(g[0]);
      of_sum = torch.empty_like(g[0]);
    }
    const Tensor of_values = torch.empty_like(g[0]);
    of_sum = torch.empty(rows, g[0].dtype);
    return {of_values, of_sum};
  });
  return shares;
}

}  // namespace

// MixtralTopKRouter, Qwen3MoeTopKRouter, OlmoeTopKRouter, GraniteMoeTopKRouter
Decoder::Routing Decoder::routed(const Tensor& x, Block& b) {
  const int64_t rows = B_ * T_, count = rows * spec_.experts.per_token;
  Routing routing;
  const Tensor delta = b.router_adapter.rank > 0 ? router_delta(b) : Tensor{};
  const Tensor router = delta.defined() ? t_.add(b.router, delta) : b.router;
  routing.logits = t_.linear(x, router, {}, C_, spec_.experts.count);
  if (spec_.naming == TensorNaming::granite_moe) {
    routing.logits = t_.to(routing.logits, DType::f32);
    const Tensor best = chosen_of(t_, routing.logits, count, routing.chosen);
    routing.weights = t_.to(t_.softmax(best, DType::f32), x.dtype);
    return routing;
  }
  const Tensor shares = t_.softmax(routing.logits, DType::f32);
  Tensor best = chosen_of(t_, shares, count, routing.chosen);
  if (spec_.experts.normalize) best = normalized_rows(t_, best, rows);
  routing.weights = spec_.naming == TensorNaming::mixtral ? best : t_.to(best, routing.logits.dtype);
  return routing;
}

// torch.nn.functional.grouped_mm: of rows in groups, each with a matrix of `weight`.
Tensor Decoder::grouped(const Tensor& input, const Tensor& weight, const Tensor& offsets, int64_t count) {
  const Tensor none, x = t_.to(input, weight.dtype);
  const Tensors kept{weight.requires_grad ? x : none, x.requires_grad ? weight : none, offsets};
  t_.before({x, weight}, kept);
  Tensor y = t_.empty(count, weight.dtype);
  t_.record({x, weight}, {&y}, kept,
            [this, rows = x.count, all = weight.count](const Node& node, const Tensors&, Tensors& g) -> Tensors {
              Tensors results(2);
              if (node.needs(1)) results[1] = t_.empty(all, g[0].dtype);
              if (node.needs(0)) results[0] = t_.empty(rows, g[0].dtype);
              return results;
            });
  return y;
}

Tensor Decoder::experts(const Tensor& x, Block& b) {
  const Routing routing = routed(x, b);
  const int64_t pairs = routing.chosen.count, F = spec_.experts.intermediate_size;
  // peft's wrappers, the one of down around the other; what they fold is kept until the outer one is done
  const Factors of_down = factors(b.down_adapter, b.down_experts.dtype);
  try_fold(b.down_experts, of_down);
  Tensor down, gate_up;
  const Factors of_gate_up = factors(b.gate_up_adapter, b.gate_up_experts.dtype);
  try_fold(b.gate_up_experts, of_gate_up);
  const Tensor sorted = t_.empty(pairs, DType::i64), order = t_.empty(pairs, DType::i64);
  { const Tensor keys = t_.empty(pairs, DType::i64); }  // of the sort
  Tensor tokens = t_.empty(pairs, DType::i64);          // perm // num_top_k
  const Tensor rows = gathered(t_, x, tokens, pairs * C_);
  tokens = {};
  const Tensor shares = gathered(t_, routing.weights, order, pairs);
  const Tensor numbers = t_.empty(pairs, DType::i32), counts = t_.empty(spec_.experts.count, DType::i32);
  const Tensor offsets = t_.empty(spec_.experts.count, DType::i32);
  gate_up = folded(b.gate_up_experts, of_gate_up);
  Tensor output = grouped(rows, gate_up, offsets, pairs * 2 * F);
  {
    const Tensors parts = t_.split(output, {pairs * F, pairs * F});
    const Tensor gate = t_.keeps_input(parts[0]);
    output = t_.mul(gate, parts[1]);
  }
  down = folded(b.down_experts, of_down);
  output = grouped(output, down, offsets, pairs * C_);
  Tensor weighed = t_.mul(output, shares, true);
  const Tensor inverse = t_.empty(pairs, DType::i64);
  { const Tensor places = t_.empty(pairs, DType::i64); }
  weighed = gathered(t_, weighed, inverse, pairs * C_);
  const Tensor sum = summed(weighed);
  return t_.to(sum, x.dtype);
}

// Over a token's experts, which autocast does in fp32; backward spreads the gradient over them in new memory.
Tensor Decoder::summed(const Tensor& weighed) {
  Tensor sum = t_.empty(B_ * T_ * C_, t_.autocasts() ? DType::f32 : weighed.dtype);
  t_.record({weighed}, {&sum}, {},
            [this, count = weighed.count, dtype = weighed.dtype](const Node&, const Tensors&, Tensors&) -> Tensors {
              return {t_.empty(count, dtype)};
            });
  return sum;
}

// --- peft's adapters of experts (tuners/lora/layer.py, ParamWrapper) ---

// What transformers 4's names of linears stand for (utils/transformers_weight_conversion.py): of experts, whose gate and up
// share an adapter of twice the rank, and of the router.
void Decoder::adapt_experts() {
  const auto targeted = [&](std::initializer_list<const char*> names) {
    if (setup_.targets == std::vector<std::string>{"all-linear"}) return true;
    return std::any_of(names.begin(), names.end(), [&](const char* name) {
      return std::find(setup_.targets.begin(), setup_.targets.end(), name) != setup_.targets.end();
    });
  };
  if (spec_.experts.count == 0 || spec_.naming == TensorNaming::granite_moe) return;
  const bool mixtral = spec_.naming == TensorNaming::mixtral;
  for (Block& b : blocks_) {
    if (targeted({"gate"})) b.router_adapter.rank = setup_.rank;
    if (mixtral ? targeted({"w1", "w3"}) : targeted({"gate_proj", "up_proj"})) b.gate_up_adapter.rank = 2 * setup_.rank;
    if (mixtral ? targeted({"w2"}) : targeted({"down_proj"})) b.down_adapter.rank = setup_.rank;
    each_expert_adapter(b, [&](Adapter& adapter, int64_t in, int64_t out) {
      adapter.a = placed(in * adapter.rank, setup_.weights, Role::adapters);
      adapter.b = placed(out * adapter.rank, setup_.weights, Role::adapters);
    });
  }
}

// `in`, `out`: of one row of the rank, over all experts.
void Decoder::each_expert_adapter(Block& b, const std::function<void(Adapter&, int64_t, int64_t)>& visit) {
  const int64_t E = spec_.experts.count, F = spec_.experts.intermediate_size;
  const bool router_last = spec_.family == "qwen3_moe";
  const auto router = [&] {
    if (b.router_adapter.rank > 0) visit(b.router_adapter, C_, E);
  };
  if (!router_last) router();
  if (b.gate_up_adapter.rank > 0) visit(b.gate_up_adapter, E * C_, E * 2 * F);
  if (b.down_adapter.rank > 0) visit(b.down_adapter, E * F, E * C_);
  if (router_last) router();
}

// B A, scaled, in the router's dtype; added once more than is needed, when the parametrization is registered.
Tensor Decoder::router_delta(Block& b) {
  const Adapter& adapter = b.router_adapter;
  Tensor product = t_.matmul(adapter.b, adapter.a, b.router.count);
  product = t_.scale(product);
  Tensor delta = t_.to(product, b.router.dtype);
  { const Tensor tried = t_.empty_like(b.router); }
  return delta;
}

// get_delta_factors: B as experts have it, A.
Decoder::Factors Decoder::factors(const Adapter& adapter, DType dtype) {
  if (adapter.rank == 0) return {};
  const Tensor left = t_.to(t_.transposed_view(adapter.b), dtype);
  return {left, t_.to(adapter.a, dtype)};
}

// torch.baddbmm(weight, left, right), which copies a left side that does not lie expert by expert.
Tensor Decoder::folded(const Tensor& weight, const Factors& factors) {
  if (!factors.left.defined()) return weight;
  Tensor y = t_.empty_like(weight);
  {
    const Tensor copy = t_.empty_like(factors.left);
    t_.need_cublas();
  }
  t_.record({weight, factors.left, factors.right}, {&y}, {factors.left, factors.right},
            [this](const Node&, const Tensors& saved, Tensors&) -> Tensors {
              Tensors results(3);
              results[1] = t_.empty_like(saved[0]);
              t_.need_cublas();
              results[2] = t_.empty_like(saved[1]);
              const Tensor copy = t_.empty_like(saved[0]);
              t_.need_cublas();
              return results;
            });
  return y;
}

// register_parametrization does it once to see that it works.
void Decoder::try_fold(const Tensor& weight, const Factors& factors) {
  const bool grads = std::exchange(t_.grad_enabled, false);
  if (factors.left.defined()) folded(weight, factors);
  t_.grad_enabled = grads;
}

}  // namespace snug::eager
