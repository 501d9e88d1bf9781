#pragma once
// A random-weight checkpoint of a given configuration, for benchmarks, tests and pretraining from nothing.

#include <filesystem>

#include "formats/quantize_checkpoint.h"
#include "model/model_spec.h"

namespace snug {

// Writes config.json and model.safetensors into `directory` (made if it is not there), streaming: linears, embedding and
// head from N(0, initializer_range), norms one. `tokenizer`: a directory whose tokenizer files are copied along, or empty.
void initialize_checkpoint(const ModelSpec& spec, DType dtype, uint64_t seed, const std::filesystem::path& directory,
                           const std::filesystem::path& tokenizer);

// What quantize_checkpoint would make of it, to the byte, without the numbers on disk: piece by piece. `request.model` stays
// empty.
QuantizeSummary initialize_quantized(const ModelSpec& spec, DType dtype, uint64_t seed, const QuantizeRequest& request,
                                     const std::filesystem::path& tokenizer);

}  // namespace snug
