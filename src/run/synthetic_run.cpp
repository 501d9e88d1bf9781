#include "run/synthetic_run.h"

#include <algorithm>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "run/in_place.h"
#include "run/inverse_frequency.h"

namespace snug {

namespace {

template <class T, class Value>
void fill_tensor(Executor& executor, TensorId tensor, int64_t layer, const Value& value) {
  const std::span<T> in_place = InPlace::elements<T>(executor, tensor, layer);
  for (T& x : in_place) x = value();
  if (!in_place.empty()) return;
  ElementWriter<T> far(executor.transfer(), tensor, layer);
  for (int64_t i = 0; i < executor.program().tensor(tensor).elements(); ++i) far.put(i, value());
  far.flush();
}

void fill_weight(Executor& executor, const Weight& weight, int64_t layer, std::minstd_rand& random) {
  const DType dtype = executor.program().tensor(weight.tensor).dtype;
  const bool norm = weight.parameter.kind == ParameterKind::norm;
  // Uniform with the deviation of usual initial weights, 0.02.
  constexpr float kHalf = 0.035F, kScale = 2 * kHalf / static_cast<float>(std::minstd_rand::max());
  const auto value = [&] {
    return norm ? 1.0F : weight.origin == Origin::zeros ? 0.0F : static_cast<float>(random()) * kScale - kHalf;
  };
  if (dtype == DType::f32) {
    fill_tensor<float>(executor, weight.tensor, layer, value);
  } else if (is_half(dtype)) {
    fill_tensor<uint16_t>(executor, weight.tensor, layer,
                          [&] { return dtype == DType::f16 ? f32_to_f16(value()) : f32_to_bf16(value()); });
  }
  const TensorId master = weight.state(Slot::master);
  if (master == kNone) return;
  fill_tensor<float>(executor, master, layer, value);
}

}  // namespace

void fill_at_random(Executor& executor, const ModelSpec& model) {
  const Program& program = executor.program();
  for (size_t id = 0; id < program.storages.size(); ++id)
    if (program.storages[id].lifetime == Lifetime::run) executor.transfer().clear(static_cast<StorageId>(id));
  std::minstd_rand random(2);
  for (const Weight& weight : program.weights)
    for (int64_t layer = weight.parameter.first_layer; layer < weight.parameter.end_layer(program.layers); ++layer)
      fill_weight(executor, weight, layer, random);
  fill_inverse_frequencies(model, executor);
  if (program.count(Section::keep) == 0) return;
  struct : Host {
    void run(const Op&, int64_t) override {}
  } nobody;
  executor.run(program.region(Section::keep), nobody);
}

void RandomBatches::run(const Op& op, int64_t repetition) {
  if (op.kind != OpKind::batch) return;
  const int64_t length = executor_.program().seq_len;
  const int64_t tokens = executor_.program().tensor(op.find(Slot::ids)).elements();
  const auto fill = [&](Slot slot, auto value) {
    const int64_t count = executor_.program().tensor(op.find(slot)).elements();
    ElementWriter<int32_t> values(executor_.transfer(), op.find(slot));
    for (int64_t i = 0; i < count; ++i) values.put(i, static_cast<int32_t>(value(i)));
    values.flush();
  };
  fill(Slot::document_start, [](int64_t) { return int64_t{0}; });
  fill(Slot::ids, [&](int64_t) { return static_cast<int64_t>(random_()) % vocabulary_; });
  fill(Slot::target_tokens, [&](int64_t) { return static_cast<int64_t>(random_()) % vocabulary_; });
  fill(Slot::positions, [&](int64_t i) { return i % length; });
  fill(Slot::target_rows, [&](int64_t i) { return i / (length - 1) * length + i % (length - 1); });
  const int64_t rows = tokens / length;
  executor_.set_scalar(Scalar::target_count, static_cast<double>(tokens - rows));
  executor_.set_scalar(Scalar::first_micro_batch, repetition == 0 ? 1.0 : 0.0);
}

void run_random_step(Executor& executor, RandomBatches& batches, int64_t step) {
  const Program& program = executor.program();
  executor.set_scalar(Scalar::learning_rate, 1e-4);
  executor.set_scalar(Scalar::step, static_cast<double>(step));
  executor.set_scalar(Scalar::loss_scale, 1.0);
  executor.set_scalar(Scalar::inverse_labels,
                      1.0 / static_cast<double>(program.batch * program.seq_len * program.micro_batches));
  executor.set_scalar(Scalar::loss_sum, 0.0);
  executor.set_scalar(Scalar::square_sum, 0.0);
  executor.run(program.region(Section::step), batches);
}

}  // namespace snug
