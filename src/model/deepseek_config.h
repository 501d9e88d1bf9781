#pragma once
// The fields of a config.json of DeepSeek's families (DeepSeek-AI, "DeepSeek-V2", 2024; "DeepSeek-V3", 2024): latent
// attention, and experts beside a shared one, after some layers without any.

#include "model/config_fields.h"
#include "model/model_spec.h"

namespace snug {

// Fills spec.latent, head_size, rotary_size and kv_heads. Throws Error.
void read_latent_attention(const ConfigFields& config, ModelSpec& spec);

// Fills spec.experts. The number of layers must be known. Throws Error.
void read_deepseek_experts(const ConfigFields& config, ModelSpec& spec);

}  // namespace snug
