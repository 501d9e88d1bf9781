// Gradients' norm and scale, and the optimizers' steps.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/fp64/table.h"
#include "kernels/fp64/values.h"
#include "kernels/ops/gradients.h"
#include "kernels/ops/optimizers.h"

namespace snug::kernels::fp64 {
namespace {

void zero(const Zero& op) { std::fill_n(op.data, op.elements, 0.0F); }

void square_sum(const SquareSum& op) {
  for (int64_t i = 0; i < op.elements; ++i)
    scalar(op.scalars, Scalar::square_sum) += static_cast<double>(op.data[i]) * static_cast<double>(op.data[i]);
}

void clip_factor(const ClipFactor& op) {
  const double scale = scalar(op.scalars, Scalar::loss_scale);
  const double norm = std::sqrt(scalar(op.scalars, Scalar::square_sum)) / scale;
  scalar(op.scalars, Scalar::gradient_norm) = norm;
  const double factor = op.max_norm > 0 ? std::min(1.0, static_cast<double>(op.max_norm) / (norm + 1e-6)) : 1.0;
  scalar(op.scalars, Scalar::clip_factor) = factor / scale;
  scalar(op.scalars, Scalar::skip) = std::isfinite(norm) ? 0.0 : 1.0;
}

void update_scale(const UpdateScale& op) {
  const auto now = [&](Scalar which) -> double& { return scalar(op.scalars, which); };
  const bool skipped = now(Scalar::skip) != 0.0;
  now(Scalar::skips_in_a_row) = skipped ? now(Scalar::skips_in_a_row) + 1.0 : 0.0;
  now(Scalar::steps_at_scale) = skipped ? 0.0 : now(Scalar::steps_at_scale) + 1.0;
  if (skipped) now(Scalar::loss_scale) /= 2.0;
  if (now(Scalar::steps_at_scale) < static_cast<double>(op.window)) return;
  now(Scalar::steps_at_scale) = 0.0;
  if (2.0 * now(Scalar::loss_scale) <= static_cast<double>(std::numeric_limits<float>::max()))
    now(Scalar::loss_scale) *= 2.0;
}

// Where the update happens: the master copy, or the parameter itself.
template <class Op>
double weight_of(const Op& op, int64_t i) {
  return op.master != nullptr ? static_cast<double>(op.master[i]) : Writer(op.parameter)[i];
}
template <class Op>
void set_weight(const Op& op, int64_t i, double value) {
  if (op.master != nullptr) op.master[i] = static_cast<float>(value);
  Writer(op.parameter).set(i, value);
}
template <class Op>
double gradient_of(const Op& op, int64_t i) {
  return static_cast<double>(op.gradient[i]) * scalar(op.scalars, Scalar::clip_factor);
}

void adamw(const AdamW& op) {
  const double rate = scalar(op.scalars, Scalar::learning_rate), step = scalar(op.scalars, Scalar::step);
  auto* const first = static_cast<float*>(op.first_moment.data);
  auto* const second = static_cast<float*>(op.second_moment.data);
  for (int64_t i = 0; i < op.elements; ++i) {
    const double g = gradient_of(op, i);
    const double m = op.beta1 * static_cast<double>(first[i]) + (1.0 - op.beta1) * g;
    const double v = op.beta2 * static_cast<double>(second[i]) + (1.0 - op.beta2) * g * g;
    first[i] = static_cast<float>(m), second[i] = static_cast<float>(v);
    const double denominator = std::sqrt(v / (1.0 - std::pow(op.beta2, step))) + op.epsilon;
    set_weight(
        op, i,
        weight_of(op, i) * (1.0 - rate * op.weight_decay) - rate * m / (1.0 - std::pow(op.beta1, step)) / denominator);
  }
}

void sgd(const Sgd& op) {
  for (int64_t i = 0; i < op.elements; ++i) {
    double g = gradient_of(op, i) + op.weight_decay * weight_of(op, i);
    if (op.velocity != nullptr) {
      g += op.momentum * static_cast<double>(op.velocity[i]);
      op.velocity[i] = static_cast<float>(g);
    }
    set_weight(op, i, weight_of(op, i) - scalar(op.scalars, Scalar::learning_rate) * g);
  }
}

void lion(const Lion& op) {
  const double rate = scalar(op.scalars, Scalar::learning_rate);
  auto* const moment = static_cast<float*>(op.first_moment.data);
  for (int64_t i = 0; i < op.elements; ++i) {
    const double g = gradient_of(op, i), m = static_cast<double>(moment[i]);
    const double direction = op.beta1 * m + (1.0 - op.beta1) * g;
    const double sign = direction > 0 ? 1.0 : direction < 0 ? -1.0 : 0.0;
    moment[i] = static_cast<float>(op.beta2 * m + (1.0 - op.beta2) * g);
    set_weight(op, i, weight_of(op, i) * (1.0 - rate * op.weight_decay) - rate * sign);
  }
}

// Means of squares by rows and columns, kept by a share of 1 - step^-0.8; 1e-30 is added to each square.
void adafactor(const Adafactor& op) {
  const double kept = 1.0 - std::pow(scalar(op.scalars, Scalar::step), -0.8),
               rate = scalar(op.scalars, Scalar::learning_rate);
  const int64_t size = op.rows * op.cols;
  const auto square = [&](int64_t i) { return gradient_of(op, i) * gradient_of(op, i) + 1e-30; };
  std::vector<double> update(static_cast<size_t>(op.matrices * size));
  double squares = 0;
  for (int64_t matrix = 0; matrix < op.matrices; ++matrix) {
    float* const rows = op.row_factor == nullptr ? nullptr : op.row_factor + matrix * op.rows;
    float* const columns = op.column_factor + matrix * op.cols;
    double mean_of_rows = 0;
    for (int64_t i = 0; rows != nullptr && i < op.rows; ++i) {
      double mean = 0;
      for (int64_t j = 0; j < op.cols; ++j) mean += square(matrix * size + i * op.cols + j) / static_cast<double>(op.cols);
      rows[i] = static_cast<float>(kept * static_cast<double>(rows[i]) + (1.0 - kept) * mean);
      mean_of_rows += static_cast<double>(rows[i]) / static_cast<double>(op.rows);
    }
    for (int64_t j = 0; j < op.cols; ++j) {
      double mean = 0;
      for (int64_t i = 0; i < op.rows; ++i) mean += square(matrix * size + i * op.cols + j) / static_cast<double>(op.rows);
      columns[j] = static_cast<float>(kept * static_cast<double>(columns[j]) + (1.0 - kept) * mean);
    }
    for (int64_t i = 0; i < size; ++i) {
      const double row = rows == nullptr ? 1.0 : static_cast<double>(rows[i / op.cols]) / mean_of_rows;
      const double value = gradient_of(op, matrix * size + i) / std::sqrt(row * static_cast<double>(columns[i % op.cols]));
      update[static_cast<size_t>(matrix * size + i)] = value;
      squares += value * value;
    }
  }
  const double root_mean_square = std::sqrt(squares / static_cast<double>(op.matrices * size));
  for (int64_t i = 0; i < op.matrices * size; ++i)
    set_weight(op, i,
               weight_of(op, i) * (1.0 - rate * op.weight_decay) -
                   rate * update[static_cast<size_t>(i)] / std::max(1.0, root_mean_square));
}

// States of fewer bits are other backends' business.
const char* other_states(const OpView& op) {
  for (const Slot slot : {Slot::first_moment, Slot::second_moment})
    if (op.has(slot) && op[slot].dtype != DType::f32) return "an optimizer's state of fewer than 32 bits";
  return nullptr;
}

template <class Args, void (*kRun)(const Args&)>
constexpr Kernel with_plain_states() {
  Kernel kernel = plain<Args, kRun>();
  kernel.missing = other_states;
  return kernel;
}

}  // namespace

const Kernel entries::zero = plain<Zero, fp64::zero>();
const Kernel entries::square_sum = plain<SquareSum, fp64::square_sum>();
const Kernel entries::clip_factor = plain<ClipFactor, fp64::clip_factor>();
const Kernel entries::update_scale = plain<UpdateScale, fp64::update_scale>();
const Kernel entries::adamw = with_plain_states<AdamW, fp64::adamw>();
const Kernel entries::sgd = plain<Sgd, fp64::sgd>();
const Kernel entries::lion = with_plain_states<Lion, fp64::lion>();
const Kernel entries::adafactor = plain<Adafactor, fp64::adafactor>();

}  // namespace snug::kernels::fp64
