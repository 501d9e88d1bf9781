#pragma once
// torch.distributed.fsdp.fully_shard (FSDP 2) as accelerate wraps a model in it: each rank keeps its rows of every
// parameter, of the gradients and of the optimizer's states; a unit (a block, the embedding, the head with the last norm) is
// gathered for the time of its forward and backward. The states, streams and what is held for whom are those of
// torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py. Gathering and reducing themselves hold nothing here: NCCL's
// buffers are outside PyTorch's allocator.

#include <vector>

#include "eager/optimizer.h"
#include "eager/setup.h"

namespace snug::eager {

// A parameter as its module sees it, and its first dimension, which is what ranks share.
struct UnitParameter {
  Tensor* tensor = nullptr;
  int64_t rows = 0;
};
using UnitParameters = std::vector<UnitParameter>;

class FullySharded {
 public:
  // Nothing is on the device yet. `setup`: as the user gave it, with autocast, which becomes the units' own dtype here.
  FullySharded(Torch& torch, const Setup& setup) : t_(torch), setup_(setup) {}

  // Puts this rank's share of each unit on the device. The last unit is the head's, which stays gathered after forward;
  // with `tied` embeddings it has the embedding too, else that is the first.
  void wrap(const std::vector<UnitParameters>& units, const std::vector<Trained>& trained, bool tied);

  // This rank's rows of what is trained, for the optimizer.
  std::vector<Trained> shards();

  // Around the modules of unit `number`: gives the input, or output, that takes its place.
  Tensor before_forward(size_t number, const Tensor& input);
  Tensor after_forward(size_t number, const Tensor& output);
  void end_forward();
  // `reduces`: gradients go to the ranks that keep them; else they stay whole for a further micro-batch.
  void begin_backward(bool reduces) { reduces_ = reduces; }
  void end_backward();
  void forget_gradients();

  size_t head() const { return units_.size() - 1; }
  bool is_tied() const { return tied_; }

 private:
  enum class State : uint8_t { idle, forward, before_backward, after_backward };
  struct Parameter {
    Tensor* whole = nullptr;  // of the module: it has memory while its unit is gathered
    Tensor shard, gradient;   // of this rank
    int64_t padded = 0;       // elements of a share, the same on every rank
    Trained trained;          // of the whole; none where it is frozen
    bool casts = false;       // shares are cast before they are gathered
  };
  struct Unit {
    std::vector<Parameter> parameters;
    State state = State::idle;
    bool gathered = false, reshards = true;
    Tensor gathering;                // what ranks sent, not yet laid out as parameters
    std::vector<size_t> in_forward;  // its places in the order of forward
  };

  Unit make_unit(const UnitParameters& parameters, const std::vector<Trained>& trained, Tensors& moved);
  void gather(Unit& unit);
  void lay_out(Unit& unit);
  void reshard(Unit& unit);
  void before_backward(Unit& unit);
  void after_backward(Unit& unit);

  Torch& t_;
  const Setup& setup_;
  std::vector<Unit> units_;
  std::vector<size_t> order_;  // of units in forward
  Tensors loaded_;             // fsdp2_prepare_model, original_sd: a model that was on the device, until all is shared out
  Tensor held_, reduced_;      // kept while the next is gathered, reduced
  bool reduces_ = true, tied_ = false;
};

}  // namespace snug::eager
