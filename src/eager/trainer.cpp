#include "eager/trainer.h"

#include <algorithm>

namespace snug::eager {

Trainer::Trainer(Torch& torch, Decoder& decoder, const Setup& setup, const Sharing& sharing)
    : t_(torch),
      decoder_(decoder),
      setup_(setup),
      partitioned_(sharing.partitioned),
      sharded_(sharing.sharded),
      flat_(sharing.flat) {}

// accelerate, Accelerator.prepare
void Trainer::wrap() {
  trained_ = decoder_.trained();
  if (setup_.ranks.sharding == Sharding::ddp)
    data_parallel_ = std::make_unique<DataParallel>(t_, setup_, decoder_.parameters(), trained_);
  if (sharded_ != nullptr) {
    sharded_->wrap(decoder_.units(), trained_, decoder_.is_tied());
    decoder_.share(sharded_);
    trained_ = sharded_->shards();
  }
  if (flat_ != nullptr) {
    flat_->wrap(decoder_.flat_units(), trained_);
    decoder_.share(flat_);
    trained_ = flat_->shards();
  }
  if (setup_.ranks.sharding == Sharding::zero1 || setup_.ranks.sharding == Sharding::zero2) {
    zero_ = std::make_unique<ZeroOptimizer>(t_, setup_);
    zero_->wrap(decoder_.parameters(), trained_);
    trained_ = zero_->partitions();
  }
  if (partitioned_ != nullptr) {
    partitioned_->wrap(decoder_.parameters(), trained_);
    decoder_.share(partitioned_);
    trained_ = partitioned_->partitions();
  }
  optimizer_ = std::make_unique<Optimizers>(t_, setup_, trained_, zero_ || partitioned_ != nullptr);
}

Trainer::Batch Trainer::next_batch() {
  const auto& lengths = setup_.lengths;
  const int64_t length = lengths.empty() ? setup_.seq_len : lengths[batches_++ % lengths.size()];
  return make_batch(setup_.batch, length);
}

Trainer::Batch Trainer::make_batch(int64_t rows, int64_t length) {
  const int64_t tokens = rows * length;
  const auto make = [&] { return t_.empty(tokens, DType::i64, Role::batch); };
  Batch batch;
  batch.length = length;
  batch.ids = make();
  batch.mask = make();
  batch.labels = make();
  return batch;
}

// trainer.py get_batch_samples: sum of labels that are not ignored
void Trainer::count_items(const Batch& batch) {
  Tensor differ = t_.empty(batch.labels.count, DType::u8);
  const Tensor sum = t_.empty(1, DType::i64);
  t_.empty(batch.labels.count, DType::i64);  // of the reduction
  differ = {};
  const Tensor total = t_.empty(1, DType::i64);
}

void Trainer::train(int64_t steps) {
  Device& device = t_.device();
  device.enter(Phase::between);
  wrap();
  total_loss_ = t_.empty(1, DType::f32);
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<Batch> batches;
    for (int64_t i = 0; i < setup_.accumulation; ++i) batches.push_back(next_batch());
    count_items(batches[0]);
    accumulate(batches, step == 0);
    batches.clear();
    if (!zero_ && partitioned_ == nullptr) update();  // whose engine clips and updates at the end of backward
    evaluate();
  }
}

void Trainer::update() {
  Device& device = t_.device();
  clip();
  device.enter(Phase::optimizer);
  optimizer_->step();
  device.enter(Phase::between);
  if (sharded_ != nullptr) return sharded_->forget_gradients();
  if (flat_ != nullptr) return flat_->forget_gradients();
  for (const Trained& parameter : trained_) parameter.tensor->node->gradient = {};
}

