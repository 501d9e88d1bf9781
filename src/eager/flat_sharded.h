#pragma once
// torch.distributed.fsdp.FullyShardedDataParallel (FSDP 1) as accelerate wraps a model in it: the parameters of a unit (a
// block; an adapter's linear; the root with all else) lie in one flat parameter, of which each rank keeps an equal part. It
// is gathered for the unit's forward and backward, its gradient comes in one piece and is cut like it. Order, states,
// streams and what is gathered ahead are those of torch/distributed/fsdp/_runtime_utils.py and _flat_param.py.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "eager/optimizer.h"
#include "eager/setup.h"

namespace snug::eager {

// What one wrapped module has of its own; `key` names the module. `moves_first`: how many of the last parameters lie
// directly in it, and so come to the device first.
struct FlatUnit {
  const void* key = nullptr;
  std::vector<Tensor*> parameters;
  size_t moves_first = 0;
  std::vector<const Tensor*> buffers = {};
  bool is_inner = false;  // of an adapter: the unit after it, or a later one, is around it
};

class FlatSharded {
 public:
  // `setup`: as the user gave it.
  FlatSharded(Torch& torch, const Setup& setup) : t_(torch), setup_(setup) {}

  // Units in the order in which they are wrapped: those within others first, the root's last. What is on the device already
  // (a quantized model) is cut there.
  void wrap(const std::vector<FlatUnit>& units, const std::vector<Trained>& trained);

  // This rank's parts for the optimizer: of each parameter, or of each flat parameter.
  std::vector<Trained> shards();

  bool has(const void* key) const { return numbers_.count(key) > 0; }
  // Around the module of that key: gives the input, or output, that takes its place.
  Tensor before_forward(const void* key, const Tensor& input) { return before_forward(units_[numbers_.at(key)], input); }
  Tensor after_forward(const void* key, const Tensor& output) { return after_forward(units_[numbers_.at(key)], output); }
  void begin_forward();
  Tensor end_forward(const Tensor& loss) { return after_forward(units_.back(), loss); }

  // `reduces`: gradients go to the ranks that keep them; else they stay whole for a further micro-batch (no_sync).
  void begin_backward(bool reduces) { reduces_ = reduces; }
  void end_backward();
  void forget_gradients();

 private:
  enum class State : uint8_t { idle, forward, backward_pre, backward_post };
  struct Parameter {
    Tensor* module = nullptr;  // what its module has: a view of the flat parameter while that is gathered
    int64_t count = 0, offset = 0;
    Tensor own;       // this rank's piece of it
    Trained trained;  // none where it is frozen
  };
  struct Unit {
    std::vector<Parameter> parameters;
    Tensor flat;   // of all ranks; a leaf, where it is trained
    Tensor shard;  // this rank's
    Tensor gradient;
    Tensor before_widening;  // what the parameters' pieces are views of until they are views of `shard`
    Tensors views;           // of the forward pass
    int64_t count = 0, share = 0;
    DType narrow = DType::bf16;  // that it is gathered in
    State state = State::idle;
    bool trained = false, is_root = false, is_inner = false, gathered = false;
    bool prefetched = false, needs_gathering = false, ran_before_backward = false, hooked = false, shows_gradients = false;
    std::optional<size_t> place;  // in the order of forward
  };

  Unit make_unit(const FlatUnit& from, const std::vector<Trained>& trained);
  void cut(Unit& unit, Tensors& whole);
  std::vector<Unit*> outer_first();
  void widen();
  void start();
  void show_shard(Unit& unit);
  Tensor before_forward(Unit& unit, const Tensor& input);
  Tensor after_forward(Unit& unit, const Tensor& output);
  void gather(Unit& unit);
  void view_parameters(Unit& unit);
  void reshard(Unit& unit, bool frees);
  bool frees_in_backward() const { return reduces_ || setup_.ranks.reshards_after_forward; }
  void before_backward(Unit& unit);
  void gather_ahead(const Unit& unit);
  void after_backward(Unit& unit);
  void show_whole_gradients(Unit& unit);
  void reduce(Unit& unit);

  Torch& t_;
  const Setup& setup_;
  std::vector<Unit> units_;
  std::map<const void*, size_t> numbers_;
  std::vector<size_t> order_;  // of units in forward
  // Hooks of the tensor that a unit gave last: the unit that takes it may have one there too, which runs after.
  std::weak_ptr<Node> output_node_;
  std::shared_ptr<std::vector<std::function<void()>>> output_hooks_;
  std::vector<NodeRef> inputs_;  // of checkpoints: a hook on a leaf holds what gathers its gradient until backward ends
  bool reduces_ = true, started_ = false, forgotten_ = false;
};

}  // namespace snug::eager
