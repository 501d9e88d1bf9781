// Writes a ModelSpec as the config.json that Hugging Face's libraries read.

#include <fmt/format.h>

#include "model/config.h"

namespace snug {

namespace {

std::string id_of(int64_t token) { return token < 0 ? "null" : std::to_string(token); }

std::string window_of(int64_t tokens) { return tokens == 0 ? "null" : std::to_string(tokens); }

std::string scaling_of(const Rope& rope) {
  if (rope.scaling == RopeScaling::none) return "null";
  if (rope.scaling == RopeScaling::linear) return fmt::format(R"({{"rope_type": "linear", "factor": {}}})", rope.factor);
  return fmt::format(
      R"({{"rope_type": "llama3", "factor": {}, "low_freq_factor": {}, "high_freq_factor": {}, "original_max_position_embeddings": {}}})",
      rope.factor, rope.low_freq_factor, rope.high_freq_factor, rope.original_max_position);
}

}  // namespace

std::string format_config(const ModelSpec& spec, DType dtype) {
  return fmt::format(
      R"({{
  "architectures": ["{}"],
  "attention_bias": {},
  "bos_token_id": {},
  "eos_token_id": {},
  "head_dim": {},
  "hidden_act": "silu",
  "hidden_size": {},
  "initializer_range": {},
  "intermediate_size": {},
  "max_position_embeddings": {},
  "mlp_bias": {},
  "model_type": "{}",
  "num_attention_heads": {},
  "num_hidden_layers": {},
  "num_key_value_heads": {},
  "pad_token_id": {},
  "rms_norm_eps": {},
  "rope_scaling": {},
  "rope_theta": {},
  "sliding_window": {},
  "tie_word_embeddings": {},
  "torch_dtype": "{}",
  "vocab_size": {}
}}
)",
      spec.architecture, spec.attention_bias, id_of(spec.bos_token_id), id_of(spec.eos_token_id), spec.head_size,
      spec.hidden_size, spec.initializer_range, spec.intermediate_size, spec.max_position, spec.mlp_bias, spec.family,
      spec.heads, spec.layers, spec.kv_heads, id_of(spec.pad_token_id), spec.norm_eps, scaling_of(spec.rope),
      spec.rope.theta, window_of(spec.sliding_window), spec.tied_embeddings, name_of(dtype), spec.vocab_size);
}

}  // namespace snug
