#pragma once
// What the tests of row kernels, attention and the optimizer share: operands between guards, comparison, gradients checked
// by central differences, every instruction set of the machine in turn; and the ops themselves as plain loops in fp64.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "base/philox.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/kernels.h"
#include "kernels/support_normals.h"

#include "hwy/highway.h"

namespace snug::kernels::testing {

using Values = std::vector<double>;

// An operand in its storage dtype, 64-byte aligned, with guards on both sides.
class Operand {
 public:
  // Unwritten: every element is a NaN.
  Operand(int64_t elements, DType dtype)
      : elements_(elements), dtype_(dtype), memory_(static_cast<size_t>(bytes() + 2 * kGuard + 64), kUnwritten) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    at_ = static_cast<size_t>((64 - address % 64) % 64) + kGuard;
    std::fill_n(memory_.begin() + static_cast<int64_t>(at_) - kGuard, kGuard, kGuardByte);
    std::fill_n(memory_.begin() + static_cast<int64_t>(at_) + bytes(), kGuard, kGuardByte);
  }
  Operand(const Values& values, DType dtype) : Operand(static_cast<int64_t>(values.size()), dtype) { set(values); }
  Operand(const Operand&) = delete;
  Operand(Operand&&) = default;

  int64_t bytes() const { return elements_ * size_of(dtype_); }
  int64_t elements() const { return elements_; }
  void* data() { return memory_.data() + at_; }
  const void* data() const { return memory_.data() + at_; }
  float* f32() { return static_cast<float*>(data()); }
  In in() const { return {data(), dtype_}; }
  Out out() { return {data(), dtype_}; }

  void set(const Values& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<float>(values[i]);
      if (is_half(dtype_)) {
        const uint16_t bits = dtype_ == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
        std::memcpy(memory_.data() + at_ + i * 2, &bits, 2);
      } else {
        std::memcpy(memory_.data() + at_ + i * 4, &value, 4);
      }
    }
  }
  Values values() const {
    Values result(static_cast<size_t>(elements_));
    for (size_t i = 0; i < result.size(); ++i) {
      if (is_half(dtype_)) {
        uint16_t bits = 0;
        std::memcpy(&bits, memory_.data() + at_ + i * 2, 2);
        result[i] = dtype_ == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
      } else {
        float value = 0;
        std::memcpy(&value, memory_.data() + at_ + i * 4, 4);
        result[i] = value;
      }
    }
    return result;
  }
  bool same_bits(const Operand& other) const { return std::memcmp(data(), other.data(), static_cast<size_t>(bytes())) == 0; }
  bool intact() const {  // nothing was written beside it
    const auto guard = [&](size_t from) {
      return std::all_of(memory_.begin() + static_cast<int64_t>(from), memory_.begin() + static_cast<int64_t>(from) + kGuard,
                         [](uint8_t byte) { return byte == kGuardByte; });
    };
    return guard(at_ - kGuard) && guard(at_ + static_cast<size_t>(bytes()));
  }

 private:
  static constexpr int64_t kGuard = 64;
  static constexpr uint8_t kGuardByte = 0x5a, kUnwritten = 0xff;

  int64_t elements_;
  DType dtype_;
  std::vector<uint8_t> memory_;
  size_t at_ = 0;
};

// Exactly `bytes` of workspace between guards.
inline Operand workspace_of(int64_t bytes) { return Operand((bytes + 3) / 4, DType::f32); }
inline Workspace as_workspace(Operand& operand, int64_t bytes) { return {operand.data(), bytes}; }

// Normal numbers, each exact in bf16 and in f16.
inline Values random_values(int64_t elements, uint64_t stream, double scale = 1.0) {
  const std::span<const float> normals = tests::normals(17, stream, elements);
  Values values(static_cast<size_t>(elements));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = f16_to_f32(f32_to_f16(bf16_to_f32(f32_to_bf16(static_cast<float>(scale) * normals[i]))));
  return values;
}

inline double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Every element within tolerance * (|expected| + 5 % of the largest).
inline void expect_close(const Values& actual, const Values& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0;
  for (double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_LE(std::abs(actual[i] - expected[i]), tolerance * (std::abs(expected[i]) + 0.05 * largest))
        << what << " at " << i << ": " << actual[i] << ", not " << expected[i];
}

// `gradient` against central differences of `loss` (fp64) around `x`: along random directions and along single elements.
inline void expect_gradient(const std::function<double(const Values&)>& loss, const Values& x, const Values& gradient,
                            const std::string& what, double tolerance = 1e-3) {
  const double norm = std::sqrt(dot(gradient, gradient));
  constexpr double kStep = 1e-5;
  for (uint64_t trial = 0; trial < 6; ++trial) {
    Values direction(x.size(), 0.0);
    if (trial < 3) {
      direction = random_values(static_cast<int64_t>(x.size()), 1000 + trial);
    } else {
      direction[Philox{.seed = trial}.words(x.size())[0] % x.size()] = 1.0;
    }
    Values ahead = x, behind = x;
    for (size_t i = 0; i < x.size(); ++i) ahead[i] += kStep * direction[i], behind[i] -= kStep * direction[i];
    const double expected = (loss(ahead) - loss(behind)) / (2 * kStep);
    const double usual = norm * std::sqrt(dot(direction, direction)) / std::sqrt(static_cast<double>(x.size()));
    ASSERT_LE(std::abs(dot(gradient, direction) - expected), tolerance * std::max(std::abs(expected), usual))
        << what << ", direction " << trial << ": " << dot(gradient, direction) << ", not " << expected;
  }
}

// test() once for each instruction set that this binary holds and this machine has.
inline void on_every_target(const std::function<void(const std::string& name)>& test) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    test(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    if (::testing::Test::HasFatalFailure()) return;
  }
}

