#pragma once
// Row-wise int8, as LLM.int8 (arXiv 2208.07339) keeps weights: each row of a matrix over its greatest magnitude, times 127,
// rounded to nearest even (bitsandbytes: Int8Params, int8_vectorwise_quant, kInt8VectorQuant). The weights are rounded to
// fp16 first, whatever they come in, as Int8Params does. A row of zeros gets codes 0. (A GPU's 127 / absmax is approximate,
// so a code on the edge between two may differ there; the CPU's (1 / absmax) · 127 is followed.)

#include <cstdint>
#include <span>

#include "quantize/values.h"

namespace snug {

// `values` [rows, columns] row-major; `codes` likewise; `absmax`: one for each row (SCB in checkpoints). Work is split by
// calling it with whole rows. Throws Error: sizes that disagree, an element that is not finite or too large for fp16.
void quantize_int8_rows(const Values& values, int64_t columns, std::span<int8_t> codes, std::span<float> absmax);

// (code · absmax) · (1 / 127) in fp32, as int8_vectorwise_dequant computes it, rounded to the dtype of `out`. Throws Error
// where sizes disagree.
void dequantize_int8_rows(std::span<const int8_t> codes, int64_t columns, std::span<const float> absmax,
                          const ValuesOut& out);

}  // namespace snug
