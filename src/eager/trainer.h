#pragma once
// transformers' Trainer around a decoder: batches, accumulation, clipping, the optimizer, in the order of trainer.py.

#include <memory>

#include "eager/data_parallel.h"
#include "eager/decoder.h"
#include "eager/zero.h"

namespace snug::eager {

class Trainer {
 public:
  // What the decoder's parameters are shared by; none where each rank has them.
  struct Sharing {
    FullySharded* sharded = nullptr;
    FlatSharded* flat = nullptr;
    PartitionedModel* partitioned = nullptr;
  };
  Trainer(Torch& torch, Decoder& decoder, const Setup& setup, const Sharing& sharing);

  // So many optimizer steps, from the first, each with the evaluation that may come between two.
  void train(int64_t steps);

 private:
  struct Batch {
    Tensor ids, mask, labels;
    int64_t length = 0;  // of its rows
  };
  Batch next_batch();
  Batch make_batch(int64_t rows, int64_t length);
  void count_items(const Batch& batch);
  void accumulate(const std::vector<Batch>& batches, bool first_step);
  void evaluate();
  // What an evaluation holds between batches.
  struct Kept {
    Batch batch;
    Tensor losses, logits, all_losses, all_logits, all_labels;
  };
  void keep(Kept& kept, Decoder::Outputs& outputs, int64_t rows);
  Decoder::Outputs predict(const Batch& batch, int64_t rows);
  void wrap();
  void update();
  void micro_step(bool last);
  void clip();
  void clip_flat();

  Torch& t_;
  Decoder& decoder_;
  const Setup& setup_;
  std::vector<Trained> trained_;  // of this rank
  std::unique_ptr<Optimizers> optimizer_;
  std::unique_ptr<DataParallel> data_parallel_;
  std::unique_ptr<ZeroOptimizer> zero_;
  PartitionedModel* partitioned_;
  FullySharded* sharded_;
  FlatSharded* flat_;
  Batch batch_;
  size_t batches_ = 0;  // that were taken
  Tensor total_loss_, last_loss_, gradient_norm_;
};

}  // namespace snug::eager
