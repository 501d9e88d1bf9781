// trainer.py, evaluation_loop and prediction_step: batches without gradients; what is kept of them grows on the device,
// joined anew with each batch (trainer_pt_utils.py, EvalLoopContainer), until it goes to the host.

#include <algorithm>

#include "eager/trainer.h"

namespace snug::eager {

namespace {

// trainer_pt_utils.py, nested_concat
void join(Torch& torch, Tensor& all, const Tensor& more) { all = all.defined() ? torch.cat({all, more}) : more; }

}  // namespace

// Of many batches the first few and the last two are followed; of those between only what is kept, which grows alone.
void Trainer::evaluate() {
  constexpr int64_t kFew = 4;
  const Evaluation& evaluation = setup_.evaluation;
  if (evaluation.rows == 0) return;
  Device& device = t_.device();
  device.enter(Phase::evaluate);
  t_.grad_enabled = false;
  const int64_t length = evaluation.length > 0 ? evaluation.length : setup_.seq_len;
  const int64_t batches = (evaluation.rows + evaluation.batch - 1) / evaluation.batch;
  Kept kept;
  for (int64_t i = 0; i < batches; ++i) {
    const int64_t rows = std::min(evaluation.batch, evaluation.rows - i * evaluation.batch);
    kept.batch = make_batch(rows, length);
    Decoder::Outputs outputs;
    if (i < kFew || i + 2 >= batches) {
      outputs = predict(kept.batch, rows);
    } else if (evaluation.keeps_outputs) {
      outputs.logits = t_.empty(kept.logits.count, kept.logits.dtype);
    }
    keep(kept, outputs, rows);
    if (evaluation.moved_after == 0 || (i + 1) % evaluation.moved_after != 0) continue;
    kept = {};
    device.release_cached();
  }
  kept = {};
  t_.grad_enabled = true;
  device.enter(Phase::between);
}

void Trainer::keep(Kept& kept, Decoder::Outputs& outputs, int64_t rows) {
  kept.losses = t_.empty(rows, DType::f32);
  outputs.loss = {};
  join(t_, kept.all_losses, kept.losses);
  if (!setup_.evaluation.keeps_outputs) return;
  kept.logits = std::move(outputs.logits);
  { const Tensor sizes = t_.empty(2, DType::i64); }  // accelerate, pad_across_processes
  { const Tensor sizes = t_.empty(3, DType::i64); }
  join(t_, kept.all_logits, kept.logits);
  join(t_, kept.all_labels, kept.batch.labels);
}

Decoder::Outputs Trainer::predict(const Batch& batch, int64_t rows) {
  if (t_.stack().evaluation_counts_items) count_items(batch);
  if (setup_.autocast) t_.enter_autocast(*setup_.autocast);
  Decoder::Outputs outputs = decoder_.evaluate(rows, batch.length);
  outputs.loss = t_.empty(1, DType::f32);  // its mean
  return outputs;
}

}  // namespace snug::eager
