#pragma once
// A config.json of every family, for tests that each must pass: sizes at which a forgotten tensor would be seen, windows
// shorter than the sequences.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace snug::test {

using Json = nlohmann::json;

inline std::vector<std::pair<std::string, Json>> families(int64_t vocab_size) {
  const auto family = [&](const char* type, const char* architecture, const Json& more) {
    Json config = {{"model_type", type},         {"architectures", {architecture}}, {"hidden_size", 128},
                   {"intermediate_size", 384},   {"num_hidden_layers", 4},          {"num_attention_heads", 4},
                   {"num_key_value_heads", 2},   {"vocab_size", vocab_size},        {"max_position_embeddings", 512},
                   {"tie_word_embeddings", true}};
    config.update(more);
    return std::pair<std::string, Json>(type, config);
  };
  const Json gemma = {{"hidden_activation", "gelu_pytorch_tanh"}, {"sliding_window", 40}, {"head_dim", 48}};
  return {family("mistral", "MistralForCausalLM", {{"sliding_window", 40}, {"tie_word_embeddings", false}}),
          family("qwen2", "Qwen2ForCausalLM", Json::object()),
          family("qwen3", "Qwen3ForCausalLM", {{"head_dim", 48}}),
          family("gemma2", "Gemma2ForCausalLM", gemma),
          family("gemma3_text", "Gemma3ForCausalLM", gemma),
          family("phi3", "Phi3ForCausalLM", {{"tie_word_embeddings", false}}),
          family("mixtral", "MixtralForCausalLM",
                 {{"num_local_experts", 6}, {"num_experts_per_tok", 2}, {"intermediate_size", 160}}),
          family("qwen3_moe", "Qwen3MoeForCausalLM",
                 {{"head_dim", 48}, {"num_experts", 10}, {"num_experts_per_tok", 3}, {"moe_intermediate_size", 96}}),
          family("gpt2", "GPT2LMHeadModel",
                 {{"n_embd", 128}, {"n_inner", 384}, {"n_layer", 4}, {"n_head", 4}, {"n_positions", 512}})};
}

// Families that can be planned only, whose layers are not all alike: the first two have no experts.
inline std::vector<std::pair<std::string, Json>> unlike_layers(int64_t vocab_size) {
  Json v2 = {{"model_type", "deepseek_v2"},    {"hidden_size", 128},        {"intermediate_size", 384},
             {"num_hidden_layers", 4},         {"num_attention_heads", 4},  {"vocab_size", vocab_size},
             {"max_position_embeddings", 512}, {"q_lora_rank", nullptr},    {"kv_lora_rank", 48},
             {"qk_nope_head_dim", 32},         {"qk_rope_head_dim", 16},    {"v_head_dim", 24},
             {"n_routed_experts", 10},         {"num_experts_per_tok", 3},  {"n_shared_experts", 2},
             {"moe_intermediate_size", 96},    {"first_k_dense_replace", 2}};
  Json v3 = v2;
  v3.update({{"model_type", "deepseek_v3"}, {"q_lora_rank", 40}, {"num_hidden_layers", 5}});
  return {{"deepseek_v2", v2}, {"deepseek_v3", v3}};
}

}  // namespace snug::test
