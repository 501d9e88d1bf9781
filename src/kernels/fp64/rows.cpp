// What works row by row: embeddings, norms, biases, columns, rotations, activations, sums.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/fp64/table.h"
#include "kernels/fp64/values.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/add.h"
#include "kernels/ops/bias.h"
#include "kernels/ops/columns.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/layer_norm.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"

namespace snug::kernels::fp64 {
namespace {

void embedding(const Embedding& op) {
  for (int64_t i = 0; i < op.rows * op.cols; ++i)
    Writer(op.out).set(i, static_cast<double>(op.scale) * Reader(op.table)[op.ids[i / op.cols] * op.cols + i % op.cols]);
}

void embedding_backward(const EmbeddingBackward& op) {
  for (int64_t row = 0; row < op.rows; ++row) {
    if (op.ids[row] == op.untrained_row) continue;
    for (int64_t j = 0; j < op.cols; ++j) op.d_table[op.ids[row] * op.cols + j] += op.scale * op.d_out[row * op.cols + j];
  }
}

void rms_norm(const RmsNorm& op) {
  const Reader x(op.x), weight(op.weight);
  for (int64_t row = 0; row < op.rows; ++row) {
    double squares = 0;
    for (int64_t j = 0; j < op.cols; ++j) squares += x[row * op.cols + j] * x[row * op.cols + j];
    const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(op.cols) + static_cast<double>(op.eps));
    op.rstd[row] = static_cast<float>(rstd);
    for (int64_t j = 0; j < op.cols; ++j)
      Writer(op.out).set(row * op.cols + j,
                         x[row * op.cols + j] * rstd * (static_cast<double>(op.weight_offset) + weight[j]));
  }
}

// With n = x * rstd and g = d_out * weight: d_x = rstd * (g - n * mean(g * n)).
void rms_norm_backward(const RmsNormBackward& op) {
  const Reader x(op.x), weight(op.weight);
  for (int64_t row = 0; row < op.rows; ++row) {
    const auto rstd = static_cast<double>(op.rstd[row]);
    const auto g = [&](int64_t j) {
      return static_cast<double>(op.d_out[row * op.cols + j]) * (static_cast<double>(op.weight_offset) + weight[j]);
    };
    const auto n = [&](int64_t j) { return x[row * op.cols + j] * rstd; };
    double mean = 0;
    for (int64_t j = 0; j < op.cols; ++j) mean += g(j) * n(j) / static_cast<double>(op.cols);
    for (int64_t j = 0; j < op.cols; ++j) {
      if (op.d_weight != nullptr)
        op.d_weight[j] += static_cast<float>(static_cast<double>(op.d_out[row * op.cols + j]) * n(j));
      float& d_x = op.d_x[row * op.cols + j];
      d_x = static_cast<float>((op.accumulate ? static_cast<double>(d_x) : 0.0) + rstd * (g(j) - n(j) * mean));
    }
  }
}

void layer_norm(const LayerNorm& op) {
  const Reader x(op.x), weight(op.weight), bias(op.bias);
  const auto cols = static_cast<double>(op.cols);
  for (int64_t row = 0; row < op.rows; ++row) {
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < op.cols; ++j) mean += x[row * op.cols + j] / cols;
    for (int64_t j = 0; j < op.cols; ++j) variance += std::pow(x[row * op.cols + j] - mean, 2) / cols;
    const double rstd = 1.0 / std::sqrt(variance + static_cast<double>(op.eps));
    op.mean[row] = static_cast<float>(mean);
    op.rstd[row] = static_cast<float>(rstd);
    for (int64_t j = 0; j < op.cols; ++j)
      Writer(op.out).set(row * op.cols + j, (x[row * op.cols + j] - mean) * rstd * weight[j] + bias[j]);
  }
}

// With n = (x - mean) * rstd and g = d_out * weight: d_x = rstd * (g - mean(g) - n * mean(g * n)).
void layer_norm_backward(const LayerNormBackward& op) {
  const Reader x(op.x), weight(op.weight);
  const auto cols = static_cast<double>(op.cols);
  for (int64_t row = 0; row < op.rows; ++row) {
    const auto rstd = static_cast<double>(op.rstd[row]), center = static_cast<double>(op.mean[row]);
    const auto d_out = [&](int64_t j) { return static_cast<double>(op.d_out[row * op.cols + j]); };
    const auto n = [&](int64_t j) { return (x[row * op.cols + j] - center) * rstd; };
    double mean = 0, along = 0;
    for (int64_t j = 0; j < op.cols; ++j) mean += d_out(j) * weight[j] / cols, along += d_out(j) * weight[j] * n(j) / cols;
    for (int64_t j = 0; j < op.cols; ++j) {
      if (op.d_weight != nullptr) op.d_weight[j] += static_cast<float>(d_out(j) * n(j));
      if (op.d_bias != nullptr) op.d_bias[j] += static_cast<float>(d_out(j));
      float& d_x = op.d_x[row * op.cols + j];
      d_x = static_cast<float>((op.accumulate ? static_cast<double>(d_x) : 0.0) +
                               rstd * (d_out(j) * weight[j] - mean - n(j) * along));
    }
  }
}

void add_bias(const AddBias& op) {
  for (int64_t i = 0; i < op.rows * op.cols; ++i) Writer(op.x).set(i, Writer(op.x)[i] + Reader(op.bias)[i % op.cols]);
}

