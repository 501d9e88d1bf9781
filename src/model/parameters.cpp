#include "model/parameters.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "model/module_names.h"

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

class Table {
 public:
  explicit Table(const ModelSpec& spec) : spec_(spec), names_(module_names(spec)) {}

  std::vector<Parameter> make() {
    const int64_t C = spec_.hidden_size, V = spec_.vocab_size;
    once(names_.root, names_.embedding, {V, C}, ParameterKind::embedding, "embedding");
    if (spec_.learned_positions)
      once(names_.root, names_.positions, {checked_add(spec_.max_position, spec_.position_offset), C},
           ParameterKind::embedding, "positions");
    if (spec_.embedding_norm) {
      once(names_.root, "word_embeddings_layernorm", {C}, ParameterKind::norm, "embedding_norm");
      bias_of_last();
    }
    if (spec_.has_latent_attention()) {
      add_latent_attention();
    } else {
      add_attention();
    }
    if (spec_.naming == TensorNaming::deepseek || spec_.naming == TensorNaming::glm4_moe) {
      add_deepseek_mlps();
    } else {
      add_mlp();
    }
    once(names_.root, names_.final_norm, {C}, ParameterKind::norm, "final_norm");
    if (spec_.norm == NormKind::layer) bias_of_last();
    if (!spec_.tied_embeddings) once("", names_.head, {V, C}, ParameterKind::head, "head");
    if (spec_.head_bias) bias_of_last();
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

  void add_latent_attention() {
    const int64_t C = spec_.hidden_size, H = spec_.heads, D = spec_.head_size;
    const LatentAttention& latent = spec_.latent;
    norm(names_.attention_norm, C, "attention_norm");
    if (latent.query_rank > 0) {
      linear("self_attn.q_a_proj", latent.query_rank, C, false, "query_down");
      norm("self_attn.q_a_layernorm", latent.query_rank, "query_norm");
      linear("self_attn.q_b_proj", checked_mul(H, D), latent.query_rank, false, "query");
    } else {
      linear(names_.query, checked_mul(H, D), C, false, "query");
    }
    linear("self_attn.kv_a_proj_with_mqa", checked_add(latent.rank, spec_.rotary_size), C, false, "key_value_down");
    norm("self_attn.kv_a_layernorm", latent.rank, "key_value_norm");
    const int64_t keys_and_values = checked_add(D - spec_.rotary_size, latent.value_size);
    linear("self_attn.kv_b_proj", checked_mul(H, keys_and_values), latent.rank, false, "key_value");
    linear(names_.output, C, checked_mul(H, latent.value_size), false, "output");
  }

  void gated_mlp(const std::string& root, int64_t width, const std::string& part) {
    const int64_t C = spec_.hidden_size;
    linear(root + "gate_proj", width, C, false, part + "gate");
    linear(root + "up_proj", width, C, false, part + "up");
    linear(root + "down_proj", C, width, false, part + "down");
  }

  // A plain MLP in the first layers; in the others experts, and beside them those that all tokens share.
  void add_deepseek_mlps() {
    const Experts& experts = spec_.experts;
    norm(names_.mlp_norm, spec_.hidden_size, "mlp_norm");
    if (experts.dense_layers > 0) {
      const size_t begin = table_.size();
      gated_mlp("mlp.", spec_.intermediate_size, "");
      only_in(begin, 0, experts.dense_layers);
    }
    const size_t begin = table_.size();
    add_experts();
    gated_mlp("mlp.shared_experts.", experts.shared_size, "shared_");
    only_in(begin, experts.dense_layers, spec_.layers - experts.dense_layers);
  }

  // What was added since the table had `begin` entries is there in so many layers only.
  void only_in(size_t begin, int64_t first_layer, int64_t layer_count) {
    for (size_t i = begin; i < table_.size(); ++i) {
      table_[i].first_layer = first_layer;
      table_[i].layer_count = layer_count;
    }
  }

  void add_mlp() {
    const int64_t C = spec_.hidden_size, F = spec_.intermediate_size;
    if (spec_.pre_norms && spec_.parallel != ParallelBlock::one_norm) norm(names_.mlp_norm, C, "mlp_norm");
    if (spec_.experts.biased) return add_biased_experts();
    if (spec_.experts.count > 0) {
      add_experts();
      if (spec_.experts.shared_gate) {
        gated_mlp("mlp.shared_expert.", spec_.experts.shared_size, "shared_");
        linear("mlp.shared_expert_gate", 1, C, false, "shared_expert_gate");
      }
      return;
    }
    if (!spec_.gated_mlp) {
      linear(names_.up, F, C, spec_.mlp_bias, "up");
    } else if (spec_.fused_gate_up) {
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
    if (spec_.experts.fused) return add_fused_experts();
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

  // GraniteMoE: files hold all experts' matrices stacked.
  void add_fused_experts() {
    const int64_t C = spec_.hidden_size, E = spec_.experts.count, F = spec_.experts.intermediate_size;
    add(in_layer("block_sparse_moe.router.layer"), {E, C}, ParameterKind::router, true, "router");
    const auto expert = [&](const char* module, int64_t out, int64_t in, const char* part) {
      add(in_layer(std::string("block_sparse_moe.") + module), {E, out, in}, ParameterKind::expert, true, part);
      table_.back().experts = E;
    };
    expert("input_linear", checked_mul(2, F), C, "expert_gate_up");
    expert("output_linear", C, F, "expert_down");
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
  ModuleNames names_;
  std::vector<Parameter> table_;
};

ParameterKind kind_of(const KnownTensor& tensor) {
  if (tensor.shape.size() == 1) return tensor.name.ends_with("bias") ? ParameterKind::bias : ParameterKind::norm;
  if (tensor.name == "lm_head.weight") return ParameterKind::head;
  for (const std::string_view table : {"embed", ".wte.", ".wpe."})
    if (tensor.name.find(table) != std::string::npos) return ParameterKind::embedding;
  if (tensor.shape.size() == 3) return ParameterKind::expert;
  const bool router = tensor.name.ends_with(".gate.weight") || tensor.name.ends_with("moe.router.weight");
  return router ? ParameterKind::router : ParameterKind::linear;  // Llama 4's is a linear layer
}

// Of a model whose tensors are known one by one.
std::vector<Parameter> known_table(const ModelSpec& spec) {
  std::vector<Parameter> table;
  for (const KnownTensor& tensor : spec.tensors) {
    const std::string path = tensor.name.substr(0, tensor.name.rfind(".weight"));
    const std::string part = path.substr(path.rfind("{}.") == std::string::npos ? 0 : path.rfind("{}.") + 3);
    Parameter parameter{.name = tensor.name,
                        .module = path.substr(path.rfind('.') + 1),
                        .shape = tensor.shape,
                        .kind = kind_of(tensor),
                        .per_layer = tensor.layers > 0,
                        .part = part};
    parameter.layer_count = tensor.layers;
    table.push_back(std::move(parameter));
  }
  return table;
}

}  // namespace

std::vector<Parameter> parameters_of(const ModelSpec& spec) {
  return spec.tensors.empty() ? Table(spec).make() : known_table(spec);
}

int64_t total_parameters(const ModelSpec& spec) {
  int64_t total = spec.vision_parameters;
  for (const Parameter& parameter : parameters_of(spec)) {
    total = checked_add(total, checked_mul(parameter.elements(), parameter.instances(spec.layers)));
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
