#pragma once
// What ops mean, as plain loops in fp64, and what tests of kernels share: tensors of either type and guarded workspaces.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "base/bfloat16.h"
#include "base/checked.h"
#include "base/float16.h"
#include "base/philox.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/product.h"
#include "kernels/support_normals.h"

namespace snug::tests {

using Doubles = std::vector<double>;

// What the matrix products of all tests share.
inline kernels::Products& products() {
  static kernels::Products made;
  return made;
}

// A tensor of f32, bf16 or f16 with guard bytes behind it.
class Values {
 public:
  // Normal numbers times `scale`, the same for the same stream.
  Values(int64_t elements, DType dtype, uint64_t stream, float scale = 1.0F)
      : dtype_(dtype), elements_(elements), bytes_(static_cast<size_t>(elements * size_of(dtype)) + kGuard, kMark) {
    if (scale == 0.0F) {
      for (int64_t i = 0; i < elements; ++i) set(i, 0.0F);
      return;
    }
    int64_t i = 0;
    for (const float number : normals(7, stream, elements)) set(i++, scale * number);
  }
  void set(int64_t i, float value) {
    if (dtype_ == DType::f32) {
      std::memcpy(bytes_.data() + i * 4, &value, 4);
    } else {
      const uint16_t bits = dtype_ == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
      std::memcpy(bytes_.data() + i * 2, &bits, 2);
    }
  }
  double operator[](int64_t i) const {
    if (dtype_ == DType::f32) {
      float value = 0;
      std::memcpy(&value, bytes_.data() + i * 4, 4);
      return static_cast<double>(value);
    }
    uint16_t bits = 0;
    std::memcpy(&bits, bytes_.data() + i * 2, 2);
    return static_cast<double>(dtype_ == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits));
  }
  kernels::In in() const { return {bytes_.data(), dtype_}; }
  kernels::Out out() { return {bytes_.data(), dtype_}; }
  float* f32() { return reinterpret_cast<float*>(bytes_.data()); }
  int64_t size() const { return elements_; }
  DType dtype() const { return dtype_; }
  Doubles doubles() const {
    Doubles values(static_cast<size_t>(elements_));
    for (int64_t i = 0; i < elements_; ++i) values[static_cast<size_t>(i)] = (*this)[i];
    return values;
  }
  bool guarded() const {
    return std::all_of(bytes_.end() - kGuard, bytes_.end(), [](uint8_t byte) { return byte == kMark; });
  }
  bool same_bits(const Values& other) const { return bytes_ == other.bytes_; }

 private:
  static constexpr uint8_t kMark = 0xA5;
  static constexpr int64_t kGuard = 256;
  DType dtype_;
  int64_t elements_;
  std::vector<uint8_t> bytes_;
};

// As products in bf16 take an fp32 operand.
inline Doubles rounded_to_bf16(const Values& of) {
  Doubles values = of.doubles();
  for (double& value : values) value = static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(value))));
  return values;
}

// Exactly the bytes an op was promised, 64-byte aligned, full of NaNs, with a red zone on either side.
class GuardedWorkspace {
 public:
  explicit GuardedWorkspace(int64_t bytes) : bytes_(bytes), memory_(static_cast<size_t>(bytes + 2 * kZone + 64), 0xFF) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data()) + kZone;
    start_ = memory_.data() + kZone + ((64 - address % 64) % 64);
  }
  kernels::Workspace get() { return {start_, bytes_}; }
  bool intact() const {
    const auto untouched = [](uint8_t byte) { return byte == 0xFF; };
    return std::all_of(memory_.data(), static_cast<const uint8_t*>(start_), untouched) &&
           std::all_of(static_cast<const uint8_t*>(start_) + bytes_, memory_.data() + memory_.size(), untouched);
  }

 private:
  static constexpr int64_t kZone = 4096;
  int64_t bytes_;
  std::vector<uint8_t> memory_;
  uint8_t* start_ = nullptr;
};

// What storing a result of some size may round away, twice over: a share of it.
inline double rounding_of(DType dtype) { return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0x1p-22; }

// c[m, n] = c0 + scale * op(a) op(b); c0 empty: 0.
struct ProductReference {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  double scale;

  Doubles operator()(const Doubles& a, const Doubles& b, const Doubles& c0) const {
    Doubles c(static_cast<size_t>(m * n));
    const int64_t a_step = transpose_a ? m : 1, b_step = transpose_b ? 1 : n;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const double* const row = a.data() + (transpose_a ? i : i * k);
        const double* const column = b.data() + (transpose_b ? j * k : j);
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += row[l * a_step] * column[l * b_step];
        const auto at = static_cast<size_t>(i * n + j);
        c[at] = (c0.empty() ? 0.0 : c0[at]) + scale * sum;
      }
    }
    return c;
  }
};

// The loss of head_loss times inverse_labels, from all its inputs.
struct HeadReference {
  int64_t cols, vocabulary, rank;
  double inverse_labels;
  double softcap;
  std::vector<int32_t> rows, tokens;  // of the targets

  Doubles logits(const Doubles& hidden, const Doubles& weight, const Doubles& low, const Doubles& low_weight,
                 size_t target) const {
    Doubles result(static_cast<size_t>(vocabulary));
    const int64_t row = rows[target];
    for (int64_t v = 0; v < vocabulary; ++v) {
      double sum = 0;
      for (int64_t c = 0; c < cols; ++c)
        sum += hidden[static_cast<size_t>(row * cols + c)] * weight[static_cast<size_t>(v * cols + c)];
      for (int64_t r = 0; r < rank; ++r)
        sum += low[static_cast<size_t>(row * rank + r)] * low_weight[static_cast<size_t>(v * rank + r)];
      result[static_cast<size_t>(v)] = softcap > 0 ? softcap * std::tanh(sum / softcap) : sum;
    }
    return result;
  }
  double operator()(const Doubles& hidden, const Doubles& weight, const Doubles& low, const Doubles& low_weight) const {
    double loss = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Doubles x = logits(hidden, weight, low, low_weight, i);
      const double most = *std::max_element(x.begin(), x.end());
      double sum = 0;
      for (const double value : x) sum += std::exp(value - most);
      loss += most + std::log(sum) - x[static_cast<size_t>(tokens[i])];
    }
    return loss * inverse_labels;
  }
};

// The slope of `loss` at `x` along a random direction, and what `gradient` says of it, agree to 1e-3.
inline void expect_slope(const std::function<double(const Doubles&)>& loss, const Doubles& x, const Doubles& gradient,
                         uint64_t stream, double relative = 1e-3) {
  const Philox random{.seed = 11, .stream = stream};
  Doubles ahead = x;
  Doubles behind = x;
  double claimed = 0;
  double size = 0;
  const double step = 1e-5;
  for (size_t i = 0; i < x.size(); ++i) {
    // Towards the gradient, mostly: across it the slope vanishes and its relative error means nothing.
    const double along = static_cast<double>(random.normal(i)) + (gradient[i] > 0 ? 1.0 : -1.0);
    ahead[i] += step * along;
    behind[i] -= step * along;
    claimed += gradient[i] * along;
    size += std::abs(gradient[i] * along);
  }
  const double measured = (loss(ahead) - loss(behind)) / (2 * step);
  EXPECT_NEAR(claimed, measured, relative * std::max(std::abs(measured), 1e-2 * size) + 1e-9);
}

}  // namespace snug::tests