constexpr DType kStorages[] = {DType::f32, DType::bf16, DType::f16};

// Whether operands of these types may meet in one op.
inline bool may_meet(std::initializer_list<DType> dtypes) {
  const auto has = [&](DType dtype) { return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end(); };
  return !has(DType::bf16) || !has(DType::f16);
}

// Relative error of an fp32 computation stored as dtype.
inline double tolerance_of(DType dtype) { return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-10 : 5e-6; }

// ---- The ops in fp64
// ------------------------------------------------------------------------------------------------------

struct NormReference {
  int64_t rows, cols;
  double eps;
  double offset = 0;
  Values operator()(const Values& x, const Values& weight) const {
    Values out(x.size());
    for (int64_t i = 0; i < rows; ++i) {
      double squares = 0;
      for (int64_t j = 0; j < cols; ++j) squares += x[i * cols + j] * x[i * cols + j];
      const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(cols) + eps);
      for (int64_t j = 0; j < cols; ++j) out[i * cols + j] = x[i * cols + j] * rstd * (offset + weight[j]);
    }
    return out;
  }
};

// As the papers write them; `up` may be empty.
inline Values activation_reference(Activation kind, const Values& gate, const Values& up) {
  Values out(gate.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const double x = gate[i];
    const double inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);  // sqrt(2/pi)
    out[i] = kind == Activation::silu ? x / (1.0 + std::exp(-x)) : 0.5 * x * (1.0 + std::tanh(inner));
    if (!up.empty()) out[i] *= up[i];
  }
  return out;
}

struct LayerNormReference {
  int64_t rows, cols;
  double eps;
  Values operator()(const Values& x, const Values& weight, const Values& bias) const {
    Values out(x.size());
    for (int64_t i = 0; i < rows; ++i) {
      double mean = 0, squares = 0;
      for (int64_t j = 0; j < cols; ++j) mean += x[i * cols + j] / static_cast<double>(cols);
      for (int64_t j = 0; j < cols; ++j) squares += (x[i * cols + j] - mean) * (x[i * cols + j] - mean);
      const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(cols) + eps);
      for (int64_t j = 0; j < cols; ++j) out[i * cols + j] = (x[i * cols + j] - mean) * rstd * weight[j] + bias[j];
    }
    return out;
  }
};

struct RopeReference {
  int64_t rows, heads, head_size, half;
  bool inverse;
  Values operator()(const Values& x, const Values& cosine, const Values& sine) const {
    Values out = x;
    for (int64_t row = 0; row < rows * heads; ++row) {
      for (int64_t j = 0; j < half; ++j) {
        const double c = cosine[row / heads * half + j], s = sine[row / heads * half + j] * (inverse ? -1 : 1);
        const double x1 = x[row * head_size + j], x2 = x[row * head_size + half + j];
        out[row * head_size + j] = x1 * c - x2 * s;
        out[row * head_size + half + j] = x2 * c + x1 * s;
      }
    }
    return out;
  }
};

struct AttentionReference {
  int64_t batch, seq_len, heads, kv_heads, head_size;
  double scale;
  std::vector<int32_t> document_start;  // [B, T]
  int64_t window = 0;
  double softcap = 0;

  int64_t first_key(int64_t b, int64_t t) const {
    const int64_t start = document_start[static_cast<size_t>(b * seq_len + t)];
    return window == 0 ? start : std::max(start, t - window + 1);
  }

  Values operator()(const Values& q, const Values& k, const Values& v, Values* lse = nullptr) const {
    Values out(q.size(), 0.0), share(static_cast<size_t>(seq_len));
    if (lse != nullptr) lse->assign(static_cast<size_t>(batch * heads * seq_len), 0.0);
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t t = 0; t < seq_len; ++t) {
          const double* query = &q[((b * seq_len + t) * heads + h) * head_size];
          const auto key_at = [&](int64_t s) { return ((b * seq_len + s) * kv_heads + h / (heads / kv_heads)) * head_size; };
          const int64_t first = first_key(b, t);
          double highest = -INFINITY, total = 0;
          for (int64_t s = first; s <= t; ++s) {
            const double* const key = &k[key_at(s)];
            double score = 0;
            for (int64_t d = 0; d < head_size; ++d) score += query[d] * key[d];
            share[s] = score * scale;
            if (softcap > 0) share[s] = softcap * std::tanh(share[s] / softcap);
            highest = std::max(highest, share[s]);
          }
          for (int64_t s = first; s <= t; ++s) total += share[s] = std::exp(share[s] - highest);
          if (lse != nullptr) (*lse)[(b * heads + h) * seq_len + t] = highest + std::log(total);
          double* const to = &out[((b * seq_len + t) * heads + h) * head_size];
          for (int64_t s = first; s <= t; ++s) {
            const double* const value = &v[key_at(s)];
            const double part = share[s] / total;
            for (int64_t d = 0; d < head_size; ++d) to[d] += part * value[d];
          }
        }
      }
    }
    return out;
  }
};

}  // namespace snug::kernels::testing
