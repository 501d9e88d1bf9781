// Dropout, noise, and DoRA's norms and columns.

#include <cmath>

#include "base/philox.h"
#include "kernels/fp64/table.h"
#include "kernels/fp64/values.h"
#include "kernels/ops/dora.h"
#include "kernels/ops/dropout.h"
#include "kernels/ops/noise.h"

namespace snug::kernels::fp64 {
namespace {

// The draws are part of what the op means: Philox by seed and purpose, stream, layer and step, and the micro-batch.
void dropout(const Dropout& op) {
  constexpr uint64_t kPurpose = 0x64726f706f757400;
  const auto counter = [&](Scalar which) { return static_cast<uint64_t>(scalar(op.scalars, which)); };
  const Philox random{op.seed ^ kPurpose,
                      op.stream << 48 | static_cast<uint64_t>(op.layer) << 32 | (counter(Scalar::step) & 0xffffffffU)};
  const double threshold = std::round(op.probability * 0x1p32);
  for (int64_t i = 0; i < op.elements; ++i) {
    const uint64_t block = (counter(Scalar::micro_batch) << 40) + static_cast<uint64_t>((op.first_element + i) / 4);
    const bool left_out = static_cast<double>(random.words(block)[static_cast<size_t>(i % 4)]) < threshold;
    const double kept = left_out ? 0.0 : 1.0 / (1.0 - op.probability);
    const double value = Reader(op.x)[i] * (op.complement ? 1.0 - kept : kept);
    Writer(op.out).set(i, op.accumulate ? Writer(op.out)[i] + value : value);
  }
}

void noise(const Noise& op) {
  constexpr uint64_t kPurpose = 0x6e6f697365000000;
  const Philox random{op.seed ^ kPurpose, static_cast<uint64_t>(scalar(op.scalars, Scalar::step))};
  for (int64_t i = 0; i < op.elements; ++i) {
    const uint64_t block = (static_cast<uint64_t>(scalar(op.scalars, Scalar::micro_batch)) << 40) +
                           static_cast<uint64_t>((op.first_element + i) / 4);
    const auto drawn = static_cast<int32_t>(random.words(block)[static_cast<size_t>(i % 4)]);
    Writer(op.x).set(i, Writer(op.x)[i] + static_cast<double>(op.magnitude) * drawn * 0x1p-31);
  }
}

void dora_norm(const DoraNorm& op) {
  const Reader weight(op.weight);
  for (int64_t row = 0; row < op.rows; ++row) {
    double squares = 0;
    for (int64_t col = 0; col < op.cols; ++col) {
      double value = weight[op.input_features_first ? col * op.rows + row : row * op.cols + col];
      for (int64_t r = 0; r < op.rank && op.a != nullptr; ++r)
        value += static_cast<double>(op.scale) * static_cast<double>(op.b[row * op.rank + r]) *
                 static_cast<double>(op.a[r * op.cols + col]);
      squares += value * value;
    }
    op.norm[row] = static_cast<float>(std::sqrt(squares));
  }
}

void scale_columns(const ScaleColumns& op) {
  for (int64_t i = 0; i < op.rows * op.cols; ++i)
    Writer(op.out).set(
        i, Reader(op.x)[i] * static_cast<double>(op.magnitude[i % op.cols]) / static_cast<double>(op.norm[i % op.cols]));
}

void scale_columns_backward(const ScaleColumnsBackward& op) {
  for (int64_t j = 0; j < op.cols; ++j) {
    double sum = 0;
    for (int64_t i = j; i < op.rows * op.cols; i += op.cols) {
      const auto d_out = static_cast<double>(op.d_out[i]);
      sum += d_out * Reader(op.x)[i] / static_cast<double>(op.norm[j]);
      op.d_x[i] = static_cast<float>(d_out * static_cast<double>(op.magnitude[j]) / static_cast<double>(op.norm[j]));
    }
    op.d_magnitude[j] += static_cast<float>(sum);
  }
}

}  // namespace

const Kernel entries::dropout = plain<Dropout, fp64::dropout>();
const Kernel entries::noise = plain<Noise, fp64::noise>();
const Kernel entries::dora_norm = plain<DoraNorm, fp64::dora_norm>();
const Kernel entries::scale_columns = plain<ScaleColumns, fp64::scale_columns>();
const Kernel entries::scale_columns_backward = plain<ScaleColumnsBackward, fp64::scale_columns_backward>();

}  // namespace snug::kernels::fp64
