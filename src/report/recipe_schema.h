#pragma once
// The key table as a JSON Schema: editors check and complete a recipe by it.

#include <string>

namespace snug {

// Draft 7, which YAML's language servers know best.
std::string recipe_schema();

}  // namespace snug
