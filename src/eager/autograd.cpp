#include "eager/autograd.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace snug::eager {

Tensor Autograd::empty(int64_t count, DType dtype, Role role, int64_t stream) {
  return {device_.allocate(bytes_of(dtype, count), role, stream), count, dtype, false, nullptr, 0};
}

Tensor Autograd::hooked(const Tensor& tensor, const std::function<void()>& hook) {
  if (!grad_enabled || !tensor.requires_grad) return tensor;
  Tensor view = tensor.detached();
  record({tensor}, {&view}, {}, [hook](const Node&, const Tensors&, Tensors& g) -> Tensors {
    hook();
    return {std::move(g[0])};
  });
  return view;
}

void Autograd::require_grad(Tensor& tensor) {
  tensor.requires_grad = true;
  tensor.node = std::make_shared<Node>();
  tensor.node->sequence = std::numeric_limits<uint64_t>::max();
  tensor.node->is_leaf = true;
  tensor.node->variable = tensor.storage;
}

Saved Autograd::save(const Tensor& tensor) {
  if (tensor.storage && tensor.storage.role() == Role::temporaries) tensor.storage.set_role(Role::activations);
  if (hooks_.empty() || !tensor.defined()) return Saved(tensor.detached());
  const Hook& hook = hooks_.back();
  CheckpointFrame& frame = *hook.frame;
  if (hook.packing == Packing::forward) return Saved(hook.frame, frame.saved++);
  frame.recomputed.push_back(tensor.detached());
  if (frame.recomputed.size() >= frame.saved) throw StopRecomputation{};
  return Saved(tensor.detached());
}

void Autograd::record(ArrayRef<Tensor> inputs, ArrayRef<Tensor*> outputs, Tensors saved, Backward backward) {
  if (!grad_enabled) return;
  bool needed = false;
  for (const Tensor& input : inputs) needed = needed || input.requires_grad;
  if (!needed) return;
  auto node = std::make_shared<Node>();
  node->sequence = next_sequence_++;
  node->outputs = outputs.size();
  node->backward = std::move(backward);
  node->next.reserve(inputs.size());
  for (const Tensor& input : inputs)
    node->next.push_back(input.requires_grad ? Edge{input.node, input.output, input.count, input.dtype} : Edge{});
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i]->requires_grad = true;
    outputs[i]->node = node;
    outputs[i]->output = static_cast<int32_t>(i);
  }
  node->saved.reserve(saved.size());
  // One by one: the order in which memory goes back is part of what the allocator does.
  for (Tensor& tensor : saved) node->saved.push_back(save(std::exchange(tensor, {})));
}

void Autograd::before(ArrayRef<Tensor> inputs, ArrayRef<Tensor> saved) {
  if (hooks_.empty() || hooks_.back().packing != Packing::recompute || !grad_enabled) return;
  bool needed = false;
  for (const Tensor& input : inputs) needed = needed || input.requires_grad;
  if (!needed) return;
  CheckpointFrame& frame = *hooks_.back().frame;
  size_t count = 0;
  for (const Tensor& tensor : saved) count += tensor.defined() ? 1 : 0;
  if (frame.recomputed.size() + count < frame.saved) return;
  for (const Tensor& tensor : saved)
    if (tensor.defined()) frame.recomputed.push_back(tensor.detached());
  throw StopRecomputation{};
}

// --- what was saved ---

Tensors Autograd::unpack(Node& node) {
  Tensors tensors;
  tensors.reserve(node.saved.size());
  for (Saved& saved : node.saved) {
    if (!saved.frame_) {
      tensors.push_back(saved.tensor_);
      continue;
    }
    if (!saved.frame_->ready) run_recompute(saved.frame_);
    tensors.push_back(saved.frame_->recomputed.at(saved.index_));
  }
  return tensors;
}

void Autograd::run_recompute(const std::shared_ptr<CheckpointFrame>& frame) {
  frame->ready = true;
  frame->recomputed.reserve(frame->saved);
  hooks_.push_back({frame, Packing::recompute});
  const bool grads = std::exchange(grad_enabled, true);
  if (on_recompute) on_recompute(true);
  try {
    frame->recompute();
  } catch (const StopRecomputation&) {  // all is there that forward saved
  }
  if (on_recompute) on_recompute(false);
  grad_enabled = grads;
  hooks_.pop_back();
}

// --- the engine ---

namespace {

int64_t last_power_of_two(int64_t n) {
  int64_t power = 1;
  while (power * 2 <= n) power *= 2;
  return power;
}

}  // namespace

// ATen/native/cuda/Reduce.cuh, setReduceConfig and global_memory_size: where a column is long, several blocks share it and
// leave their parts in a buffer.
Tensor Autograd::sum_rows(const Tensor& tensor, int64_t outputs) {
  Tensor sum = empty(outputs, tensor.dtype);
  const int64_t rows = tensor.count / outputs, vector = outputs % 4 == 0 ? 4 : 1, threads = 512 / vector;
  const int64_t across = std::min(last_power_of_two(std::max<int64_t>(outputs / vector, 1)), threads);
  const int64_t down = std::min(std::min(last_power_of_two(rows), threads), threads / std::min<int64_t>(across, 32));
  const int64_t width = std::min(across, threads / down);
  const bool splits = rows >= down * 16 || rows >= 256;
  const int64_t of_a_thread = (rows + down - 1) / down, grid = (outputs / vector + width - 1) / width;
  const int64_t target = multiprocessors * (2048 / (width * down));
  if (!splits || of_a_thread < 256 || grid > target) return sum;
  const int64_t wanted = std::min((target + grid - 1) / grid, (of_a_thread + 15) / 16);
  const int64_t blocks = std::max(wanted, (of_a_thread + 255) / 256);
  const Tensor parts = empty(outputs * blocks * width * vector, DType::f32);
  return sum;
}

