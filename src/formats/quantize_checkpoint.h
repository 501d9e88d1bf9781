#pragma once
// A checkpoint of numbers as one of bitsandbytes' codes, which transformers loads as if it had quantized and saved the model
// itself: every linear quantized, all else as it is, `quantization_config` in config.json. Tensors are read, quantized and
// written in pieces; what is held of one is its scales.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/dtype.h"
#include "formats/tensor_source.h"
#include "model/model_spec.h"

namespace snug {

struct QuantizeRequest {
  std::filesystem::path model;  // a checkpoint directory
  std::filesystem::path output;
  DType type = DType::nf4;              // nf4, fp4 or i8
  bool double_quant = true;             // of 4-bit types: the scales are quantized too
  int64_t shard_bytes = 5'000'000'000;  // of the weights in one file, as Hugging Face splits them
  bool overwrite = false;               // a model that stands in `output` is replaced
};

struct QuantizeSummary {
  int64_t tensors = 0, quantized = 0;  // of the model
  int64_t bytes_before = 0, bytes = 0, files = 0;
};

// Writes `output`, which appears whole or not at all. Throws Error: a model that is quantized already, a tensor that is
// missing or has no place, a number that is not finite (with file and tensor), an output that holds something.
QuantizeSummary quantize_checkpoint(const QuantizeRequest& request);

// The same of tensors from anywhere. `config`: the text of config.json, without quantization; `beside`: writes what else
// belongs into the directory, before it appears.
QuantizeSummary quantize_tensors(const TensorSource& source, const ModelSpec& spec, const std::string& config,
                                 const QuantizeRequest& request,
                                 const std::function<void(const std::filesystem::path&)>& beside);

}  // namespace snug
