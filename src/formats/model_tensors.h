#pragma once
// Tensors by the names that the model's parameters have.

#include <string>

#include "formats/tensor_source.h"
#include "model/model_spec.h"

namespace snug {

// The tensor of this name, or of a name that files of the family have for it. Throws Error.
const TensorEntry& find_tensor(const ModelSpec& model, const TensorSource& source, const std::string& name);

}  // namespace snug
