#pragma once
// The catalogue of models as a table, and all about one model.

#include <string>

#include "model/model_spec.h"

namespace snug {

// Family by family.
std::string models_text();
std::string models_json();

std::string model_text(const ModelSpec& spec);
std::string model_json(const ModelSpec& spec);

}  // namespace snug
