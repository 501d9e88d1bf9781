#include "model/mixed_config.h"

#include <algorithm>

#include "base/checked.h"
#include "model/tensor_listing.h"

namespace snug {

namespace {

// The text model's fields.
ConfigFields text_of(const ConfigFields& config) {
  const auto text = config.field("text_config");
  if (!text) return config;
  return {json_object("text_config", *text, config.where()), config.where(), "text_config."};
}

// How many layers, of the first so many, are of a kind that `names` names; `usual`: where the file does not say.
int64_t layers_of_kind(const ConfigFields& config, std::initializer_list<std::string_view> names, int64_t usual,
                       int64_t first = kMostLayers) {
  std::string_view field = "layer_types";
  if (!config.field(field)) field = "layers_block_type";
  const auto types = config.field(field);
  if (!types) return usual;
  int64_t count = 0, layer = 0;
  for (const auto entry : json_array(config.label(field), *types, config.where())) {
    if (layer++ == first) break;
    count += std::find(names.begin(), names.end(), json_string(config.label(field), entry, config.where())) != names.end();
  }
  return count;
}

void refuse_if(const ConfigFields& config, std::string_view name, bool fallback = false) {
  if (config.boolean(name, fallback)) config.refuse(fmt::format("{} = true is not supported yet", config.label(name)));
}

struct UsualSizes {
  int64_t head_size = 0;  // 0: C / H
  bool tied = false;
  int64_t max_position = 32768;
};

void read_usual(const ConfigFields& outer, const ConfigFields& config, const UsualSizes& usual, ModelSpec& spec) {
  spec.hidden_size = config.dimension("hidden_size");
  spec.vocab_size = config.dimension("vocab_size");
  spec.layers = config.integer("num_hidden_layers", std::nullopt, 1, kMostLayers);
  spec.heads = config.dimension("num_attention_heads");
  spec.kv_heads = config.dimension("num_key_value_heads", spec.heads);
  const int64_t share = std::max<int64_t>(1, spec.hidden_size / spec.heads);
  spec.head_size = config.dimension("head_dim", usual.head_size > 0 ? usual.head_size : share);
  spec.max_position = config.dimension("max_position_embeddings", usual.max_position);
  spec.tied_embeddings = config.boolean("tie_word_embeddings", outer.boolean("tie_word_embeddings", usual.tied));
  refuse_if(config, "attention_bias");
}

// Which layers have a gated delta rule: all but every fourth where the file does not say.
std::vector<bool> delta_layers(const ConfigFields& config, int64_t layers) {
  const int64_t interval = config.integer("full_attention_interval", 4, 1, kMostLayers);
  std::vector<bool> found(static_cast<size_t>(layers));
  for (size_t i = 0; i < found.size(); ++i) found[i] = (static_cast<int64_t>(i) + 1) % interval != 0;
  const auto types = config.field("layer_types");
  if (!types) return found;
  size_t layer = 0;
  for (const auto entry : json_array(config.label("layer_types"), *types, config.where()))
    if (layer < found.size())
      found[layer++] = json_string(config.label("layer_types"), entry, config.where()) != "full_attention";
  return found;
}

}  // namespace

// Qwen3-Next and Qwen3.5: three layers of four have a gated delta rule in place of attention.
void read_qwen3_next(const ConfigFields& outer, ModelSpec& spec) {
  const ConfigFields config = text_of(outer);
  read_usual(outer, config, {.head_size = 256}, spec);
  spec.unmodelled_step = "linear attention (gated delta rule)";
  spec.norms_from_zero = spec.query_key_norms = spec.gated_attention = true;
  spec.rotary_size =
      static_cast<int64_t>(static_cast<double>(spec.head_size) * config.number("partial_rotary_factor", 0.25));
  DeltaNet& net = spec.delta_net;
  net.layers = delta_layers(config, spec.layers);
  net.key_heads = config.dimension("linear_num_key_heads", 16), net.key_size = config.dimension("linear_key_head_dim", 128);
  net.value_heads = config.dimension("linear_num_value_heads", 32);
  net.value_size = config.dimension("linear_value_head_dim", 128);
  net.kernel = config.dimension("linear_conv_kernel_dim", 4);
  if (net.value_heads % net.key_heads != 0)
    config.refuse(
        fmt::format("linear_num_value_heads {} is no multiple of linear_num_key_heads {}", net.value_heads, net.key_heads));
  const int64_t linear = std::count(net.layers.begin(), net.layers.end(), true), full = spec.layers - linear;
  const int64_t C = spec.hidden_size, L = spec.layers, value_heads = net.value_heads, value_size = net.value_size;
  const int64_t key = checked_mul(net.key_heads, net.key_size), value = checked_mul(value_heads, value_size);
  const int64_t mixed = checked_add(checked_mul(2, key), value);
  Listing list(spec);
  list.begin();
  list.in(linear, "linear_attn.dt_bias", {value_heads});
  list.in(linear, "linear_attn.A_log", {value_heads});
  list.in(linear, "linear_attn.conv1d.weight", {mixed, 1, net.kernel});
  if (spec.family == "qwen3_next") {
    list.linear(linear, "linear_attn.in_proj_qkvz", checked_add(mixed, value), C);
    list.linear(linear, "linear_attn.in_proj_ba", checked_mul(2, value_heads), C);
  } else {
    list.linear(linear, "linear_attn.in_proj_qkv", mixed, C);
    list.linear(linear, "linear_attn.in_proj_z", value, C);
    list.linear(linear, "linear_attn.in_proj_b", value_heads, C);
    list.linear(linear, "linear_attn.in_proj_a", value_heads, C);
  }
  list.norm(linear, "linear_attn.norm", value_size);
  list.linear(linear, "linear_attn.out_proj", C, value);
  list.attention(full, true);
  list.head_norms(full, "q_norm", "k_norm");
  spec.experts.count = config.integer("num_experts", spec.family == "qwen3_5" ? 0 : 512, 0, kMostExperts);
  if (spec.experts.count > 0) {
    if (config.integer("decoder_sparse_step", 1, 1, kMostLayers) != 1) config.refuse("decoder_sparse_step other than 1");
    spec.experts.per_token = config.integer("num_experts_per_tok", 10, 1, spec.experts.count);
    spec.experts.intermediate_size = config.dimension("moe_intermediate_size", 512);
    list.experts(L, "mlp.", "gate");
    list.mlp(L, "mlp.shared_expert.", config.dimension("shared_expert_intermediate_size", 512));
    list.linear(L, "mlp.shared_expert_gate", 1, C);
  } else {
    spec.intermediate_size = config.dimension("intermediate_size");
    list.mlp(L, "mlp.", spec.intermediate_size);
  }
  list.norm(L, "input_layernorm", C);
  list.norm(L, "post_attention_layernorm", C);
  list.end("norm");
}

// Attention and a state space side by side in each layer (Mamba 2).
void read_falcon_h1(const ConfigFields& config, ModelSpec& spec) {
  read_usual(config, config, {.max_position = 8192}, spec);
  spec.unmodelled_step = "state spaces beside attention (Mamba 2)";
  for (const std::string_view name : {"mamba_proj_bias", "projectors_bias", "mlp_bias"}) refuse_if(config, name);
  const int64_t L = spec.layers, C = spec.hidden_size, heads = config.dimension("mamba_n_heads", 128);
  const int64_t expanded = checked_mul(config.dimension("mamba_expand", 2), C);
  const int64_t inner = config.dimension("mamba_d_ssm", config.given("mamba_d_ssm") ? expanded : 1024);
  const int64_t groups = checked_mul(config.dimension("mamba_n_groups", 1), config.dimension("mamba_d_state", 256));
  const int64_t mixed = checked_add(inner, checked_mul(2, groups));
  spec.intermediate_size = config.dimension("intermediate_size");
  Listing list(spec);
  list.begin();
  list.mlp(L, "feed_forward.", spec.intermediate_size);
  for (const char* name : {"mamba.dt_bias", "mamba.A_log", "mamba.D"}) list.in(L, name, {heads});
  list.in(L, "mamba.conv1d.weight", {mixed, 1, config.dimension("mamba_d_conv", 4)});
  if (config.boolean("mamba_conv_bias", true)) list.in(L, "mamba.conv1d.bias", {mixed});
  list.linear(L, "mamba.in_proj", checked_add(checked_add(inner, mixed), heads), C);
  if (config.boolean("mamba_rms_norm", false)) list.norm(L, "mamba.norm", inner);
  list.linear(L, "mamba.out_proj", C, inner);
  list.attention(L);
  list.norm(L, "input_layernorm", C);
  list.norm(L, "pre_ff_layernorm", C);
  list.end("final_layernorm");
}

namespace {

// How wide the MLPs of LFM 2 are.
int64_t lfm2_width(const ConfigFields& config) {
  int64_t width = config.dimension(config.field("block_ff_dim") ? "block_ff_dim" : "intermediate_size", 12288);
  if (!config.boolean("block_auto_adjust_ff_dim", true)) return width;
  width = width * 2 / 3;
  const int64_t multiple = config.dimension("block_multiple_of", 256);
  if (!config.field("block_ffn_dim_multiplier") && config.given("block_ffn_dim_multiplier")) return width;
  width = static_cast<int64_t>(config.positive("block_ffn_dim_multiplier", 1.0) * static_cast<double>(width));
  return (width + multiple - 1) / multiple * multiple;
}

// All of a layer but its MLP or experts.
void list_lfm2_mixers(Listing& list, const ConfigFields& config, const ModelSpec& spec) {
  const int64_t L = spec.layers, C = spec.hidden_size;
  int64_t listed = L;
  if (const auto places = config.field("full_attn_idxs")) {
    listed = 0;
    for ([[maybe_unused]] const auto place : json_array(config.label("full_attn_idxs"), *places, config.where())) ++listed;
  }
  const int64_t attention = layers_of_kind(config, {"full_attention"}, listed), convolution = L - attention;
  refuse_if(config, "conv_bias");
  list.attention(attention, false, "out_proj");
  list.head_norms(attention, "q_layernorm", "k_layernorm");
  list.in(convolution, "conv.conv.weight", {C, 1, config.dimension("conv_L_cache", 3)});
  list.linear(convolution, "conv.in_proj", checked_mul(3, C), C);
  list.linear(convolution, "conv.out_proj", C, C);
  list.norm(L, "operator_norm", C);
  list.norm(L, "ffn_norm", C);
}

void list_lfm2_mlps(Listing& list, const ModelSpec& spec, int64_t layers) {
  list.linear(layers, "feed_forward.w1", spec.intermediate_size, spec.hidden_size);
  list.linear(layers, "feed_forward.w3", spec.intermediate_size, spec.hidden_size);
  list.linear(layers, "feed_forward.w2", spec.hidden_size, spec.intermediate_size);
}

}  // namespace

// Short convolutions, and attention in some layers.
void read_lfm2(const ConfigFields& config, ModelSpec& spec) {
  read_usual(config, config, {.tied = true, .max_position = 128000}, spec);
  spec.tied_embeddings = config.boolean("tie_embedding", spec.tied_embeddings);
  spec.unmodelled_step = "short convolutions in place of attention";
  spec.intermediate_size = lfm2_width(config);
  Listing list(spec);
  list.begin();
  list_lfm2_mixers(list, config, spec);
  list_lfm2_mlps(list, spec, spec.layers);
  list.end("embedding_norm");
}

// The same with experts in all but the first layers.
void read_lfm2_moe(const ConfigFields& config, ModelSpec& spec) {
  read_usual(config, config, {.tied = true, .max_position = 128000}, spec);
  spec.tied_embeddings = config.boolean("tie_embedding", spec.tied_embeddings);
  spec.unmodelled_step = "short convolutions in place of attention";
  spec.intermediate_size = config.dimension("intermediate_size", 7168);
  spec.experts.count = config.integer("num_experts", 32, 1, kMostExperts);
  spec.experts.per_token = config.integer("num_experts_per_tok", 4, 1, spec.experts.count);
  spec.experts.intermediate_size = config.dimension("moe_intermediate_size", 1792);
  const int64_t dense = config.integer("num_dense_layers", 2, 0, spec.layers);
  Listing list(spec);
  list.begin();
  list_lfm2_mixers(list, config, spec);
  list_lfm2_mlps(list, spec, dense);
  list.experts(spec.layers - dense, "feed_forward.", "gate");
  list.end("embedding_norm");
}

// Granite 4: state spaces in most layers, experts or none, and an MLP for all tokens.
void read_granite_hybrid(const ConfigFields& config, ModelSpec& spec) {
  read_usual(config, config, {.max_position = 2048}, spec);
  spec.unmodelled_step = "state spaces in place of attention (Mamba 2)";
  refuse_if(config, "mamba_proj_bias");
  const int64_t L = spec.layers, C = spec.hidden_size, heads = config.dimension("mamba_n_heads", 128);
  const int64_t attention = layers_of_kind(config, {"attention", "full_attention"}, 0), mamba = L - attention;
  if (mamba == 0) spec.unmodelled_step = "MLPs that all tokens share beside experts";
  const int64_t inner = checked_mul(config.dimension("mamba_expand", 2), C);
  const int64_t groups = checked_mul(config.dimension("mamba_n_groups", 1), config.dimension("mamba_d_state", 256));
  const int64_t mixed = checked_add(inner, checked_mul(2, groups));
  const int64_t shared = config.dimension("shared_intermediate_size", 1024);
  spec.intermediate_size = shared;
  Listing list(spec);
  list.begin();
  spec.experts.count = config.integer("num_local_experts", 8, 0, kMostExperts);
  if (spec.experts.count > 0) {
    spec.experts.per_token = config.integer("num_experts_per_tok", 2, 1, spec.experts.count);
    spec.experts.intermediate_size = config.dimension("intermediate_size");
    list.experts(L, "block_sparse_moe.", "router");
  }
  list.linear(L, "shared_mlp.input_linear", checked_mul(2, shared), C);
  list.linear(L, "shared_mlp.output_linear", C, shared);
  for (const char* name : {"mamba.dt_bias", "mamba.A_log", "mamba.D"}) list.in(mamba, name, {heads});
  list.in(mamba, "mamba.conv1d.weight", {mixed, 1, config.dimension("mamba_d_conv", 4)});
  if (config.boolean("mamba_conv_bias", true)) list.in(mamba, "mamba.conv1d.bias", {mixed});
  list.linear(mamba, "mamba.in_proj", checked_add(checked_add(inner, mixed), heads), C);
  list.norm(mamba, "mamba.norm", inner);
  list.linear(mamba, "mamba.out_proj", C, inner);
  list.attention(attention);
  list.norm(L, "input_layernorm", C);
  list.norm(L, "post_attention_layernorm", C);
  list.end("norm");
}

void read_llama4(const ConfigFields& outer, ModelSpec& spec) {
  const ConfigFields config = text_of(outer);
  read_usual(outer, config, {.head_size = 128, .max_position = 131072}, spec);
  spec.unmodelled_step = "experts in some layers, attention in chunks";
  const int64_t L = spec.layers, C = spec.hidden_size;
  int64_t sparse = L / config.integer("interleave_moe_layer_step", 1, 1, kMostLayers);
  if (const auto places = config.field("moe_layers")) {
    sparse = 0;
    for ([[maybe_unused]] const auto place : json_array(config.label("moe_layers"), *places, config.where())) ++sparse;
  }
  spec.intermediate_size = config.dimension("intermediate_size", 8192);
  spec.experts.count = config.integer("num_local_experts", 16, 1, kMostExperts);
  spec.experts.per_token = config.integer("num_experts_per_tok", 1, 1, spec.experts.count);
  spec.experts.intermediate_size = spec.intermediate_size;
  Listing list(spec);
  list.begin();
  list.attention(L);
  list.experts(sparse, "feed_forward.", "router");
  list.mlp(sparse, "feed_forward.shared_expert.", spec.intermediate_size);
  list.mlp(L - sparse, "feed_forward.", config.dimension("intermediate_size_mlp", 16384));
  list.norm(L, "input_layernorm", C);
  list.norm(L, "post_attention_layernorm", C);
  list.end("norm");
}

namespace {

// What Gemma 3n and 4 add to a layer: a row of its own for each token, gated and projected.
void list_layer_inputs(Listing& list, const ConfigFields& config, const ModelSpec& spec) {
  const int64_t width = config.field("hidden_size_per_layer_input") || !config.given("hidden_size_per_layer_input")
                            ? config.integer("hidden_size_per_layer_input", 256, 0, kLargestDimension)
                            : 0;
  if (width == 0) return;
  const int64_t L = spec.layers, C = spec.hidden_size, all = checked_mul(L, width);
  list.linear(L, "per_layer_input_gate", width, C);
  list.linear(L, "per_layer_projection", C, width);
  list.norm(L, "post_per_layer_input_norm", C);
  list.once("model.embed_tokens_per_layer.weight", {config.dimension("vocab_size_per_layer_input", 262144), all});
  list.once("model.per_layer_model_projection.weight", {all, C});
  list.once("model.per_layer_projection_norm.weight", {width});
}

void list_gemma_norms(Listing& list, const ModelSpec& spec) {
  for (const char* name :
       {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"})
    list.norm(spec.layers, name, spec.hidden_size);
}

void list_gemma4_experts(Listing& list, const ConfigFields& config, ModelSpec& spec) {
  const int64_t L = spec.layers, C = spec.hidden_size;
  spec.experts.count = config.integer("num_experts", std::nullopt, 1, kMostExperts);
  spec.experts.per_token = config.integer("top_k_experts", std::nullopt, 1, spec.experts.count);
  spec.experts.intermediate_size = config.dimension("moe_intermediate_size");
  list.experts(L, "", "router.proj");
  list.in(L, "router.scale", {C});
  list.in(L, "router.per_expert_scale", {spec.experts.count});
  for (const char* name : {"post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2"})
    list.norm(L, name, C);
}

int64_t own_keys(const ConfigFields& config, const ModelSpec& spec, int64_t usual) {
  return spec.layers - config.integer("num_kv_shared_layers", usual, 0, spec.layers);
}

}  // namespace

void read_gemma3n(const ConfigFields& outer, ModelSpec& spec) {
  const ConfigFields config = text_of(outer);
  read_usual(outer, config, {.head_size = 256, .tied = true}, spec);
  spec.unmodelled_step = "alternating updates and inputs of each layer";
  const int64_t L = spec.layers, C = spec.hidden_size, inputs = config.dimension("altup_num_inputs", 4);
  const int64_t own = own_keys(config, spec, 15), rank = config.dimension("laurel_rank", 64);
  const auto width = config.field("intermediate_size");
  if (width && width->is_array()) {
    for (const auto entry : json_array(config.label("intermediate_size"), *width, config.where())) {
      const int64_t one = json_integer(config.label("intermediate_size"), entry, 1, kLargestDimension, config.where());
      if (spec.intermediate_size > 0 && one != spec.intermediate_size) config.refuse("layers of different widths");
      spec.intermediate_size = one;
    }
  } else {
    spec.intermediate_size = config.dimension("intermediate_size", 16384);
  }
  const int64_t queries = checked_mul(spec.heads, spec.head_size), keys = checked_mul(spec.kv_heads, spec.head_size);
  Listing list(spec);
  list.begin();
  list.linear(L, "self_attn.q_proj", queries, C);
  list.norm(L, "self_attn.q_norm", spec.head_size);
  list.linear(own, "self_attn.k_proj", keys, C);
  list.linear(own, "self_attn.v_proj", keys, C);
  list.norm(own, "self_attn.k_norm", spec.head_size);
  list.linear(L, "self_attn.o_proj", C, queries);
  list.mlp(L, "mlp.", spec.intermediate_size);
  list_gemma_norms(list, spec);
  list.in(L, "altup.correct_output_scale", {C});
  list.linear(L, "altup.correction_coefs", inputs, inputs);
  list.linear(L, "altup.prediction_coefs", checked_mul(inputs, inputs), inputs);
  list.linear(L, "altup.modality_router", inputs, C);
  list.norm(L, "altup.router_norm", C);
  list.linear(L, "laurel.linear_left", rank, C);
  list.linear(L, "laurel.linear_right", C, rank);
  list.norm(L, "laurel.post_laurel_norm", C);
  list_layer_inputs(list, config, spec);
  for (int64_t i = 0; i + 1 < inputs; ++i)
    for (const char* name : {"model.altup_projections.", "model.altup_unembed_projections."})
      list.once(fmt::format("{}{}.weight", name, i), {C, C});
  list.end("norm");
}

// Whose last layers use the keys of earlier ones, with MLPs of twice the width where the file says so; layers that see all
// have heads of their own size; some have experts beside the MLP (modeling_gemma4.py).
void read_gemma4(const ConfigFields& outer, ModelSpec& spec) {
  const ConfigFields config = text_of(outer);
  read_usual(outer, config, {.head_size = 256, .tied = true, .max_position = 131072}, spec);
  spec.unmodelled_step = "layers that share keys, heads of two sizes, inputs of each layer";
  const int64_t L = spec.layers, C = spec.hidden_size, own = own_keys(config, spec, 0);
  const int64_t full = layers_of_kind(config, {"full_attention"}, L / 6);
  const int64_t own_full = layers_of_kind(config, {"full_attention"}, own / 6, own);
  spec.intermediate_size = config.dimension("intermediate_size");
  const bool same = config.boolean("attention_k_eq_v", false);
  const auto attention = [&](Listing& list, int64_t layers, int64_t with_keys, int64_t head, int64_t kv_heads, bool values) {
    const int64_t queries = checked_mul(spec.heads, head), keys = checked_mul(kv_heads, head);
    list.linear(layers, "self_attn.q_proj", queries, C);
    list.norm(layers, "self_attn.q_norm", head);
    list.norm(with_keys, "self_attn.k_norm", head);
    list.linear(with_keys, "self_attn.k_proj", keys, C);
    if (values) list.linear(with_keys, "self_attn.v_proj", keys, C);
    list.linear(layers, "self_attn.o_proj", C, queries);
  };
  const auto few_heads = config.field("num_global_key_value_heads");
  const int64_t few = same && few_heads ? config.dimension("num_global_key_value_heads", spec.kv_heads) : spec.kv_heads;
  const int64_t wide = config.boolean("use_double_wide_mlp", false) ? L - own : 0;
  Listing list(spec);
  list.begin();
  attention(list, L - full, own - own_full, spec.head_size, spec.kv_heads, true);
  attention(list, full, own_full, config.dimension("global_head_dim", 512), few, !same);
  list.mlp(L - wide, "mlp.", spec.intermediate_size);
  list.mlp(wide, "mlp.", checked_mul(2, spec.intermediate_size));
  list_gemma_norms(list, spec);
  if (config.boolean("enable_moe_block", false)) list_gemma4_experts(list, config, spec);
  list_layer_inputs(list, config, spec);
  list.end("norm");
}

}  // namespace snug
