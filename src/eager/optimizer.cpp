#include "eager/optimizer.h"

#include <algorithm>
#include <utility>

namespace snug::eager {

// transformers/trainer.py create_optimizer: those that decay, those that do not.
Optimizers::Optimizers(Torch& torch, const Setup& setup, std::vector<Trained> parameters, bool apart)
    : t_(torch),
      setup_(setup),
      parameters_(std::move(parameters)),
      groups_(apart ? parameters_.size() : 2),
      states_(parameters_.size()) {
  for (size_t i = 0; i < parameters_.size(); ++i) groups_[apart ? i : parameters_[i].decays ? 0 : 1].push_back(i);
}

void Optimizers::step() {
  gradient_ = wide_parameter_ = update_ = {};
  for (size_t i = 0; i < groups_.size(); ++i) step(i);
  gradient_ = wide_parameter_ = update_ = {};
}

void Optimizers::step(size_t number) {
  const auto& group = groups_[number];
  switch (setup_.optimizer) {
    case Optimizer::adamw: step_adamw(group); break;
    case Optimizer::adamw_fused: step_fused(group); break;
    case Optimizer::sgd: break;  // without momentum: in place, from the gradients
    case Optimizer::adafactor:
      for (const size_t i : group) step_adafactor(i);
      break;
    case Optimizer::adamw_8bit:
      for (const size_t i : group) step_bitsandbytes(i, 2, true, false);
      break;
    case Optimizer::paged_adamw_8bit:
      for (const size_t i : group) step_bitsandbytes(i, 2, true, true);
      break;
    case Optimizer::paged_adamw_32bit:
      for (const size_t i : group) step_bitsandbytes(i, 2, false, true);
      break;
    case Optimizer::lion_8bit:
      for (const size_t i : group) step_bitsandbytes(i, 1, true, false);
      break;
    case Optimizer::lion_32bit:
      for (const size_t i : group) step_bitsandbytes(i, 1, false, false);
      break;
  }
}

void Optimizers::step_partition(size_t number, DType narrow, const std::function<void()>& begin) {
  const int64_t count = parameters_[number].tensor->count;
  Tensor flat = t_.empty(count, narrow);
  const Tensor gradient = t_.empty(count, DType::f32, Role::gradients);
  flat = {};
  begin();
  step(number);
}

// torch/optim/adamw.py: _multi_tensor_adamw; the roots of all second moments of a dtype at once, a local that the next
// dtype's take the place of
void Optimizers::step_adamw(const std::vector<size_t>& group) {
  for (const size_t i : group) {
    const Tensor& p = *parameters_[i].tensor;
    if (!states_[i].empty()) continue;
    for (int k = 0; k < 2; ++k) states_[i].push_back(t_.empty(p.count, p.dtype, Role::optimizer));
  }
  std::vector<DType> dtypes;  // in the order of their first tensors
  for (const size_t i : group)
    if (const DType dtype = parameters_[i].tensor->dtype; std::find(dtypes.begin(), dtypes.end(), dtype) == dtypes.end())
      dtypes.push_back(dtype);
  Tensors roots, sums;
  const auto like_all_of = [&](DType dtype) {
    Tensors made;
    for (const size_t i : group)
      if (parameters_[i].tensor->dtype == dtype) made.push_back(t_.empty_like(*parameters_[i].tensor));
    return made;
  };
  for (const DType dtype : dtypes) {
    roots = like_all_of(dtype);
    if (t_.stack().adamw_copies_roots) sums = like_all_of(dtype);
  }
}

// torch/optim/adamw.py, fused=True: counts of steps are on the device
void Optimizers::step_fused(const std::vector<size_t>& group) {
  for (const size_t i : group) {
    const Tensor& p = *parameters_[i].tensor;
    if (!states_[i].empty()) continue;
    states_[i].push_back(t_.empty(1, DType::f32, Role::optimizer));
    for (int k = 0; k < 2; ++k) states_[i].push_back(t_.empty(p.count, p.dtype, Role::optimizer));
  }
}

// bitsandbytes/optim/optimizer.py, get_state_buffer: what is paged is managed memory, outside the allocator
Tensor Optimizers::state_of(int64_t count, DType dtype, bool paged) {
  constexpr int64_t kLeastPaged = 100'000;
  return paged && count >= kLeastPaged ? Tensor{} : t_.empty(count, dtype, Role::optimizer);
}

// bitsandbytes/optim/optimizer.py, init_state of Optimizer1State and Optimizer2State
void Optimizers::step_bitsandbytes(size_t index, int states, bool narrow, bool paged) {
  constexpr int64_t kLeastNarrow = 4096;  // min_8bit_size
  const int64_t count = parameters_[index].tensor->count, block = t_.stack().optimizer_block;
  Tensors& kept = states_[index];
  if (!kept.empty()) return;
  const bool stays_wide = parameters_[index].is_embedding && t_.stack().embeddings_keep_wide_states;
  if (!narrow || stays_wide || count < kLeastNarrow) {
    for (int k = 0; k < states; ++k) kept.push_back(state_of(count, DType::f32, paged));
    return;
  }
  for (int k = static_cast<int>(maps_.size()); k < states; ++k) maps_.push_back(t_.empty(256, DType::f32, Role::optimizer));
  for (int k = 0; k < states; ++k) kept.push_back(state_of(count, DType::u8, paged));
  for (int k = 0; k < states; ++k) kept.push_back(t_.empty((count + block - 1) / block, DType::f32, Role::optimizer));
}

// transformers/optimization.py, Adafactor.step
void Optimizers::step_adafactor(size_t index) {
  const Trained& p = parameters_[index];
  const int64_t count = p.tensor->count, rows = p.columns > 0 ? count / p.columns : 0;
  const bool half = is_half(p.tensor->dtype);
  gradient_ = {};
  if (half) gradient_ = t_.empty(count, DType::f32);
  Tensors& kept = states_[index];
  if (kept.empty()) {
    kept.push_back(t_.empty(rows > 0 ? rows : count, DType::f32, Role::optimizer));
    if (rows > 0) kept.push_back(t_.empty(p.columns, DType::f32, Role::optimizer));
  }
  wide_parameter_ = {};
  if (half) wide_parameter_ = t_.empty(count, DType::f32);
  {
    const Tensor square = t_.empty(count, DType::f32);
    Tensor shifted = t_.empty(count, DType::f32);
    update_ = std::move(shifted);
  }
  if (rows > 0) {
    const Tensor row_means = t_.empty(rows, DType::f32);
    const Tensor column_means = t_.sum_rows(update_, p.columns);
  }
  Tensor product = t_.empty(count, DType::f32);
  update_ = std::move(product);
  const Tensor negated = t_.empty(count, DType::f32);
}

}  // namespace snug::eager
