#include "eager/litgpt_loop.h"

#include <algorithm>

namespace snug::eager {

namespace {

constexpr int64_t kChunk = 128;  // litgpt/utils.py chunked_cross_entropy; lm_head_chunk_size of lora.py

}  // namespace

LitGptLoop::LitGptLoop(Torch& torch, LitGpt& model, const Setup& setup)
    : t_(torch), model_(model), setup_(setup), trained_(model.trained()), optimizer_(torch, setup, trained_) {}

LitGptLoop::Batch LitGptLoop::next_batch() {
  const auto& lengths = setup_.lengths;
  Batch batch;
  batch.length = lengths.empty() ? setup_.seq_len : lengths[batches_++ % lengths.size()];
  batch.ids = t_.empty(setup_.batch * batch.length, DType::i64, Role::batch);
  batch.labels = t_.empty(setup_.batch * batch.length, DType::i64, Role::batch);
  return batch;
}

void LitGptLoop::train(int64_t steps) {
  Device& device = t_.device();
  device.enter(Phase::evaluate);
  model_.set_most_tokens(setup_.lengths.empty() ? setup_.seq_len : *std::ranges::max_element(setup_.lengths));
  validate();
  device.enter(Phase::between);
  for (int64_t i = 0; i < steps; ++i) {
    for (int64_t k = 0; k < setup_.accumulation; ++k) step();
    device.enter(Phase::optimizer);
    optimizer_.step();
    device.enter(Phase::between);
    for (const Trained& parameter : trained_) parameter.tensor->node->gradient = {};
  }
}

void LitGptLoop::validate() {
  t_.grad_enabled = false;
  {
    const Batch batch = next_batch();
    const Tensors logits = model_.forward(batch.length, false, 0);
    const int64_t rows = setup_.batch * (batch.length - 1);
    Tensor shifted = t_.slice(logits[0], logits[0].count / batch.length * (batch.length - 1));
    if (setup_.batch > 1) shifted = t_.clone(shifted);
    const Tensor labels = setup_.batch > 1 ? t_.empty(rows, DType::i64) : batch.labels;
    cross_entropy(shifted, rows, true);
  }
  t_.grad_enabled = true;
  batches_ = 0;
}

void LitGptLoop::step() {
  Device& device = t_.device();
  batch_ = next_batch();
  device.enter(Phase::forward);
  const bool chunks = setup_.method == Method::lora;
  logits_ = model_.forward(batch_.length, true, chunks ? kChunk : 0);
  loss_ = chunks ? loss(logits_, batch_.length) : whole_loss(logits_[0], batch_.length);
  {
    const Tensor divided = t_.scale(loss_);
    device.enter(Phase::backward);
    const Tensor one = t_.empty(1, DType::f32);
    t_.backward(divided, one);
  }
  device.enter(Phase::between);
}

// chunked_cross_entropy of logits in chunks, the last of which is one token shorter
Tensor LitGptLoop::loss(Tensors& logits, int64_t tokens) {
  const int64_t B = setup_.batch, V = logits[0].count / (B * std::min(kChunk, tokens));
  Tensor& last = logits.back();
  last = t_.full_slices(t_.slice(last, last.count - B * V), 1);
  Tensors rows, labels, losses;
  for (const Tensor& part : logits) rows.push_back(&part == &last && B > 1 ? t_.clone(part) : part);
  for (const Tensor& part : rows) labels.push_back(B > 1 ? t_.empty(part.count / V, DType::i64) : Tensor{});
  for (const Tensor& part : rows) losses.push_back(cross_entropy(part, part.count / V, false));
  return mean_of(losses);
}

Tensor LitGptLoop::whole_loss(const Tensor& logits, int64_t tokens) {
  const int64_t B = setup_.batch, V = logits.count / (B * tokens), count = B * (tokens - 1);
  Tensor shifted = t_.full_slices(t_.slice(logits, count * V), 1);
  if (B > 1) shifted = t_.clone(shifted);
  const Tensor labels = B > 1 ? t_.empty(count, DType::i64) : Tensor{};
  std::vector<int64_t> counts;
  for (int64_t begin = 0; begin < count; begin += kChunk) counts.push_back(std::min(kChunk, count - begin) * V);
  const Tensors rows = t_.split(shifted, counts);
  Tensors losses;
  for (const Tensor& part : rows) losses.push_back(cross_entropy(part, part.count / V, false));
  return mean_of(losses);
}

Tensor LitGptLoop::cross_entropy(const Tensor& logits, int64_t rows, bool reduces) {
  const Tensor logarithms = t_.keeps_output(logits);
  Tensor loss = t_.empty(reduces ? 1 : rows, DType::f32), weight = t_.empty(1, DType::f32);
  t_.record({logarithms}, {&loss}, {logarithms, weight},
            [this](const Node&, const Tensors& saved, Tensors&) -> Tensors { return {t_.empty_like(saved[0])}; });
  return loss;
}

// torch.cat(losses).sum() / non_masked_elems.maximum(…)
Tensor LitGptLoop::mean_of(const Tensors& losses) {
  Tensor counted;
  {
    const Tensor differ = t_.empty(batch_.labels.count, DType::u8);
    counted = t_.empty(1, DType::i64);
  }
  const Tensor all = t_.cat(losses);
  Tensor sum = t_.empty(1, DType::f32);
  t_.record({all}, {&sum}, {}, [](const Node&, const Tensors&, Tensors& g) -> Tensors { return {g[0]}; });
  const Tensor least = t_.empty(1, DType::i64);
  return t_.scale(sum);
}

}  // namespace snug::eager
