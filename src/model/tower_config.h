#pragma once
// Vision towers, which stay as they are: of them the parameters are counted, of Gemma 3's one by one.

#include "model/config_fields.h"
#include "model/model_spec.h"

namespace snug {

// Fills spec.vision_parameters, and spec.tower where these are known one by one, from the vision_config of spec.family's
// tower, if there is one.
void read_tower(const ConfigFields& outer, ModelSpec& spec);

}  // namespace snug
