#pragma once
// Vision towers, which stay as they are: of them only the parameters are counted.

#include "model/config_fields.h"
#include "model/model_spec.h"

namespace snug {

// Fills spec.vision_parameters from the vision_config of spec.family's tower, if there is one.
void read_tower(const ConfigFields& outer, ModelSpec& spec);

}  // namespace snug