// Of many micro-steps only the first few are followed. One that allocates and frees the same large blocks in the same order
// as the one before, without a new segment, leaves the pool of large blocks as it found it, and so will the next; small
// blocks only take turns in segments that are there. The first step, whose peak is not the run's, ends after two.
void Trainer::accumulate(const std::vector<Batch>& batches, bool first_step) {
  constexpr size_t kFew = 4;  // are followed one by one
  Device& device = t_.device();
  std::vector<std::pair<uint64_t, int64_t>> followed;  // what each allocated and freed, and the bytes reserved after it
  const auto repeats = [&] {
    const size_t n = followed.size();
    return n >= 2 && (first_step || followed[n - 1] == followed[n - 2]);
  };
  for (size_t i = 0; i < batches.size(); ++i) {
    const bool last = i + 1 == batches.size();
    batch_ = batches[i];
    if (data_parallel_ && last) data_parallel_->before_forward();
    decoder_.set_length(batches[i].length);
    device.restart_digest();
    micro_step(last);
    followed.emplace_back(device.digest(), device.totals().reserved_bytes);
    if (batches.size() <= kFew || last || !setup_.lengths.empty() || device.listener || !repeats()) continue;
    if (setup_.ranks.sharding == Sharding::none) break;
    i = batches.size() - 2;  // whose gradients are summed over ranks
  }
  batch_ = batches.back();
}

void Trainer::micro_step(bool last) {
  Device& device = t_.device();
  device.enter(Phase::forward);
  if (setup_.autocast) t_.enter_autocast(*setup_.autocast);
  Tensor loss = decoder_.forward().loss;
  device.enter(Phase::backward);
  {
    const Tensor divided = t_.scale(loss);
    const Tensor one = t_.empty(1, DType::f32);
    if (sharded_ != nullptr) sharded_->begin_backward(last);
    if (flat_ != nullptr) flat_->begin_backward(last);
    if (zero_) zero_->begin_backward(last);
    t_.backward(divided, one);
    if (flat_ != nullptr) flat_->end_backward();
    if (sharded_ != nullptr) sharded_->end_backward();
  }
  if (partitioned_ != nullptr) partitioned_->end_backward();
  if (partitioned_ != nullptr && last) partitioned_->step(*optimizer_, [&] { device.enter(Phase::optimizer); });
  if (zero_) zero_->end_backward();
  if (zero_ && last) zero_->step(*optimizer_, [&] { device.enter(Phase::optimizer); });
  last_loss_ = loss.detached();
  loss = {};
  device.enter(Phase::between);
  { const Tensor is_nan = t_.empty(1, DType::u8); }
  { const Tensor magnitude = t_.empty(1, DType::f32), is_infinite = t_.empty(1, DType::u8); }
  total_loss_ = t_.add_number(total_loss_);
}

// torch/nn/utils/clip_grad.py
void Trainer::clip() {
  if (setup_.max_grad_norm <= 0) return;
  if (flat_ != nullptr) return clip_flat();
  const auto& parameters = trained_;
  int64_t most = 1, all = 0;  // chunks of one gradient, of all
  for (const Trained& p : parameters) {
    const int64_t chunks = (p.tensor->count + 65535) / 65536;
    most = std::max(most, chunks);
    all += chunks;
  }
  const int64_t columns = static_cast<int64_t>(parameters.size()) * most;
  Tensors norms;
  Tensor partial = t_.empty(t_.stack().norms_have_chunks_apart ? all : columns, DType::f32);
  for (const Trained& p : parameters) norms.push_back(t_.empty(1, p.tensor->dtype));
  partial = {};
  Tensor stacked = t_.empty(static_cast<int64_t>(parameters.size()), norms[0].dtype);
  const Tensor total = t_.empty(1, norms[0].dtype);
  stacked = {};
  Tensor shifted = t_.empty_like(total), inverse = t_.empty_like(total), scaled = t_.empty_like(total);
  inverse = {};
  shifted = {};
  const Tensor clamped = t_.empty_like(total);
  gradient_norm_ = total;
}

// FullyShardedDataParallel.clip_grad_norm_
void Trainer::clip_flat() {
  Tensors norms;
  for (size_t i = 0; i < trained_.size(); ++i) norms.push_back(t_.empty(1, DType::f32));
  const Tensor stacked = t_.empty(static_cast<int64_t>(trained_.size()), DType::f32);
  gradient_norm_ = t_.empty(1, DType::f32);
}

}  // namespace snug::eager
