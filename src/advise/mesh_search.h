#pragma once
// search_meshes: how should so many ranks share a run? Every mesh that the model allows is tried: ranks that split products
// (within a node), sequences, layers and experts, what the others share out, with and without recomputing blocks. The step
// stays the same: as many sequences, whoever works on them. By the estimate first; the fastest are planned in full.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/model_spec.h"
#include "plan/target.h"
#include "recipe/recipe.h"

namespace snug {

struct MeshChoice {
  Recipe recipe;
  int64_t peak_bytes = 0;  // of the rank that needs most
  double step_seconds = 0;
  int64_t sent_bytes = 0;  // by it, a step
};

struct MeshAnswer {
  int64_t tried = 0;
  int64_t step_rows = 0;            // sequences
  std::vector<MeshChoice> fastest;  // that fit, the fastest first
  std::optional<MeshChoice> least;  // none fits: what needs least
  double seconds = 0;               // that the search took
};

// `recipe`: of one rank where all have batches of their own; its num_processes are shared out. Keys in `fixed` stay as they
// are. Throws Error where no mesh makes sense for the model.
MeshAnswer search_meshes(const ModelSpec& model, const Recipe& recipe, const Target& target,
                         const std::vector<std::string>& fixed);

}  // namespace snug
