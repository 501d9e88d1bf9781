#pragma once
// Fields of config.json beyond the common ones, of families that can only be planned (model/planned_families.cpp).

#include <array>
#include <string_view>

namespace snug {

inline constexpr std::array<std::string_view, 6> kSmolLm3 = {
    "no_rope_layers", "no_rope_layer_interval", "layer_types", "sliding_window", "use_sliding_window", "max_window_layers"};
inline constexpr std::array<std::string_view, 11> kFalcon = {
    "num_kv_heads",  "multi_query", "parallel_attn",      "new_decoder_architecture", "num_ln_in_parallel_attn",
    "bias",          "alibi",       "layer_norm_epsilon", "ffn_hidden_size",          "activation",
    "hidden_dropout"};
inline constexpr std::array<std::string_view, 7> kGptOss = {
    "sliding_window",    "layer_types",  "num_local_experts",     "num_experts_per_tok",
    "experts_per_token", "swiglu_limit", "initial_context_length"};
inline constexpr auto kDeepseek = std::to_array<std::string_view>({"auto_map",         "aux_loss_alpha",
                                                                   "ep_size",          "first_k_dense_replace",
                                                                   "kv_lora_rank",     "moe_intermediate_size",
                                                                   "moe_layer_freq",   "n_group",
                                                                   "n_routed_experts", "n_shared_experts",
                                                                   "norm_topk_prob",   "num_experts_per_tok",
                                                                   "num_mtp_layers",   "num_nextn_predict_layers",
                                                                   "q_lora_rank",      "qk_head_dim",
                                                                   "qk_nope_head_dim", "qk_rope_head_dim",
                                                                   "rope_interleave",  "routed_scaling_factor",
                                                                   "scoring_func",     "seq_aux",
                                                                   "topk_group",       "topk_method",
                                                                   "v_head_dim"});
inline constexpr std::array<std::string_view, 4> kGranite = {"embedding_multiplier", "attention_multiplier",
                                                             "residual_multiplier", "logits_scaling"};
inline constexpr std::array<std::string_view, 6> kGraniteMoe = {"embedding_multiplier", "attention_multiplier",
                                                                "residual_multiplier",  "logits_scaling",
                                                                "num_local_experts",    "num_experts_per_tok"};
inline constexpr std::array<std::string_view, 2> kOlmo3 = {"sliding_window", "layer_types"};
inline constexpr std::array<std::string_view, 1> kErnie = {"use_bias"};
inline constexpr std::array<std::string_view, 3> kExaone4 = {"sliding_window", "sliding_window_pattern", "layer_types"};
inline constexpr std::array<std::string_view, 5> kOlmoe = {"num_experts", "num_local_experts", "num_experts_per_tok",
                                                           "norm_topk_prob", "clip_qkv"};
inline constexpr std::array<std::string_view, 5> kQwenVl = {"use_sliding_window", "sliding_window", "max_window_layers",
                                                            "layer_types", "vision_config"};
inline constexpr auto kQwenVlMoe = std::to_array<std::string_view>(
    {"use_sliding_window", "sliding_window", "max_window_layers", "layer_types", "vision_config", "num_experts",
     "num_experts_per_tok", "norm_topk_prob", "mlp_only_layers", "decoder_sparse_step", "moe_intermediate_size"});
inline constexpr auto kQwen2Moe = std::to_array<std::string_view>(
    {"sliding_window", "use_sliding_window", "max_window_layers", "num_experts", "num_local_experts", "layer_types",
     "num_experts_per_tok", "norm_topk_prob", "mlp_only_layers", "decoder_sparse_step", "shared_expert_intermediate_size",
     "moe_intermediate_size", "qkv_bias"});
inline constexpr std::array<std::string_view, 1> kGlm = {"attention_dropout"};
inline constexpr auto kGlm4Moe =
    std::to_array<std::string_view>({"first_k_dense_replace", "moe_intermediate_size", "n_group", "n_routed_experts",
                                     "n_shared_experts", "norm_topk_prob", "num_experts_per_tok", "num_mtp_layers",
                                     "num_nextn_predict_layers", "routed_scaling_factor", "topk_group", "use_qk_norm"});
inline constexpr std::array<std::string_view, 8> kStableLm = {
    "layer_norm_eps", "use_qkv_bias",          "qk_layernorm", "use_parallel_residual",
    "hidden_dropout", "rotary_scaling_factor", "norm_eps",     "rope_pct"};
inline constexpr std::array<std::string_view, 4> kPhi = {"layer_norm_eps", "qk_layernorm", "resid_pdrop", "embd_pdrop"};
inline constexpr std::array<std::string_view, 3> kSeedOss = {"attention_out_bias", "residual_dropout", "attention_dropout"};
inline constexpr std::array<std::string_view, 1> kNemotron = {"norm_eps"};
inline constexpr auto kOpt = std::to_array<std::string_view>(
    {"ffn_dim", "word_embed_proj_dim", "do_layer_norm_before", "enable_bias", "dropout", "layerdrop", "activation_function",
     "activation_dropout", "layer_norm_elementwise_affine", "_remove_final_layer_norm", "init_std"});
inline constexpr auto kBloom = std::to_array<std::string_view>(
    {"n_layer", "n_head", "n_embed", "n_inner", "num_layers", "apply_residual_connection_post_layernorm", "hidden_dropout",
     "layer_norm_epsilon", "slow_but_exact", "offset_alibi", "seq_length", "masked_softmax_fusion", "bias_dropout_fusion",
     "skip_bias_add", "skip_bias_add_qkv", "unk_token_id", "attention_softmax_in_fp32"});
inline constexpr auto kQwen1 = std::to_array<std::string_view>({"attn_dropout_prob",
                                                                "auto_map",
                                                                "bf16",
                                                                "emb_dropout_prob",
                                                                "fp16",
                                                                "fp32",
                                                                "kv_channels",
                                                                "layer_norm_epsilon",
                                                                "no_bias",
                                                                "onnx_safe",
                                                                "rotary_emb_base",
                                                                "rotary_pct",
                                                                "scale_attn_weights",
                                                                "seq_length",
                                                                "softmax_in_fp32",
                                                                "use_cache_quantization",
                                                                "use_cache_kernel",
                                                                "use_dynamic_ntk",
                                                                "use_flash_attn",
                                                                "use_logn_attn"});
inline constexpr std::array<std::string_view, 6> kBaichuan = {
    "auto_map", "model_max_length", "z_loss_weight", "_from_model_config", "gradient_checkpointing", "sequence_parallel"};
inline constexpr auto kChatGlm = std::to_array<std::string_view>({"auto_map",
                                                                  "add_bias_linear",
                                                                  "add_qkv_bias",
                                                                  "apply_query_key_layer_scaling",
                                                                  "apply_residual_connection_post_layernorm",
                                                                  "attention_softmax_in_fp32",
                                                                  "bias_dropout_fusion",
                                                                  "classifier_dropout",
                                                                  "ffn_hidden_size",
                                                                  "fp32_residual_connection",
                                                                  "hidden_dropout",
                                                                  "kv_channels",
                                                                  "layernorm_epsilon",
                                                                  "multi_query_attention",
                                                                  "multi_query_group_num",
                                                                  "num_layers",
                                                                  "original_rope",
                                                                  "padded_vocab_size",
                                                                  "post_layer_norm",
                                                                  "pre_seq_len",
                                                                  "prefix_projection",
                                                                  "quantization_bit",
                                                                  "rmsnorm",
                                                                  "rope_ratio",
                                                                  "seq_length"});

}  // namespace snug
