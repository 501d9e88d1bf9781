#pragma once
// What a config.json says of the way its checkpoint's weights are quantized (transformers' BitsAndBytesConfig).

#include "model/config_fields.h"
#include "model/model_spec.h"

namespace snug {

// Fills spec.quantization; of a model that can only be planned, files in fp8 or mxfp4 fill spec.stored_format instead.
// Throws Error for another method than bitsandbytes.
void read_quantization(const ConfigFields& config, bool plan_only, ModelSpec& spec);

}  // namespace snug
