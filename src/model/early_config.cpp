// Families of GPT's first years and a few since, whose parameters are known one by one.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "model/mixed_config.h"
#include "model/tensor_listing.h"

namespace snug {

namespace {

// What every one of them says, by the keys and with the defaults of its config.
struct EarlyShape {
  struct Size {
    const char* key;
    int64_t usual;
  };
  Size hidden, layers, heads, positions;
  int64_t vocab;
  bool tied;
};

void read_shape(const ConfigFields& config, const EarlyShape& shape, ModelSpec& spec) {
  spec.hidden_size = config.dimension(shape.hidden.key, shape.hidden.usual);
  spec.vocab_size = config.dimension("vocab_size", shape.vocab);
  spec.layers = config.integer(shape.layers.key, shape.layers.usual, 1, kMostLayers);
  spec.heads = spec.kv_heads = config.dimension(shape.heads.key, shape.heads.usual);
  spec.head_size = std::max<int64_t>(1, spec.hidden_size / spec.heads);
  spec.max_position = config.dimension(shape.positions.key, shape.positions.usual);
  spec.tied_embeddings = config.boolean("tie_word_embeddings", shape.tied);
}

// By Llama's keys, with the sizes of its 7 B but for these.
struct LlamaShape {
  int64_t positions, vocab, width;
  bool tied = false;
};

void read_llama_shape(const ConfigFields& config, const LlamaShape& shape, ModelSpec& spec) {
  read_shape(config,
             {.hidden = {"hidden_size", 4096},
              .layers = {"num_hidden_layers", 32},
              .heads = {"num_attention_heads", 32},
              .positions = {"max_position_embeddings", shape.positions},
              .vocab = shape.vocab,
              .tied = shape.tied},
             spec);
  spec.kv_heads = config.dimension("num_key_value_heads", spec.heads);
  spec.intermediate_size = config.dimension("intermediate_size", shape.width);
}

}  // namespace

// StarCoder2: LayerNorms, plain MLPs and biases with the attention of Mistral.
void read_starcoder2(const ConfigFields& config, ModelSpec& spec) {
  read_shape(config,
             {.hidden = {"hidden_size", 3072},
              .layers = {"num_hidden_layers", 30},
              .heads = {"num_attention_heads", 24},
              .positions = {"max_position_embeddings", 4096},
              .vocab = 49152,
              .tied = true},
             spec);
  spec.kv_heads = config.dimension("num_key_value_heads", 2);
  spec.unmodelled_step = "plain MLPs with biases beside grouped attention";
  if (!config.boolean("use_bias", true)) config.refuse("use_bias = false is not supported yet");
  const int64_t C = spec.hidden_size, keys = checked_mul(spec.kv_heads, spec.head_size);
  spec.intermediate_size = config.dimension("intermediate_size", 12288);
  Listing list(spec);
  list.begin();
  list.biased_linear("self_attn.q_proj", checked_mul(spec.heads, spec.head_size), C);
  list.biased_linear("self_attn.k_proj", keys, C);
  list.biased_linear("self_attn.v_proj", keys, C);
  list.biased_linear("self_attn.o_proj", C, checked_mul(spec.heads, spec.head_size));
  list.plain_mlp("mlp.c_fc", "mlp.c_proj");
  list.biased_norm("input_layernorm");
  list.biased_norm("post_attention_layernorm");
  list.final_biased_norm("model.norm");
  list.head();
}

// StarCoder: GPT-2 whose heads share one key and one value.
void read_gpt_bigcode(const ConfigFields& config, ModelSpec& spec) {
  read_shape(config,
             {.hidden = {"n_embd", 768},
              .layers = {"n_layer", 12},
              .heads = {"n_head", 12},
              .positions = {"n_positions", 1024},
              .vocab = 50257,
              .tied = true},
             spec);
  spec.kv_heads = config.boolean("multi_query", true) ? 1 : spec.heads;
  spec.intermediate_size = config.dimension("n_inner", checked_mul(4, spec.hidden_size));
  spec.unmodelled_step = "one key and one value for all heads, with learned positions";
  const int64_t C = spec.hidden_size, keys = checked_mul(spec.kv_heads, spec.head_size);
  Listing list(spec, "transformer.h.{}.");
  list.once("transformer.wte.weight", {spec.vocab_size, C});
  list.once("transformer.wpe.weight", {spec.max_position, C});
  list.biased_norm("ln_1");
  list.biased_linear("attn.c_attn", checked_add(C, checked_mul(2, keys)), C);
  list.biased_linear("attn.c_proj", C, C);
  list.biased_norm("ln_2");
  list.plain_mlp("mlp.c_fc", "mlp.c_proj");
  list.final_biased_norm("transformer.ln_f");
  list.head();
}

// GPT-NeoX and Pythia: attention and MLP side by side, each behind a norm of its own.
void read_gpt_neox(const ConfigFields& config, ModelSpec& spec) {
  read_shape(config,
             {.hidden = {"hidden_size", 6144},
              .layers = {"num_hidden_layers", 44},
              .heads = {"num_attention_heads", 64},
              .positions = {"max_position_embeddings", 2048},
              .vocab = 50432,
              .tied = false},
             spec);
  spec.intermediate_size = config.dimension("intermediate_size", 24576);
  spec.unmodelled_step = "attention and MLP side by side, each with its own norm";
  if (!config.boolean("attention_bias", true)) config.refuse("attention_bias = false is not supported yet");
  const int64_t C = spec.hidden_size;
  Listing list(spec, "gpt_neox.layers.{}.");
  list.once("gpt_neox.embed_in.weight", {spec.vocab_size, C});
  list.biased_norm("input_layernorm");
  list.biased_norm("post_attention_layernorm");
  list.biased_linear("attention.query_key_value", checked_mul(3, C), C);
  list.biased_linear("attention.dense", C, C);
  list.plain_mlp("mlp.dense_h_to_4h", "mlp.dense_4h_to_h");
  list.final_biased_norm("gpt_neox.final_layer_norm");
  list.head();
}

// GPT-J and CodeGen (modeling_codegen.py): one norm before attention and MLP, a head with a bias; the later has one product
// for queries, keys and values.
void read_gptj(const ConfigFields& config, ModelSpec& spec) {
  read_shape(config,
             {.hidden = {"n_embd", 4096},
              .layers = {"n_layer", 28},
              .heads = {"n_head", 16},
              .positions = {"n_positions", 2048},
              .vocab = 50400,
              .tied = false},
             spec);
  spec.tied_embeddings = false;
  spec.intermediate_size = config.dimension("n_inner", checked_mul(4, spec.hidden_size));
  spec.unmodelled_step = "attention and MLP side by side, a head with a bias";
  const int64_t C = spec.hidden_size, L = spec.layers;
  Listing list(spec, "transformer.h.{}.");
  list.once("transformer.wte.weight", {spec.vocab_size, C});
  list.biased_norm("ln_1");
  if (spec.family == "codegen") {
    list.linear(L, "attn.qkv_proj", checked_mul(3, C), C);
    list.linear(L, "attn.out_proj", C, C);
  } else {
    for (const char* name : {"attn.k_proj", "attn.v_proj", "attn.q_proj", "attn.out_proj"}) list.linear(L, name, C, C);
  }
  list.plain_mlp("mlp.fc_in", "mlp.fc_out");
  list.final_biased_norm("transformer.ln_f");
  list.once("lm_head.weight", {spec.vocab_size, C});
  list.once("lm_head.bias", {spec.vocab_size});
}

// Du et al., "GLM", 2022, as the first ChatGLM has it; in its file the head is the embedding's.
void read_chatglm1(const ConfigFields& config, ModelSpec& spec) {
  read_shape(config,
             {.hidden = {"hidden_size", 4096},
              .layers = {"num_layers", 28},
              .heads = {"num_attention_heads", 32},
              .positions = {"max_sequence_length", 2048},
              .vocab = 130528,
              .tied = true},
             spec);
  spec.intermediate_size = config.dimension("inner_hidden_size", 16384);
  spec.unmodelled_step = "positions in two dimensions, residuals that are scaled";
  if (config.field("pre_seq_len")) config.refuse("pre_seq_len is not supported yet");
  const int64_t C = spec.hidden_size;
  Listing list(spec, "transformer.layers.{}.");
  list.once("transformer.word_embeddings.weight", {spec.vocab_size, C});
  list.biased_norm("input_layernorm");
  list.biased_norm("post_attention_layernorm");
  list.biased_linear("attention.query_key_value", checked_mul(3, C), C);
  list.biased_linear("attention.dense", C, C);
  list.plain_mlp("mlp.dense_h_to_4h", "mlp.dense_4h_to_h");
  list.final_biased_norm("transformer.final_layernorm");
  list.head();
}

// GPT-Neo: GPT-2 with windows in every other layer.
void read_gpt_neo(const ConfigFields& config, ModelSpec& spec) {
  read_shape(config,
             {.hidden = {"hidden_size", 2048},
              .layers = {"num_layers", 24},
              .heads = {"num_heads", 16},
              .positions = {"max_position_embeddings", 2048},
              .vocab = 50257,
              .tied = true},
             spec);
  spec.intermediate_size = config.dimension("intermediate_size", checked_mul(4, spec.hidden_size));
  spec.unmodelled_step = "attention in float32, in windows in every other layer";
  const int64_t C = spec.hidden_size, L = spec.layers;
  Listing list(spec, "transformer.h.{}.");
  list.once("transformer.wte.weight", {spec.vocab_size, C});
  list.once("transformer.wpe.weight", {spec.max_position, C});
  list.biased_norm("ln_1");
  for (const char* name : {"k_proj", "v_proj", "q_proj"}) list.linear(L, fmt::format("attn.attention.{}", name), C, C);
  list.biased_linear("attn.attention.out_proj", C, C);
  list.biased_norm("ln_2");
  list.plain_mlp("mlp.c_fc", "mlp.c_proj");
  list.final_biased_norm("transformer.ln_f");
  list.head();
}

// MosaicML's: no bias anywhere, positions by slopes alone (modeling_mpt.py).
void read_mpt(const ConfigFields& config, ModelSpec& spec) {
  read_shape(config,
             {.hidden = {"d_model", 2048},
              .layers = {"n_layers", 24},
              .heads = {"n_heads", 16},
              .positions = {"max_seq_len", 2048},
              .vocab = 50368,
              .tied = true},
             spec);
  spec.unmodelled_step = "positions by slopes (ALiBi)";
  if (!config.boolean("no_bias", true)) config.refuse("no_bias = false is not supported yet");
  if (config.integer("expansion_ratio", 4, 1, 1024) != 4)
    config.refuse("expansion_ratio other than 4, which transformers has");
  const int64_t C = spec.hidden_size, L = spec.layers;
  spec.intermediate_size = checked_mul(4, C);
  Listing list(spec, "transformer.blocks.{}.");
  list.once("transformer.wte.weight", {spec.vocab_size, C});
  list.norm(L, "norm_1", C);
  list.linear(L, "attn.Wqkv", checked_mul(3, C), C);
  list.linear(L, "attn.out_proj", C, C);
  list.norm(L, "norm_2", C);
  list.linear(L, "ffn.up_proj", spec.intermediate_size, C);
  list.linear(L, "ffn.down_proj", C, spec.intermediate_size);
  list.once("transformer.norm_f.weight", {C});
  list.head();
}

// Whose code comes with its files: Llama's blocks with one product for queries, keys and values.
void read_internlm2(const ConfigFields& config, ModelSpec& spec) {
  read_llama_shape(config, {.positions = 2048, .vocab = 103168, .width = 11008}, spec);
  spec.unmodelled_step = "code that comes with its files";
  if (config.boolean("bias", true)) config.refuse("bias = true is not supported yet");
  const int64_t C = spec.hidden_size, L = spec.layers, queries = checked_mul(spec.heads, spec.head_size);
  Listing list(spec);
  list.once("model.tok_embeddings.weight", {spec.vocab_size, C});
  list.linear(L, "attention.wqkv", checked_add(queries, checked_mul(2, checked_mul(spec.kv_heads, spec.head_size))), C);
  list.linear(L, "attention.wo", C, queries);
  list.linear(L, "feed_forward.w1", spec.intermediate_size, C);
  list.linear(L, "feed_forward.w3", spec.intermediate_size, C);
  list.linear(L, "feed_forward.w2", C, spec.intermediate_size);
  list.norm(L, "attention_norm", C);
  list.norm(L, "ffn_norm", C);
  list.once("model.norm.weight", {C});
  if (!spec.tied_embeddings) list.once("output.weight", {spec.vocab_size, C});
}

// EXAONE 3 and 3.5, whose code comes with their files: Llama's blocks by GPT's names (modeling_exaone.py).
void read_exaone(const ConfigFields& config, ModelSpec& spec) {
  read_shape(config,
             {.hidden = {"hidden_size", 2048},
              .layers = {config.field("num_layers") ? "num_layers" : "num_hidden_layers", 32},
              .heads = {"num_attention_heads", 32},
              .positions = {"max_position_embeddings", 2048},
              .vocab = 102400,
              .tied = false},
             spec);
  spec.kv_heads = config.dimension("num_key_value_heads", spec.heads);
  spec.unmodelled_step = "code that comes with its files";
  spec.intermediate_size = config.dimension("intermediate_size", checked_mul(4, spec.hidden_size));
  const int64_t C = spec.hidden_size, L = spec.layers, F = spec.intermediate_size;
  const int64_t queries = checked_mul(spec.heads, spec.head_size), keys = checked_mul(spec.kv_heads, spec.head_size);
  Listing list(spec, "transformer.h.{}.");
  list.once("transformer.wte.weight", {spec.vocab_size, C});
  list.norm(L, "ln_1", C);
  list.linear(L, "attn.attention.q_proj", queries, C);
  list.linear(L, "attn.attention.k_proj", keys, C);
  list.linear(L, "attn.attention.v_proj", keys, C);
  list.linear(L, "attn.attention.out_proj", C, queries);
  list.norm(L, "ln_2", C);
  list.linear(L, "mlp.c_fc_0", F, C);
  list.linear(L, "mlp.c_fc_1", F, C);
  list.linear(L, "mlp.c_proj", C, F);
  list.once("transformer.ln_f.weight", {C});
  list.head();
}

// MiniCPM's first and fourth, whose code comes with their files: Llama's tensors; what differs are factors
// (modeling_minicpm.py).
void read_minicpm(const ConfigFields& config, ModelSpec& spec) {
  read_llama_shape(config, {.positions = 2048, .vocab = 32000, .width = 11008, .tied = true}, spec);
  spec.unmodelled_step = "code that comes with its files";
  if (config.boolean("attention_bias", false)) config.refuse("attention_bias = true is not supported yet");
  if (config.integer("num_experts", 0, 0, 1024) > 0) config.refuse("experts are not supported yet");
  Listing list(spec);
  list.begin();
  list.attention(spec.layers);
  list.mlp(spec.layers, "mlp.", spec.intermediate_size);
  list.norm(spec.layers, "input_layernorm", spec.hidden_size);
  list.norm(spec.layers, "post_attention_layernorm", spec.hidden_size);
  list.end("norm");
}

// Command R and Aya: attention and MLP side by side behind one norm, whose mean is taken too (modeling_cohere.py).
void read_cohere(const ConfigFields& config, ModelSpec& spec) {
  read_shape(config,
             {.hidden = {"hidden_size", 8192},
              .layers = {"num_hidden_layers", 40},
              .heads = {"num_attention_heads", 64},
              .positions = {"max_position_embeddings", 8192},
              .vocab = 256000,
              .tied = true},
             spec);
  spec.kv_heads = config.dimension("num_key_value_heads", spec.heads);
  spec.head_size = config.dimension("head_dim", spec.head_size);
  spec.unmodelled_step = "blocks of family " + spec.family;
  for (const char* name : {"attention_bias", "use_qk_norm"})
    if (config.boolean(name, false)) config.refuse(fmt::format("{} = true is not supported yet", name));
  spec.intermediate_size = config.dimension("intermediate_size", 22528);
  Listing list(spec);
  list.begin();
  list.attention(spec.layers);
  list.mlp(spec.layers, "mlp.", spec.intermediate_size);
  list.norm(spec.layers, "input_layernorm", spec.hidden_size);
  list.end("norm");
}

// Groeneveld et al., "OLMo", 2024: Llama's blocks with LayerNorms that have neither weights nor biases.
void read_olmo(const ConfigFields& config, ModelSpec& spec) {
  read_llama_shape(config, {.positions = 2048, .vocab = 50304, .width = 11008}, spec);
  spec.unmodelled_step = "norms without weights";
  if (config.boolean("attention_bias", false)) config.refuse("attention_bias = true is not supported yet");
  Listing list(spec);
  list.begin();
  list.attention(spec.layers);
  list.mlp(spec.layers, "mlp.", spec.intermediate_size);
  list.head();
}

// Swiss AI's Apertus, 2025: MLPs without a gate, whose nonlinearity (xIELU; Huang and Schlag, 2024) has two numbers a layer.
void read_apertus(const ConfigFields& config, ModelSpec& spec) {
  read_llama_shape(config, {.positions = 65536, .vocab = 131072, .width = 14336}, spec);
  spec.unmodelled_step = "a nonlinearity that is learned";
  if (config.boolean("attention_bias", false)) config.refuse("attention_bias = true is not supported yet");
  const int64_t C = spec.hidden_size, L = spec.layers, F = spec.intermediate_size;
  Listing list(spec);
  list.begin();
  list.attention(L);
  list.head_norms(L, "q_norm", "k_norm");
  list.linear(L, "mlp.up_proj", F, C);
  list.linear(L, "mlp.down_proj", C, F);
  for (const char* name : {"mlp.act_fn.alpha_p", "mlp.act_fn.alpha_n"}) list.in(L, name, {1});
  list.norm(L, "attention_layernorm", C);
  list.norm(L, "feedforward_layernorm", C);
  list.end("norm");
}

}  // namespace snug
