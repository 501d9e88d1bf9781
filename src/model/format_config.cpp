// Writes a ModelSpec as the config.json that Hugging Face's libraries read.

#include <fmt/format.h>

#include <map>

#include "model/config.h"

namespace snug {

namespace {

class ConfigText {
 public:
  ConfigText(const ModelSpec& spec, DType dtype) : spec_(spec) {
    text("model_type", spec.family);
    fields_["architectures"] = fmt::format("[\"{}\"]", spec.architecture);
    text("torch_dtype", name_of(dtype));
    set("vocab_size", spec.vocab_size);
    set("initializer_range", spec.initializer_range);
    set("tie_word_embeddings", spec.tied_embeddings);
    for (const auto& [name, token] : {std::pair("bos_token_id", spec.bos_token_id),
                                      {"eos_token_id", spec.eos_token_id},
                                      {"pad_token_id", spec.pad_token_id}})
      fields_[name] = token < 0 ? "null" : std::to_string(token);
    if (spec.naming == TensorNaming::gpt2) {
      add_gpt2();
    } else {
      add_sizes();
      add_windows();
      add_rope();
      add_experts();
    }
  }

  std::string str() const {
    std::string json = "{\n";
    for (const auto& [name, value] : fields_)
      json += fmt::format("  \"{}\": {}{}\n", name, value, name == fields_.rbegin()->first ? "" : ",");
    return json + "}\n";
  }

 private:
  template <class T>
  void set(const std::string& name, const T& value) {
    fields_[name] = fmt::format("{}", value);
  }
  void text(const std::string& name, std::string_view value) { fields_[name] = fmt::format("\"{}\"", value); }
  void number_or_null(const std::string& name, double value) {
    fields_[name] = value == 0 ? "null" : fmt::format("{}", value);
  }

  void add_gpt2() {
    set("n_embd", spec_.hidden_size);
    set("n_inner", spec_.intermediate_size);
    set("n_layer", spec_.layers);
    set("n_head", spec_.heads);
    set("n_positions", spec_.max_position);
    set("layer_norm_epsilon", spec_.norm_eps);
    text("activation_function", "gelu_new");
    for (const char* name : {"attn_pdrop", "embd_pdrop", "resid_pdrop"}) set(name, spec_.dropout);
  }

  void add_sizes() {
    set("hidden_size", spec_.hidden_size);
    set("intermediate_size", spec_.intermediate_size);
    set("num_hidden_layers", spec_.layers);
    set("num_attention_heads", spec_.heads);
    set("num_key_value_heads", spec_.kv_heads);
    set("head_dim", spec_.head_size);
    set("max_position_embeddings", spec_.max_position);
    set("rms_norm_eps", spec_.norm_eps);
    const bool gemma = spec_.norms_from_zero;
    text(gemma ? "hidden_activation" : "hidden_act", spec_.activation == Activation::silu ? "silu" : "gelu_pytorch_tanh");
    if (gemma) text("hidden_act", "gelu_pytorch_tanh");
    if (spec_.family == "llama") set("mlp_bias", spec_.mlp_bias);
    if (spec_.family != "qwen2" && !spec_.fused_projections) set("attention_bias", spec_.output_bias);
    if (!spec_.post_norms) return;
    set("query_pre_attn_scalar", 1.0 / (spec_.attention_scale * spec_.attention_scale));
    number_or_null("attn_logit_softcapping", spec_.attention_softcap);
    number_or_null("final_logit_softcapping", spec_.logit_softcap);
  }

  void add_windows() {
    if (spec_.family == "llama" || spec_.family == "gemma") return;
    fields_["sliding_window"] = spec_.sliding_window == 0 ? "null" : std::to_string(spec_.sliding_window);
    const bool qwen = spec_.family.starts_with("qwen");
    if (qwen) set("use_sliding_window", spec_.sliding_window > 0);
    if (!(qwen || spec_.post_norms) || spec_.local_layers.empty()) return;
    std::string types;
    for (const bool local : spec_.local_layers)
      types += fmt::format("{}\"{}\"", types.empty() ? "" : ", ", local ? "sliding_attention" : "full_attention");
    fields_["layer_types"] = "[" + types + "]";
  }

  void add_rope() {
    const Rope& rope = spec_.rope;
    set("rope_theta", rope.theta);
    if (spec_.rotary_size > 0)
      set("partial_rotary_factor", static_cast<double>(spec_.rotary_size) / static_cast<double>(spec_.head_size));
    if (spec_.local_rope_theta > 0) set("rope_local_base_freq", spec_.local_rope_theta);
    switch (rope.scaling) {
      case RopeScaling::none: fields_["rope_scaling"] = "null"; return;
      case RopeScaling::linear:
        fields_["rope_scaling"] = fmt::format(R"({{"rope_type": "linear", "factor": {}}})", rope.factor);
        return;
      case RopeScaling::llama3:
        fields_["rope_scaling"] = fmt::format(
            R"({{"rope_type": "llama3", "factor": {}, "low_freq_factor": {}, "high_freq_factor": {}, "original_max_position_embeddings": {}}})",
            rope.factor, rope.low_freq_factor, rope.high_freq_factor, rope.original_max_position);
        return;
      case RopeScaling::yarn:
        fields_["rope_scaling"] = fmt::format(
            R"({{"rope_type": "yarn", "factor": {}, "attention_factor": {}, "beta_fast": {}, "beta_slow": {}, "truncate": {}, "original_max_position_embeddings": {}}})",
            rope.factor, rope.attention_factor, rope.beta_fast, rope.beta_slow, rope.truncate, rope.original_max_position);
        return;
      case RopeScaling::longrope:
        set("original_max_position_embeddings", rope.original_max_position);
        fields_["rope_scaling"] =
            fmt::format(R"({{"rope_type": "longrope", "attention_factor": {}, "short_factor": [{}], "long_factor": [{}]}})",
                        rope.attention_factor, fmt::join(rope.short_factors, ", "), fmt::join(rope.long_factors, ", "));
        return;
    }
  }

  void add_experts() {
    const Experts& experts = spec_.experts;
    if (experts.count == 0) return;
    set("num_experts_per_tok", experts.per_token);
    if (spec_.naming == TensorNaming::mixtral) return set("num_local_experts", experts.count);
    set("num_experts", experts.count);
    set("moe_intermediate_size", experts.intermediate_size);
    set("norm_topk_prob", experts.normalize);
  }

  const ModelSpec& spec_;
  std::map<std::string, std::string> fields_;  // JSON texts
};

// Gemma 3 with a vision tower: the tower's own description is not kept in a ModelSpec.
std::string without_vision(ModelSpec spec, DType dtype) {
  spec.family = "gemma3_text";
  spec.architecture = "Gemma3ForCausalLM";
  return ConfigText(spec, dtype).str();
}

}  // namespace

std::string format_config(const ModelSpec& spec, DType dtype) {
  return spec.family == "gemma3" ? without_vision(spec, dtype) : ConfigText(spec, dtype).str();
}

}  // namespace snug
