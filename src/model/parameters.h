#pragma once
// The parameter table of a model: every weight with its Hugging Face name and shape. Layers are folded: a name with "{}"
// stands for one tensor in each of the L layers.

#include <string>
#include <utility>
#include <vector>

#include "model/model_spec.h"

namespace snug {

// What a parameter is, so that passes select parameters without comparing names.
enum class ParameterKind : uint8_t { embedding, norm, linear, bias, router, expert, head };

struct Parameter {
  std::string name;            // "model.layers.{}.self_attn.q_proj.weight", as transformers names it
  std::string module;          // last part of the module's name, as in LoRA targets: "q_proj", "lm_head", "embed_tokens"
  std::vector<int64_t> shape;  // [out, in] for linears and the router, [N] for norms and biases, [V, C] for embedding and
                               // head, [E, out, in] for experts
  ParameterKind kind = ParameterKind::linear;
  bool per_layer = false;
  std::string part = {};              // where the forward pass reads it, whatever its family calls it: "query", "mlp_norm"
  bool input_features_first = false;  // a linear's shape is [in, out]
  int64_t experts = 0;  // stacked experts [E, …]: files hold each one's tensor apart, "{e}" in the name; 0: not stacked

  int64_t first_layer = 0;  // of a layer's parameter: the layers that have it are these …
  int64_t layer_count = 0;  // … so many; 0: all

  int64_t elements() const;  // of one instance
  // How many there are of it in a model of so many layers.
  int64_t instances(int64_t layers) const {
    if (!per_layer) return 1;
    return layer_count > 0 ? layer_count : layers;
  }
  // One past the last layer that has it; 1 for what there is once.
  int64_t end_layer(int64_t layers) const { return first_layer + instances(layers); }
  // The name with "{}" and, for stacked experts, "{e}" filled in.
  std::string instance(int64_t layer, int64_t expert = 0) const;
  int64_t input_features() const { return shape[input_features_first ? 0 : 1]; }   // of a linear or head
  int64_t output_features() const { return shape[input_features_first ? 1 : 0]; }  // likewise
};

// In the order of the forward pass: embedding, one block's parameters, final norm, head. A tied head is not listed. Vision
// towers are not either.
std::vector<Parameter> parameters_of(const ModelSpec& spec);

// Elements over all layers, a vision tower's included.
int64_t total_parameters(const ModelSpec& spec);

// How files may differ from these names: a beginning, and what files may have in its place.
std::vector<std::pair<std::string, std::string>> name_aliases(const ModelSpec& spec);

// True if files of the family may hold a tensor of this name that the text model has no use for: tables that are computed,
// masks, vision towers.
bool is_beside_the_model(const ModelSpec& spec, std::string_view name);

// A tensor of a vision tower or its projector: it stays as it is and goes along where the model is written.
bool is_in_tower(const ModelSpec& spec, std::string_view name);

}  // namespace snug
