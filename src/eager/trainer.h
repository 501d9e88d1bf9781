#pragma once
// transformers' Trainer around a decoder: batches, accumulation, clipping, the optimizer, in the order of trainer.py.

#include "eager/decoder.h"
#include "eager/optimizer.h"

namespace snug::eager {

class Trainer {
 public:
  Trainer(Torch& torch, Decoder& decoder, const Setup& setup);

  // So many optimizer steps, from the first.
  void train(int64_t steps);

 private:
  struct Batch {
    Tensor ids, mask, labels;
    int64_t length = 0;  // of its rows
  };
  Batch next_batch();
  void count_items(const Batch& batch);
  void accumulate(const std::vector<Batch>& batches, bool first_step);
  void micro_step();
  void clip();

  Torch& t_;
  Decoder& decoder_;
  const Setup& setup_;
  Optimizers optimizer_;
  Batch batch_;
  size_t batches_ = 0;  // that were taken
  Tensor total_loss_, last_loss_, gradient_norm_;
};

}  // namespace snug::eager
