#pragma once
// What families call the modules that parameters belong to, as transformers names them. Empty where a family has no such
// module; parameters.cpp knows which a model has.

#include <string_view>

#include "model/model_spec.h"

namespace snug {

// The modules of a block, as a family calls them.
struct ModuleNames {
  std::string_view root, layers, embedding, positions, final_norm;
  std::string_view attention_norm, query, key, value, query_key_value, query_norm, key_norm, output, attention_post_norm;
  std::string_view mlp_norm, gate, up, gate_up, down, mlp_post_norm;
  std::string_view head = "lm_head";
};

ModuleNames module_names(const ModelSpec& spec);

}  // namespace snug
