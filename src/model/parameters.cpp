#include "model/parameters.h"

#include <fmt/format.h>

#include "base/checked.h"

namespace snug {

int64_t Parameter::elements() const {
  int64_t count = 1;
  for (const int64_t dimension : shape) count = checked_mul(count, dimension);
  return count;
}

std::string Parameter::instance(int64_t layer, int64_t expert) const {
  std::string text = name;
  const auto fill = [&text](std::string_view place, int64_t number) {
    if (const size_t at = text.find(place); at != std::string::npos) text.replace(at, place.size(), std::to_string(number));
  };
  fill("{}", layer);
  if (experts > 0) fill("{e}", expert);
  return text;
}

std::vector<Parameter> parameters_of(const ModelSpec& spec) {
  const int64_t C = spec.hidden_size, F = spec.intermediate_size, V = spec.vocab_size, D = spec.head_size;
  const int64_t queries = checked_mul(spec.heads, D), keys = checked_mul(spec.kv_heads, D);
  const auto in_layer = [](std::string_view group, std::string_view module, std::vector<int64_t> shape, ParameterKind kind) {
    return Parameter{.name = fmt::format("model.layers.{{}}.{}{}.weight", group, module),
                     .module = std::string(module),
                     .shape = std::move(shape),
                     .kind = kind,
                     .per_layer = true};
  };
  std::vector<Parameter> table = {
      {"model.embed_tokens.weight", "embed_tokens", {V, C}, ParameterKind::embedding, false},
      in_layer("", "input_layernorm", {C}, ParameterKind::norm),
      in_layer("self_attn.", "q_proj", {queries, C}, ParameterKind::linear),
      in_layer("self_attn.", "k_proj", {keys, C}, ParameterKind::linear),
      in_layer("self_attn.", "v_proj", {keys, C}, ParameterKind::linear),
      in_layer("self_attn.", "o_proj", {C, queries}, ParameterKind::linear),
      in_layer("", "post_attention_layernorm", {C}, ParameterKind::norm),
      in_layer("mlp.", "gate_proj", {F, C}, ParameterKind::linear),
      in_layer("mlp.", "up_proj", {F, C}, ParameterKind::linear),
      in_layer("mlp.", "down_proj", {C, F}, ParameterKind::linear),
      {"model.norm.weight", "norm", {C}, ParameterKind::norm, false},
  };
  if (!spec.tied_embeddings) table.push_back({"lm_head.weight", "lm_head", {V, C}, ParameterKind::head, false});
  return table;
}

int64_t total_parameters(const ModelSpec& spec) {
  int64_t total = 0;
  for (const Parameter& parameter : parameters_of(spec)) {
    total = checked_add(total, checked_mul(parameter.elements(), parameter.per_layer ? spec.layers : 1));
  }
  return total;
}

}  // namespace snug
