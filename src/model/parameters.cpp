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

namespace {

// The modules of a block, as a family calls them.
struct Names {
  std::string_view root, layers, embedding, positions, final_norm;
  std::string_view attention_norm, query, key, value, query_key_value, query_norm, key_norm, output, attention_post_norm;
  std::string_view mlp_norm, gate, up, gate_up, down, mlp_post_norm;
};

constexpr Names kLlama = {.root = "model.",
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

constexpr Names gemma_names(std::string_view root) {
  Names names = kLlama;
  names.root = root;
  names.attention_post_norm = "post_attention_layernorm";
  names.mlp_norm = "pre_feedforward_layernorm";
  names.mlp_post_norm = "post_feedforward_layernorm";
  return names;
}

constexpr Names kGpt2 = {.root = "transformer.",
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

constexpr Names kFalcon = {.root = "transformer.",
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

constexpr Names falcon_names(ParallelBlock parallel) {
  Names names = kFalcon;
  if (parallel == ParallelBlock::two_norms) names.attention_norm = "ln_attn";
  return names;
}

Names names_of(const ModelSpec& spec) {
  switch (spec.naming) {
    case TensorNaming::gpt2: return kGpt2;
    case TensorNaming::falcon: return falcon_names(spec.parallel);
    case TensorNaming::olmo2:
    case TensorNaming::gemma: return gemma_names(spec.family == "gemma3" ? "model.language_model." : "model.");
    case TensorNaming::llama:
    case TensorNaming::phi3:
    case TensorNaming::mixtral:
    case TensorNaming::qwen_moe:
    case TensorNaming::gpt_oss: break;
  }
  return kLlama;
}

class Table {
 public:
  explicit Table(const ModelSpec& spec) : spec_(spec), names_(names_of(spec)) {}

  std::vector<Parameter> make() {
    const int64_t C = spec_.hidden_size, V = spec_.vocab_size;
    once(names_.root, names_.embedding, {V, C}, ParameterKind::embedding, "embedding");
    if (spec_.learned_positions)
      once(names_.root, names_.positions, {spec_.max_position, C}, ParameterKind::embedding, "positions");
    add_attention();
    add_mlp();
    once(names_.root, names_.final_norm, {C}, ParameterKind::norm, "final_norm");
    if (spec_.norm == NormKind::layer) bias_of_last();
    if (!spec_.tied_embeddings) once("", "lm_head", {V, C}, ParameterKind::head, "head");
    return std::move(table_);
  }

 private:
  void add(std::string path, std::vector<int64_t> shape, ParameterKind kind, bool per_layer, std::string_view part) {
    std::string module = path.substr(path.rfind('.') + 1);
    table_.push_back({std::move(path) + ".weight", std::move(module), std::move(shape), kind, per_layer, std::string(part)});
  }

  void once(std::string_view root, std::string_view module, std::vector<int64_t> shape, ParameterKind kind,
            std::string_view part) {
    add(fmt::format("{}{}", root, module), std::move(shape), kind, false, part);
  }

  std::string in_layer(std::string_view module) const {
    return fmt::format("{}{}.{{}}.{}", names_.root, names_.layers, module);
  }

  // A bias beside the weight that came last, of the same module.
  void bias_of_last() {
    Parameter bias = table_.back();
    bias.name.replace(bias.name.rfind('.'), std::string::npos, ".bias");
    bias.shape = {bias.kind == ParameterKind::linear ? bias.output_features() : bias.shape[0]};
    bias.kind = ParameterKind::bias;
    bias.part += "_bias";
    table_.push_back(std::move(bias));
  }

  void norm(std::string_view module, int64_t size, std::string_view part) {
    add(in_layer(module), {size}, ParameterKind::norm, true, part);
    if (spec_.norm == NormKind::layer) bias_of_last();
  }

  void linear(std::string_view module, int64_t out, int64_t in, bool biased, std::string_view part) {
    add(in_layer(module), {out, in}, ParameterKind::linear, true, part);
    if (spec_.input_features_first) {
      table_.back().shape = {in, out};
      table_.back().input_features_first = true;
    }
    if (biased) bias_of_last();
  }

  void add_attention() {
    const int64_t C = spec_.hidden_size, D = spec_.head_size;
    const int64_t queries = checked_mul(spec_.heads, D), keys = checked_mul(spec_.kv_heads, D);
    const bool biased = spec_.query_key_value_bias;
    if (spec_.pre_norms) norm(names_.attention_norm, C, "attention_norm");
    if (spec_.fused_projections) {
      linear(names_.query_key_value, checked_add(queries, 2 * keys), C, biased, "query_key_value");
    } else {
      linear(names_.query, queries, C, biased, "query");
      linear(names_.key, keys, C, biased, "key");
      linear(names_.value, keys, C, biased, "value");
    }
    if (spec_.query_key_norms) {
      norm(names_.query_norm, spec_.wide_query_key_norms ? queries : D, "query_norm");
      norm(names_.key_norm, spec_.wide_query_key_norms ? keys : D, "key_norm");
    }
    if (spec_.attention_sinks) {
      add(in_layer("self_attn.sinks"), {spec_.heads}, ParameterKind::bias, true, "sinks");
      table_.back().name = in_layer("self_attn.sinks");  // no module of its own
    }
    linear(names_.output, C, queries, spec_.output_bias, "output");
    if (spec_.post_norms) norm(names_.attention_post_norm, C, "attention_post_norm");
  }

  void add_mlp() {
    const int64_t C = spec_.hidden_size, F = spec_.intermediate_size;
    if (spec_.pre_norms && spec_.parallel != ParallelBlock::one_norm) norm(names_.mlp_norm, C, "mlp_norm");
    if (spec_.experts.biased) return add_biased_experts();
    if (spec_.experts.count > 0) return add_experts();
    if (!spec_.gated_mlp) {
      linear(names_.up, F, C, spec_.mlp_bias, "up");
    } else if (spec_.fused_projections) {
      linear(names_.gate_up, checked_mul(2, F), C, spec_.mlp_bias, "gate_up");
    } else {
      linear(names_.gate, F, C, spec_.mlp_bias, "gate");
      linear(names_.up, F, C, spec_.mlp_bias, "up");
    }
    linear(names_.down, C, F, spec_.mlp_bias, "down");
    if (spec_.post_norms) norm(names_.mlp_post_norm, C, "mlp_post_norm");
  }

  // Files hold each expert's matrices apart, the Program stacks them.
  void add_experts() {
    const int64_t C = spec_.hidden_size, E = spec_.experts.count, F = spec_.experts.intermediate_size;
    const bool mixtral = spec_.naming == TensorNaming::mixtral;
    const std::string root = mixtral ? "block_sparse_moe." : "mlp.";
    add(in_layer(root + "gate"), {E, C}, ParameterKind::router, true, "router");
    const auto expert = [&](const char* module, int64_t out, int64_t in, const char* part) {
      add(in_layer(root + "experts.{e}." + module), {E, out, in}, ParameterKind::expert, true, part);
      table_.back().experts = E;
    };
    expert(mixtral ? "w1" : "gate_proj", F, C, "expert_gate");
    expert(mixtral ? "w3" : "up_proj", F, C, "expert_up");
    expert(mixtral ? "w2" : "down_proj", C, F, "expert_down");
  }

  // gpt-oss: files hold all experts' matrices stacked, [E, in, out]; here the last two axes are swapped, as everywhere.
  void add_biased_experts() {
    const int64_t C = spec_.hidden_size, E = spec_.experts.count, F = spec_.experts.intermediate_size;
    add(in_layer("mlp.router"), {E, C}, ParameterKind::router, true, "router");
    bias_of_last();
    const auto expert = [&](const std::string& module, int64_t out, int64_t in, const std::string& part) {
      const std::string path = in_layer("mlp.experts." + module);
      add(path, {E, out, in}, ParameterKind::expert, true, part);
      table_.back().name = path;
      table_.back().experts = E;
      add(path + "_bias", {E, out}, ParameterKind::bias, true, part + "_bias");
      table_.back().name = path + "_bias";
    };
    expert("gate_up_proj", checked_mul(2, F), C, "expert_gate_up");
    expert("down_proj", C, F, "expert_down");
  }

  const ModelSpec& spec_;
  Names names_;
  std::vector<Parameter> table_;
};

}  // namespace

std::vector<Parameter> parameters_of(const ModelSpec& spec) { return Table(spec).make(); }

int64_t total_parameters(const ModelSpec& spec) {
  int64_t total = spec.vision_parameters;
  for (const Parameter& parameter : parameters_of(spec)) {
    total = checked_add(total, checked_mul(parameter.elements(), parameter.per_layer ? spec.layers : 1));
  }
  return total;
}

std::vector<std::pair<std::string, std::string>> name_aliases(const ModelSpec& spec) {
  if (spec.naming == TensorNaming::gpt2) return {{"transformer.", ""}};  // OpenAI's files hold the model below the head
  if (spec.family == "gemma3")
    return {{"model.language_model.", "language_model.model."}, {"lm_head.", "language_model.lm_head."}};
  return {};
}

bool is_beside_the_model(const ModelSpec& spec, std::string_view name) {
  if (name.ends_with(".rotary_emb.inv_freq")) return true;
  if (spec.naming == TensorNaming::gpt2) return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
  return is_in_tower(spec, name);
}

bool is_in_tower(const ModelSpec& spec, std::string_view name) {
  if (spec.family != "gemma3") return false;
  if (name.starts_with("model.")) name.remove_prefix(6);
  return name.starts_with("vision_tower.") || name.starts_with("multi_modal_projector.");
}

}  // namespace snug
