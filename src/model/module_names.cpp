#include "model/module_names.h"

namespace snug {

namespace {

constexpr ModuleNames kLlama = {.root = "model.",
                                .layers = "layers",
                                .embedding = "embed_tokens",
                                .positions = "",
                                .final_norm = "norm",
                                .attention_norm = "input_layernorm",
                                .query = "self_attn.q_proj",
                                .key = "self_attn.k_proj",
                                .value = "self_attn.v_proj",
                                .query_key_value = "self_attn.qkv_proj",
                                .query_norm = "self_attn.q_norm",
                                .key_norm = "self_attn.k_norm",
                                .output = "self_attn.o_proj",
                                .attention_post_norm = "",
                                .mlp_norm = "post_attention_layernorm",
                                .gate = "mlp.gate_proj",
                                .up = "mlp.up_proj",
                                .gate_up = "mlp.gate_up_proj",
                                .down = "mlp.down_proj",
                                .mlp_post_norm = ""};

constexpr ModuleNames gemma_names(std::string_view root) {
  ModuleNames names = kLlama;
  names.root = root;
  names.attention_post_norm = "post_attention_layernorm";
  names.mlp_norm = "pre_feedforward_layernorm";
  names.mlp_post_norm = "post_feedforward_layernorm";
  return names;
}

constexpr ModuleNames kGpt2Names = {.root = "transformer.",
                                    .layers = "h",
                                    .embedding = "wte",
                                    .positions = "wpe",
                                    .final_norm = "ln_f",
                                    .attention_norm = "ln_1",
                                    .query = "",
                                    .key = "",
                                    .value = "",
                                    .query_key_value = "attn.c_attn",
                                    .query_norm = "",
                                    .key_norm = "",
                                    .output = "attn.c_proj",
                                    .attention_post_norm = "",
                                    .mlp_norm = "ln_2",
                                    .gate = "",
                                    .up = "mlp.c_fc",
                                    .gate_up = "",
                                    .down = "mlp.c_proj",
                                    .mlp_post_norm = ""};

constexpr ModuleNames kFalconNames = {.root = "transformer.",
                                      .layers = "h",
                                      .embedding = "word_embeddings",
                                      .positions = "",
                                      .final_norm = "ln_f",
                                      .attention_norm = "input_layernorm",
                                      .query = "",
                                      .key = "",
                                      .value = "",
                                      .query_key_value = "self_attention.query_key_value",
                                      .query_norm = "",
                                      .key_norm = "",
                                      .output = "self_attention.dense",
                                      .attention_post_norm = "",
                                      .mlp_norm = "ln_mlp",
                                      .gate = "",
                                      .up = "mlp.dense_h_to_4h",
                                      .gate_up = "",
                                      .down = "mlp.dense_4h_to_h",
                                      .mlp_post_norm = ""};

// Of the text model beside a vision tower.
constexpr ModuleNames inner_names() {
  ModuleNames names = kLlama;
  names.root = "model.language_model.";
  return names;
}

// BLOOM's blocks are Falcon's but for the norms' names.
constexpr ModuleNames bloom_names() {
  ModuleNames names = kFalconNames;
  names.mlp_norm = "post_attention_layernorm";
  return names;
}

constexpr ModuleNames glm4_names() {
  ModuleNames names = kLlama;
  names.attention_post_norm = "post_self_attn_layernorm";
  names.mlp_post_norm = "post_mlp_layernorm";
  return names;
}

constexpr ModuleNames phi_names() {
  ModuleNames names = kLlama;
  names.output = "self_attn.dense";
  names.final_norm = "final_layernorm";
  names.up = "mlp.fc1";
  names.down = "mlp.fc2";
  return names;
}

constexpr ModuleNames opt_names() {
  ModuleNames names = kLlama;
  names.root = "model.decoder.";
  names.positions = "embed_positions";
  names.final_norm = "final_layer_norm";
  names.attention_norm = "self_attn_layer_norm";
  names.output = "self_attn.out_proj";
  names.mlp_norm = "final_layer_norm";
  names.up = "fc1";
  names.down = "fc2";
  return names;
}

// Each MLP gates by w2.
constexpr ModuleNames qwen_names() {
  ModuleNames names = kGpt2Names;
  names.gate = "mlp.w2";
  names.up = "mlp.w1";
  return names;
}

constexpr ModuleNames baichuan_names() {
  ModuleNames names = kLlama;
  names.query_key_value = "self_attn.W_pack";
  return names;
}

constexpr ModuleNames chatglm_names() {
  ModuleNames names = kFalconNames;
  names.layers = "encoder.layers";
  names.embedding = "embedding.word_embeddings";
  names.final_norm = "encoder.final_layernorm";
  names.query_key_value = "self_attention.query_key_value";
  names.mlp_norm = "post_attention_layernorm";
  names.gate_up = "mlp.dense_h_to_4h";
  names.head = "transformer.output_layer";
  return names;
}

constexpr ModuleNames falcon_names(ParallelBlock parallel) {
  ModuleNames names = kFalconNames;
  if (parallel == ParallelBlock::two_norms) names.attention_norm = "ln_attn";
  return names;
}

}  // namespace

ModuleNames module_names(const ModelSpec& spec) {
  switch (spec.naming) {
    case TensorNaming::gpt2: return kGpt2Names;
    case TensorNaming::falcon: return falcon_names(spec.parallel);
    case TensorNaming::olmo2:
    case TensorNaming::gemma: return gemma_names(spec.family == "gemma3" ? "model.language_model." : "model.");
    case TensorNaming::glm4: return glm4_names();
    case TensorNaming::phi: return phi_names();
    case TensorNaming::opt: return opt_names();
    case TensorNaming::bloom: return bloom_names();
    case TensorNaming::qwen: return qwen_names();
    case TensorNaming::baichuan: return baichuan_names();
    case TensorNaming::chatglm: return chatglm_names();
    case TensorNaming::llama:
    case TensorNaming::phi3:
    case TensorNaming::mixtral:
    case TensorNaming::qwen_moe:
    case TensorNaming::gpt_oss:
    case TensorNaming::granite_moe:
    case TensorNaming::glm4_moe:
    case TensorNaming::stablelm:
    case TensorNaming::deepseek: break;
  }
  for (const std::string_view family : {"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "mistral3"})
    if (spec.family == family) return inner_names();
  return kLlama;
}

}  // namespace snug
