#pragma once
// The file of settings that takes in another as a group of Hydra's: what the group leaves open stands there.

#include <optional>

#include "recipe/dialects/document.h"

namespace snug::dialects {

// Of the YAML files in the folder above `group` ("conf/training/base.yaml") the one whose defaults say "training: base",
// with all that it takes in. None where there is none, or several.
std::optional<Document> root_of(const Document& group);

}  // namespace snug::dialects
