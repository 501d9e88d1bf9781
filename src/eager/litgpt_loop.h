#pragma once
// LitGPT's loop on sizes: fit of litgpt/finetune/lora.py and full.py, on one device.

#include "eager/litgpt.h"

namespace snug::eager {

class LitGptLoop {
 public:
  LitGptLoop(Torch& torch, LitGpt& model, const Setup& setup);

  // Two batches are evaluated first; then so many optimizer steps.
  void train(int64_t steps);

 private:
  struct Batch {
    Tensor ids, labels;
    int64_t length = 0;  // of its rows
  };
  Batch next_batch();
  void validate();
  void step();
  Tensor loss(Tensors& logits, int64_t tokens);
  Tensor whole_loss(const Tensor& logits, int64_t tokens);
  Tensor cross_entropy(const Tensor& logits, int64_t rows, bool reduces);
  Tensor mean_of(const Tensors& losses);

  Torch& t_;
  LitGpt& model_;
  const Setup& setup_;
  std::vector<Trained> trained_;
  Optimizers optimizer_;
  Batch batch_;
  size_t batches_ = 0;  // that were taken
  Tensors logits_;      // locals of fit, which outlive a step
  Tensor loss_;
};

}  // namespace snug::eager
