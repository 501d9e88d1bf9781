#pragma once
// PyTorch's autograd on sizes alone: tensors that hold storage, nodes that keep what backward will need, the engine's order
// (torch/csrc/autograd/engine.cpp, input_buffer.cpp, functions/accumulate_grad.h) and both kinds of checkpoint
// (torch/utils/checkpoint.py). When a tensor is freed follows from references, as it does there; so modules can be written
// down as their libraries have them. No values, no strides.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/dtype.h"
#include "eager/device.h"

namespace snug::eager {

struct Node;
using NodeRef = std::shared_ptr<Node>;

struct Tensor {
  Storage storage;
  int64_t count = 0;  // elements
  DType dtype = DType::f32;
  bool requires_grad = false;
  NodeRef node;          // what made it; a leaf's own node gathers its gradient
  int32_t output = 0;    // which of the node's outputs it is
  bool is_view = false;  // of a gradient: its memory has another owner too, so nothing is added to it in place

  bool defined() const { return count > 0; }
  int64_t bytes() const { return bytes_of(dtype, count); }
  // The same memory without its history.
  Tensor detached() const { return {storage, count, dtype, false, nullptr, 0}; }
};
using Tensors = std::vector<Tensor>;

// A list that is looked at while a call lasts, and nowhere kept (c10/util/ArrayRef.h).
template <class T>
class ArrayRef {
 public:
  ArrayRef(std::initializer_list<T> list) : items_(list.begin(), list.size()) {}
  ArrayRef(const std::vector<T>& list) : items_(list) {}
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  size_t size() const { return items_.size(); }
  const T& operator[](size_t i) const { return items_[i]; }

 private:
  std::span<const T> items_;
};

// What a non-reentrant checkpoint forgot, and how to get it again.
struct CheckpointFrame {
  std::function<void()> recompute;
  Tensors recomputed;
  size_t saved = 0;    // tensors that forward packed
  bool ready = false;  // recomputed
};

// A tensor kept for backward, or its number in a frame.
class Saved {
 public:
  explicit Saved(Tensor tensor) : tensor_(std::move(tensor)) {}
  Saved(std::shared_ptr<CheckpointFrame> frame, size_t index) : frame_(std::move(frame)), index_(index) {}
  Saved(Saved&&) = default;
  Saved& operator=(Saved&&) = default;
  Saved(const Saved&) = delete;
  Saved& operator=(const Saved&) = delete;
  ~Saved() {
    if (frame_ && index_ < frame_->recomputed.size()) frame_->recomputed[index_] = {};
  }

 private:
  friend class Autograd;
  Tensor tensor_;
  std::shared_ptr<CheckpointFrame> frame_;
  size_t index_ = 0;
};

// `saved`: as it was given to `record`; `gradients`: of the outputs; returns those of the inputs, undefined where not
// needed.
using Backward = std::function<Tensors(const Node& node, const Tensors& saved, Tensors& gradients)>;

struct Edge {
  NodeRef node;
  int32_t input = 0;
  int64_t count = 0;         // the gradient is summed to so many elements
  DType dtype = DType::f32;  // and cast to this (engine.cpp, validate_outputs)
};

struct Node {
  uint64_t sequence = 0;
  std::vector<Edge> next;  // one for each input of forward; empty where no gradient is needed
  std::vector<Saved> saved;
  Backward backward;
  size_t outputs = 1;
  int64_t stream = 0;  // on which it was made, and where the sums of its outputs' gradients are
  bool is_leaf = false;
  Storage variable;  // a leaf's own memory: its node holds it while the graph lives
  Tensor gradient;   // of a leaf
  Role gradient_role = Role::gradients;
  std::function<void(Node& leaf)> after_accumulate;  // register_post_accumulate_grad_hook

  bool needs(size_t input) const { return next[input].node != nullptr; }
};

class Autograd {
 public:
  explicit Autograd(Device& device) : device_(device) {}
  Device& device() { return device_; }

  bool grad_enabled = true;
  int64_t multiprocessors = 108;  // of the card: reductions are spread over them

  // The sum over all leading dimensions, to `outputs` elements.
  Tensor sum_rows(const Tensor& tensor, int64_t outputs);

  Tensor empty(int64_t count, DType dtype, Role role = Role::temporaries, int64_t stream = 0);
  Tensor empty_like(const Tensor& tensor) { return empty(tensor.count, tensor.dtype); }

  // Makes a leaf of `tensor`: one whose gradient is gathered.
  static void require_grad(Tensor& tensor);

  // Makes `outputs` the results of a new node, if gradients are on and one of `inputs` needs one.
  void record(ArrayRef<Tensor> inputs, ArrayRef<Tensor*> outputs, Tensors saved, Backward backward);

  // Called before an operation allocates: what it keeps of its inputs is kept first, and a recomputation ends as soon as all
  // is there (torch/utils/checkpoint.py, _StopRecomputationError).
  void before(ArrayRef<Tensor> inputs, ArrayRef<Tensor> saved);

  // tensor.backward(gradient)
  void backward(const Tensor& tensor, Tensor gradient);

  // torch.utils.checkpoint of `function`: of its one tensor that needs gradients, which gives one.
  Tensor checkpoint_reentrant(const Tensor& input, const std::function<Tensor(const Tensor&)>& function);
  Tensor checkpoint_non_reentrant(const Tensor& input, const std::function<Tensor(const Tensor&)>& function);

  // A view of `tensor` whose backward calls `hook` before it passes the gradient on: a hook of a tensor or module.
  Tensor hooked(const Tensor& tensor, const std::function<void()>& hook);

  // Whether this is autograd's own thread: it has cuBLAS handles of its own.
  bool in_backward() const { return depth_ > 0; }

  // Called around a recomputation, which enters autocast anew.
  std::function<void(bool entering)> on_recompute;

 private:
  enum class Packing : uint8_t { forward, recompute };
  struct Hook {
    std::shared_ptr<CheckpointFrame> frame;
    Packing packing;
  };
  struct StopRecomputation {};

  Saved save(const Tensor& tensor);
  Tensors unpack(Node& node);
  void run_recompute(const std::shared_ptr<CheckpointFrame>& frame);
  Tensor validated(Tensor gradient, const Edge& edge);
  void accumulate(Tensor& into, Tensor gradient, int64_t stream);
  void gather(Node& leaf, Tensor gradient);
  void run(const NodeRef& root, int32_t input, Tensor gradient);

  Device& device_;
  uint64_t next_sequence_ = 0;
  int depth_ = 0;
  std::vector<Hook> hooks_;
};

}  // namespace snug::eager
