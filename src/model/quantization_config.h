#pragma once
// What a config.json says of the way its checkpoint's weights are quantized (transformers' BitsAndBytesConfig).

#include <optional>

#include "model/config_fields.h"
#include "model/model_spec.h"

namespace snug {

// None if the weights are not quantized. Throws Error for another method than bitsandbytes.
std::optional<StoredQuantization> read_quantization(const ConfigFields& config);

}  // namespace snug
