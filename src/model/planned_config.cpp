#include "model/planned_config.h"

#include <algorithm>

#include "base/checked.h"
#include "model/tensor_listing.h"

namespace snug {

namespace {

void must_be(const ConfigFields& config, std::string_view name, bool value, bool fallback) {
  if (config.boolean(name, fallback) != value)
    config.refuse(fmt::format("{} = {} is not supported yet", config.label(name), !value));
}

// A number of layers or heads under either of two names.
int64_t either(const ConfigFields& config, std::string_view name, std::string_view other, int64_t fallback, int64_t most) {
  return config.integer(config.field(name) ? name : other, fallback, 1, most);
}

}  // namespace

namespace {

// Falcon's first, of RefinedWeb: blocks after one another, biases and ALiBi.
void list_first_falcon(const ConfigFields& config, ModelSpec& spec) {
  spec.unmodelled_step = "positions by slopes (ALiBi)";
  const int64_t C = spec.hidden_size;
  Listing list(spec, "transformer.h.{}.");
  list.once("transformer.word_embeddings.weight", {spec.vocab_size, C});
  list.biased_linear("self_attention.query_key_value", checked_mul(3, C), C);
  list.biased_linear("self_attention.dense", C, C);
  list.plain_mlp("mlp.dense_h_to_4h", "mlp.dense_4h_to_h");
  list.biased_norm("input_layernorm");
  list.biased_norm("post_attention_layernorm");
  list.final_biased_norm("transformer.ln_f");
  if (!config.boolean("tie_word_embeddings", true)) list.once("lm_head.weight", {spec.vocab_size, C});
}

}  // namespace

// Two generations of blocks; of sequential blocks, with biases and ALiBi, the parameters alone.
void read_falcon_sizes(const ConfigFields& config, ModelSpec& spec) {
  spec.hidden_size = config.dimension("hidden_size", 4544);
  spec.intermediate_size = config.dimension("ffn_hidden_size", checked_mul(spec.hidden_size, 4));
  spec.vocab_size = config.dimension("vocab_size", 65024);
  spec.layers = config.integer("num_hidden_layers", 32, 1, kMostLayers);
  spec.heads = config.dimension("num_attention_heads", 71);
  spec.max_position = config.dimension("max_position_embeddings", 2048);
  spec.norm_eps = config.positive("layer_norm_epsilon", 1e-5);
  const bool grouped = config.boolean("new_decoder_architecture", false);
  const bool one_key = !grouped && config.boolean("multi_query", true);
  spec.kv_heads = one_key ? 1 : config.dimension("num_kv_heads", spec.heads);
  spec.parallel = grouped && config.integer("num_ln_in_parallel_attn", 2, 1, 2) == 2 ? ParallelBlock::two_norms
                                                                                     : ParallelBlock::one_norm;
  spec.dropout = config.number("hidden_dropout", 0.0);
  const bool one_after_another = !grouped && !one_key && !config.boolean("parallel_attn", true);
  if (one_after_another && config.boolean("bias", false) && config.boolean("alibi", false)) {
    spec.parallel = ParallelBlock::none;
    list_first_falcon(config, spec);
    return;
  }
  if (!grouped) must_be(config, "parallel_attn", true, true);
  for (const std::string_view name : {"bias", "alibi"}) must_be(config, name, false, false);
}

namespace {

// The model of 350 M: embeddings narrower than the blocks, norms after them and none at the end (modeling_opt.py).
void list_narrow_opt(const ConfigFields& config, ModelSpec& spec) {
  spec.unmodelled_step = "embeddings narrower than the blocks";
  const int64_t C = spec.hidden_size, narrow = config.dimension("word_embed_proj_dim");
  Listing list(spec, "model.decoder.layers.{}.");
  list.once("model.decoder.embed_tokens.weight", {spec.vocab_size, narrow});
  list.once("model.decoder.embed_positions.weight", {checked_add(spec.max_position, 2), C});
  list.once("model.decoder.project_in.weight", {C, narrow});
  list.once("model.decoder.project_out.weight", {narrow, C});
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"})
    list.biased_linear(name, C, C);
  list.plain_mlp("fc1", "fc2");
  list.biased_norm("self_attn_layer_norm");
  list.biased_norm("final_layer_norm");
}

}  // namespace

// Zhang et al., "OPT", 2022.
void read_opt_sizes(const ConfigFields& config, ModelSpec& spec) {
  spec.hidden_size = config.dimension("hidden_size", 768);
  spec.intermediate_size = config.dimension("ffn_dim", 3072);
  spec.vocab_size = config.dimension("vocab_size", 50272);
  spec.layers = config.integer("num_hidden_layers", 12, 1, kMostLayers);
  spec.heads = spec.kv_heads = config.dimension("num_attention_heads", 12);
  spec.max_position = config.dimension("max_position_embeddings", 2048);
  spec.norm_eps = 1e-5;
  spec.dropout = config.number("dropout", 0.1);
  if (config.string("activation_function", "relu") == "relu") spec.activation_form = ActivationForm::relu;
  for (const std::string_view name : {"enable_bias", "layer_norm_elementwise_affine"}) must_be(config, name, true, true);
  const bool narrow = config.dimension("word_embed_proj_dim", spec.hidden_size) != spec.hidden_size;
  must_be(config, "do_layer_norm_before", !narrow, true);
  if (narrow) list_narrow_opt(config, spec);
  must_be(config, "_remove_final_layer_norm", false, false);
  if (config.number("layerdrop", 0.0) != 0.0) config.refuse("layerdrop is not supported yet");
}

// Le Scao et al., "BLOOM", 2022.
void read_bloom_sizes(const ConfigFields& config, ModelSpec& spec) {
  spec.hidden_size = either(config, "n_embed", "hidden_size", 64, kLargestDimension);
  spec.intermediate_size = checked_mul(spec.hidden_size, 4);
  spec.vocab_size = config.dimension("vocab_size", 250880);
  spec.layers = either(config, "n_layer", "num_hidden_layers", 2, kMostLayers);
  spec.heads = spec.kv_heads = either(config, "n_head", "num_attention_heads", 8, kLargestDimension);
  spec.max_position = config.dimension("seq_length", 2048);
  spec.norm_eps = config.positive("layer_norm_epsilon", 1e-5);
  spec.dropout = std::max(config.number("hidden_dropout", 0.0), config.number("attention_dropout", 0.0));
  must_be(config, "apply_residual_connection_post_layernorm", false, false);
}

// Its intermediate_size counts gate and up.
void read_qwen_sizes(const ConfigFields& config, ModelSpec& spec) {
  spec.hidden_size = config.dimension("hidden_size", 4096);
  spec.intermediate_size = config.dimension("intermediate_size", 22016) / 2;
  spec.vocab_size = config.dimension("vocab_size", 151936);
  spec.layers = config.integer("num_hidden_layers", 32, 1, kMostLayers);
  spec.heads = spec.kv_heads = config.dimension("num_attention_heads", 32);
  spec.head_size = config.dimension("kv_channels", 128);
  spec.max_position = config.dimension("seq_length", 8192);
  spec.norm_eps = config.positive("layer_norm_epsilon", 1e-6);
  spec.rope.theta = config.positive("rotary_emb_base", 10000.0);
  if (config.number("rotary_pct", 1.0) != 1.0) config.refuse("rotary_pct other than 1 is not supported");
  must_be(config, "no_bias", true, true);
}

// Du et al., "GLM", 2022, as ChatGLM 2 and 3 have it.
void read_chatglm_sizes(const ConfigFields& config, ModelSpec& spec) {
  spec.hidden_size = config.dimension("hidden_size", 4096);
  spec.intermediate_size = config.dimension("ffn_hidden_size", 13696);
  spec.vocab_size = config.dimension("padded_vocab_size", 65024);
  spec.layers = config.integer("num_layers", 28, 1, kMostLayers);
  spec.heads = config.dimension("num_attention_heads", 32);
  spec.head_size = config.dimension("kv_channels", 128);
  const bool grouped = config.boolean("multi_query_attention", false);
  spec.kv_heads = grouped ? config.dimension("multi_query_group_num", 1) : spec.heads;
  spec.max_position = config.dimension("seq_length", 2048);
  spec.norm_eps = config.positive("layernorm_epsilon", 1e-5);
  const bool biased = config.boolean("add_bias_linear", false);
  spec.query_key_value_bias = biased || config.boolean("add_qkv_bias", false);
  spec.output_bias = spec.mlp_bias = biased;
  spec.dropout = config.number("hidden_dropout", 0.0);
  for (const std::string_view name : {"rmsnorm", "post_layer_norm"}) must_be(config, name, true, true);
  must_be(config, "apply_residual_connection_post_layernorm", false, false);
  if (config.field("pre_seq_len")) config.refuse("pre_seq_len is not supported yet");
}

void read_granite(const ConfigFields& config, ModelSpec& spec) {
  spec.embedding_scale = config.number("embedding_multiplier", 1.0);
  spec.attention_scale = config.positive("attention_multiplier", 1.0);
  spec.residual_scale = config.number("residual_multiplier", 1.0);
  spec.logit_scale = 1.0 / config.positive("logits_scaling", 1.0);
  if (!spec.experts.fused) return;
  spec.experts.count = config.integer("num_local_experts", 8, 1, kMostExperts);
  spec.experts.per_token = config.integer("num_experts_per_tok", 2, 1, spec.experts.count);
  spec.experts.intermediate_size = spec.intermediate_size;
}

void read_qwen2_moe(const ConfigFields& config, ModelSpec& spec) {
  must_be(config, "qkv_bias", true, true);
  spec.unmodelled_step = "the expert that all tokens share is weighed by a number for each token";
  spec.experts.shared = 1;
  spec.experts.shared_size = config.dimension("shared_expert_intermediate_size", 5632);
}

void read_glm(const ConfigFields& config, ModelSpec& spec) {
  spec.query_key_value_bias = config.boolean("attention_bias", true);
  spec.output_bias = false;
}

// Zeng et al., "GLM-4.5", 2025.
void read_glm4_moe(const ConfigFields& config, ModelSpec& spec) {
  spec.output_bias = false;
  spec.query_key_norms = config.boolean("use_qk_norm", false);
  Experts& experts = spec.experts;
  experts.count = config.integer("n_routed_experts", 128, 1, kMostExperts);
  experts.per_token = config.integer("num_experts_per_tok", 8, 1, experts.count);
  experts.intermediate_size = config.dimension("moe_intermediate_size", 1408);
  experts.shared = config.integer("n_shared_experts", 1, 1, kMostExperts);
  experts.shared_size = checked_mul(experts.shared, experts.intermediate_size);
  experts.normalize = config.boolean("norm_topk_prob", true);
  experts.weight_scale = config.positive("routed_scaling_factor", 1.0);
  experts.dense_layers = config.integer("first_k_dense_replace", 1, 0, spec.layers - 1);
}

void read_stablelm(const ConfigFields& config, ModelSpec& spec) {
  spec.norm_eps = config.positive("layer_norm_eps", config.positive("norm_eps", 1e-5));
  spec.query_key_value_bias = config.boolean("use_qkv_bias", false);
  spec.dropout = config.number("hidden_dropout", 0.0);
  if (config.boolean("use_parallel_residual", false)) spec.parallel = ParallelBlock::one_norm;
  must_be(config, "qk_layernorm", false, false);
}

void read_phi(const ConfigFields& config, ModelSpec& spec) {
  spec.norm_eps = config.positive("layer_norm_eps", 1e-5);
  spec.dropout = std::max(config.number("resid_pdrop", 0.0), config.number("embd_pdrop", 0.0));
  spec.mlp_bias = true;
  if (config.string("hidden_act", "gelu_new") == "gelu_new") spec.activation_form = ActivationForm::written_out;
  must_be(config, "qk_layernorm", false, false);
}

void read_seed_oss(const ConfigFields& config, ModelSpec& spec) {
  spec.query_key_value_bias = config.boolean("attention_bias", true);
  spec.output_bias = config.boolean("attention_out_bias", false);
  spec.dropout = std::max(config.number("residual_dropout", 0.1), config.number("attention_dropout", 0.1));
}

void read_nemotron(const ConfigFields& config, ModelSpec& spec) {
  spec.norm_eps = config.positive("norm_eps", 1e-5);
  if (config.string("hidden_act", "relu2") == "relu2") spec.activation_form = ActivationForm::relu_squared;
}

void read_ernie(const ConfigFields& config, ModelSpec&) { must_be(config, "use_bias", false, false); }

// Of 13 B and more have ALiBi, and say nothing of positions.
void read_baichuan(const ConfigFields& config, ModelSpec& spec) {
  spec.alibi = !config.field("max_position_embeddings") && config.field("model_max_length");
  if (config.field("model_max_length")) spec.max_position = config.dimension("model_max_length");
}

}  // namespace snug
