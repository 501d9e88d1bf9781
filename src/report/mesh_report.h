#pragma once
// The answer to "how should so many ranks share this run?".

#include <string>

#include "advise/mesh_search.h"

namespace snug {

// The fastest first, each with memory, time and what is sent; how the first is launched.
std::string mesh_text(const ModelSpec& model, const Target& target, int64_t budget_bytes, const MeshAnswer& answer);
// The same as one object (docs/schema/meshes.json).
std::string mesh_json(const ModelSpec& model, const Target& target, int64_t budget_bytes, const MeshAnswer& answer);

}  // namespace snug
