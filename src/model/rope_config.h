#pragma once
// The fields of a config.json that say how positions rotate: `rope_theta` and `rope_scaling` (transformers 4) or
// `rope_parameters` (transformers 5), for all layers or for full and sliding attention apart (Gemma 3).

#include "model/config_fields.h"
#include "model/model_spec.h"

namespace snug {

// Fills spec.rope, rotary_size and local_rope_theta. head_size, max_position and local_layers must be known. Throws Error.
void read_rope(const ConfigFields& config, double default_theta, double default_share, ModelSpec& spec);

}  // namespace snug