void bias_backward(const BiasBackward& op) {
  for (int64_t j = 0; j < op.cols; ++j) {
    double sum = 0;
    for (int64_t row = 0; row < op.rows; ++row) sum += static_cast<double>(op.d_out[row * op.cols + j]);
    op.d_bias[j] += static_cast<float>(sum);
  }
}

// Calls copy(whole row, part row, bytes) for every row of every part.
template <class Copy>
void for_columns(const ColumnParts& op, const Copy& copy) {
  int64_t width = 0, first = 0;
  for (const auto& part : op.parts) width += part.cols;
  for (const auto& part : op.parts) {
    const int64_t size = size_of(op.dtype);
    for (int64_t row = 0; row < op.rows && part.cols > 0; ++row)
      copy(static_cast<std::byte*>(op.whole) + (row * width + first) * size,
           static_cast<std::byte*>(part.data) + row * part.cols * size, static_cast<size_t>(part.cols * size));
    first += part.cols;
  }
}

void split(const ColumnParts& op) {
  for_columns(op, [](std::byte* whole, std::byte* part, size_t bytes) { std::memcpy(part, whole, bytes); });
}

void join(const ColumnParts& op) {
  for_columns(op, [](std::byte* whole, std::byte* part, size_t bytes) { std::memcpy(whole, part, bytes); });
}

// Angles are fp32, as models were trained (transformers' rotary embeddings).
void rope_table(const RopeTable& op) {
  for (int64_t i = 0; i < op.rows * op.half; ++i) {
    const int64_t row = i / op.half;
    const auto angle = static_cast<double>(static_cast<float>(op.positions[row]) * op.inverse_frequency[i % op.half]);
    op.cosine[i] = static_cast<float>(static_cast<double>(op.scale) * std::cos(angle));
    op.sine[i] = static_cast<float>(static_cast<double>(op.scale) * std::sin(angle));
  }
}

void rope(const Rope& op) {
  const Writer x(op.x);
  for (int64_t head = 0; head < op.rows * op.heads; ++head) {
    for (int64_t j = 0; j < op.half; ++j) {
      const int64_t angle = head / op.heads * op.half + j, first = head * op.head_size + j, second = first + op.half;
      const auto cosine = static_cast<double>(op.cosine[angle]);
      const double sine = (op.inverse ? -1.0 : 1.0) * static_cast<double>(op.sine[angle]);
      const double x1 = x[first], x2 = x[second];
      x.set(first, x1 * cosine - x2 * sine);
      x.set(second, x2 * cosine + x1 * sine);
    }
  }
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Both kinds are x sigmoid(u(x)); the value, and its slope.
struct Activated {
  double value, slope;
};
Activated activated(Activation kind, double x) {
  const double c = 2.0 * std::sqrt(2.0 / std::numbers::pi);
  const double u = kind == Activation::silu ? x : c * (x + 0.044715 * x * x * x);
  const double du = kind == Activation::silu ? 1.0 : c * (1.0 + 3.0 * 0.044715 * x * x);
  const double s = sigmoid(u);
  return {x * s, s + x * s * (1.0 - s) * du};
}

void activation(const ActivationGate& op) {
  for (int64_t i = 0; i < op.rows * op.cols; ++i)
    Writer(op.out).set(i, activated(op.kind, Reader(op.gate)[i]).value * (op.up.data == nullptr ? 1.0 : Reader(op.up)[i]));
}

void activation_backward(const ActivationGateBackward& op) {
  for (int64_t i = 0; i < op.rows * op.cols; ++i) {
    const auto d_out = static_cast<double>(op.d_out[i]);
    const Activated gate = activated(op.kind, Reader(op.gate)[i]);
    const double up = op.up.data == nullptr ? 1.0 : Reader(op.up)[i];
    op.d_gate[i] = static_cast<float>(d_out * up * gate.slope);
    if (op.d_up != nullptr) op.d_up[i] = static_cast<float>(d_out * gate.value);
  }
}

void add(const Add& op) {
  for (int64_t i = 0; i < op.elements; ++i) Writer(op.out).set(i, Reader(op.a)[i] + Reader(op.b)[i]);
}

}  // namespace

const Kernel entries::embedding = plain<Embedding, fp64::embedding>();
const Kernel entries::embedding_backward = plain<EmbeddingBackward, fp64::embedding_backward>();
const Kernel entries::rms_norm = plain<RmsNorm, fp64::rms_norm>();
const Kernel entries::rms_norm_backward = plain<RmsNormBackward, fp64::rms_norm_backward>();
const Kernel entries::layer_norm = plain<LayerNorm, fp64::layer_norm>();
const Kernel entries::layer_norm_backward = plain<LayerNormBackward, fp64::layer_norm_backward>();
const Kernel entries::add_bias = plain<AddBias, fp64::add_bias>();
const Kernel entries::bias_backward = plain<BiasBackward, fp64::bias_backward>();
const Kernel entries::split = plain<ColumnParts, fp64::split>();
const Kernel entries::join = plain<ColumnParts, fp64::join>();
const Kernel entries::rope_table = plain<RopeTable, fp64::rope_table>();
const Kernel entries::rope = plain<Rope, fp64::rope>();
const Kernel entries::activation = plain<ActivationGate, fp64::activation>();
const Kernel entries::activation_backward = plain<ActivationGateBackward, fp64::activation_backward>();
const Kernel entries::add = plain<Add, fp64::add>();

}  // namespace snug::kernels::fp64
