// embedding: rows of a table. Its gradient splits columns over threads, so that every sum keeps the order of rows.

#include <cstdint>
#include <string>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#include "kernels/rows/add.h"

void embedding_rows(const Embedding& op, int64_t begin, int64_t end) {
  with_types(op.table, op.out, [&](auto* table, auto* out) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      const auto* row = table + op.ids[i] * op.cols;
      if (op.scale == 1.0F) {
        copy_row(HighwayLanes(), row, out + i * op.cols, op.cols);
      } else {
        scale_row(HighwayLanes(), row, op.scale, out + i * op.cols, op.cols);
      }
    }
  });
}

void embedding_backward_cols(const EmbeddingBackward& op, int64_t begin, int64_t end) {
  for (int64_t i = 0; i < op.rows; ++i) {
    if (op.ids[i] == op.untrained_row) continue;
    float* const row = op.d_table + op.ids[i] * op.cols + begin;
    add_scaled_row(HighwayLanes(), op.d_out + i * op.cols + begin, op.scale, row, end - begin);
  }
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(embedding_rows);
HWY_EXPORT(embedding_backward_cols);

namespace {

void require_ids(const int32_t* ids, int64_t rows, int64_t vocabulary) {
  for (int64_t i = 0; i < rows; ++i)
    if (ids[i] < 0 || ids[i] >= vocabulary)
      throw Error("token " + std::to_string(ids[i]) + " is outside of a vocabulary of " + std::to_string(vocabulary));
}

}  // namespace

void embedding(const Embedding& op) {
  require_storage({op.table.dtype, op.out.dtype});
  require_ids(op.ids, op.rows, op.vocabulary);
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(embedding_rows)(op, begin, end);
  });
}

void embedding_backward(const EmbeddingBackward& op) {
  constexpr int64_t kCacheLine = 16;  // floats
  require_ids(op.ids, op.rows, op.vocabulary);
  for_parts(op.cut.threads, op.cols, kCacheLine, [&](int32_t, int64_t begin, int64_t end) {
    if (begin < end) HWY_DYNAMIC_DISPATCH(embedding_backward_cols)(op, begin, end);
  });
}

const Kernel cpu::embedding = cpu::plain<Embedding, kernels::embedding>();
const Kernel cpu::embedding_backward = cpu::plain<EmbeddingBackward, kernels::embedding_backward>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
