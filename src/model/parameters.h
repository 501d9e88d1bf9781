#pragma once
// The parameter table of a model: every weight with its Hugging Face name and shape. Layers are folded: a name with "{}"
// stands for one tensor in each of the L layers.

#include <string>
#include <vector>

#include "model/model_spec.h"

namespace snug {

// What a parameter is, so that passes select parameters without comparing names.
enum class ParameterKind : uint8_t { embedding, norm, linear, head };

struct Parameter {
  std::string name;            // "model.layers.{}.self_attn.q_proj.weight"
  std::string module;          // last part of the module's name, as in LoRA targets: "q_proj", "lm_head", "embed_tokens"
  std::vector<int64_t> shape;  // [out, in] for linears, [C] for norms, [V, C] for embedding and head
  ParameterKind kind = ParameterKind::linear;
  bool per_layer = false;
  int64_t experts = 0;  // stacked experts [E, …]: files hold each one's tensor apart, "{e}" in the name; 0: not stacked

  int64_t elements() const;  // of one instance
  // The name with "{}" and, for stacked experts, "{e}" filled in.
  std::string instance(int64_t layer, int64_t expert = 0) const;
};

// In the order of the forward pass: embedding, one block's parameters, final norm, head. A tied head is not listed.
std::vector<Parameter> parameters_of(const ModelSpec& spec);

// Elements over all layers.
int64_t total_parameters(const ModelSpec& spec);

}  // namespace snug