Tensor Autograd::validated(Tensor gradient, const Edge& edge) {
  if (!edge.node || !gradient.defined()) return gradient;
  if (gradient.count != edge.count) gradient = sum_rows(gradient, edge.count);
  if (gradient.dtype != edge.dtype) gradient = empty(edge.count, edge.dtype);
  return gradient;
}

// input_buffer.cpp: in place where the sum so far belongs to the buffer alone.
void Autograd::accumulate(Tensor& into, Tensor gradient, int64_t stream) {
  if (!gradient.defined()) return;
  if (!into.defined()) {
    into = std::move(gradient);
    return;
  }
  if (into.is_view || !into.storage.is_unique()) into = empty(into.count, into.dtype, Role::temporaries, stream);
}

// accumulate_grad.h: the first gradient is taken over if nobody else has it, else copied; later ones are added in place.
void Autograd::gather(Node& leaf, Tensor gradient) {
  if (!gradient.defined()) return;
  if (!leaf.gradient.defined()) {
    leaf.gradient = gradient.storage.is_unique() ? std::move(gradient) : empty_like(gradient);
    leaf.gradient.is_view = false;
    leaf.gradient.storage.set_role(leaf.gradient_role);
  }
  gradient = {};
  if (leaf.after_accumulate) leaf.after_accumulate(leaf);
}

namespace {

struct Task {
  NodeRef node;
  Tensors gradients;
  bool operator<(const Task& other) const { return node->sequence < other.node->sequence; }
};

// What a node waits for before it runs: gradients that are yet to come, and the sums of those that came.
struct Awaited {
  int64_t yet = 0;
  Tensors gradients;
};

std::unordered_map<const Node*, Awaited> count_dependencies(const NodeRef& root) {
  std::unordered_map<const Node*, Awaited> awaited;
  std::vector<const Node*> queue{root.get()};
  while (!queue.empty()) {
    const Node* node = queue.back();
    queue.pop_back();
    for (const Edge& edge : node->next)
      if (edge.node && awaited[edge.node.get()].yet++ == 0) queue.push_back(edge.node.get());
  }
  return awaited;
}

}  // namespace

void Autograd::run(const NodeRef& root, int32_t input, Tensor gradient) {
  auto awaited = count_dependencies(root);
  std::vector<Task> ready;  // a heap
  const auto push = [&](Task task) {
    ready.push_back(std::move(task));
    std::push_heap(ready.begin(), ready.end());
  };
  Tensors first(root->outputs);
  first[static_cast<size_t>(input)] = std::move(gradient);
  push({root, std::move(first)});
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end());
    Task task = std::move(ready.back());
    ready.pop_back();
    Node& node = *task.node;
    if (node.is_leaf) {
      gather(node, std::move(task.gradients[0]));
      continue;
    }
    Tensors results = node.backward(node, unpack(node), task.gradients);
    for (size_t i = 0; i < results.size(); ++i) results[i] = validated(std::move(results[i]), node.next[i]);
    task.gradients.clear();
    node.saved.clear();
    for (size_t i = 0; i < node.next.size(); ++i) {
      const Edge& edge = node.next[i];
      if (!edge.node) continue;
      auto& [yet, gradients] = awaited.find(edge.node.get())->second;
      if (gradients.empty()) gradients.resize(edge.node->outputs);
      accumulate(gradients[static_cast<size_t>(edge.input)], std::move(results[i]), edge.node->stream);
      if (--yet == 0) push({edge.node, std::move(gradients)});
    }
  }
}

void Autograd::backward(const Tensor& tensor, Tensor gradient) {
  const bool grads = std::exchange(grad_enabled, false);
  ++depth_;
  run(tensor.node, tensor.output, std::move(gradient));
  --depth_;
  grad_enabled = grads;
}

// --- checkpoints ---

Tensor Autograd::checkpoint_reentrant(const Tensor& input, const std::function<Tensor(const Tensor&)>& function) {
  const bool grads = std::exchange(grad_enabled, false);
  Tensor output = function(input.detached()).detached();
  grad_enabled = grads;
  record({input}, {&output}, {input}, [this, function](const Node&, const Tensors& saved, Tensors& gradients) -> Tensors {
    Tensor detached = saved[0].detached();
    require_grad(detached);
    detached.node->gradient_role = Role::temporaries;
    grad_enabled = true;
    if (on_recompute) on_recompute(true);
    Tensor again = function(detached);
    if (on_recompute) on_recompute(false);
    grad_enabled = false;
    if (again.requires_grad) run(again.node, again.output, gradients[0]);
    return {detached.node->gradient};
  });
  return output;
}

Tensor Autograd::checkpoint_non_reentrant(const Tensor& input, const std::function<Tensor(const Tensor&)>& function) {
  if (!grad_enabled) return function(input);
  auto frame = std::make_shared<CheckpointFrame>();
  frame->recompute = [input, function] { function(input); };
  hooks_.push_back({frame, Packing::forward});
  Tensor output = function(input);
  hooks_.pop_back();
  return output;
}

}  // namespace snug::eager
