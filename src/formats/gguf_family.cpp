#include "formats/gguf_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "formats/file.h"
#include "model/json.h"

namespace snug {

namespace dom = simdjson::dom;

namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

// Fields of config.json; one that is null is not there.
class Fields {
 public:
  Fields(dom::object object, std::string where) : object_(object), where_(std::move(where)) {}

  std::optional<dom::element> find(std::string_view name) const {
    const auto found = object_.at_key(name);
    if (found.error() != simdjson::SUCCESS || found.value_unsafe().is_null()) return std::nullopt;
    return found.value_unsafe();
  }
  int64_t integer(std::string_view name, int64_t low = 1) const {
    const auto value = find(name);
    if (!value) throw Error(fmt::format("'{}' is missing", name), where_);
    return json_integer(name, *value, low, kMost, where_);
  }
  int64_t integer_or(std::string_view name, int64_t otherwise, int64_t low = 1) const {
    return find(name) ? integer(name, low) : otherwise;
  }
  double number_or(std::string_view name, double otherwise) const {
    const auto value = find(name);
    return value ? json_number(name, *value, where_) : otherwise;
  }
  std::string text_or(std::string_view name, const std::string& otherwise) const {
    const auto value = find(name);
    return value ? json_string(name, *value, where_) : otherwise;
  }
  bool is_true(std::string_view name) const {
    const auto value = find(name);
    return value && json_boolean(name, *value, where_);
  }
  std::optional<Fields> object(std::string_view name) const {
    const auto value = find(name);
    return value ? std::optional(Fields(json_object(name, *value, where_), where_)) : std::nullopt;
  }
  // A token's id, or the first of several.
  std::vector<int32_t> token(std::string_view name) const {
    auto value = find(name);
    if (value && value->is_array()) {
      const dom::array list = json_array(name, *value, where_);
      if (list.begin() == list.end()) return {};
      value = *list.begin();
    }
    if (!value) return {};
    const int64_t id = json_integer(name, *value, -1, kMost, where_);
    return id < 0 ? std::vector<int32_t>() : std::vector{static_cast<int32_t>(id)};
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(what, where_, "llama.cpp would compute something else");
  }

 private:
  dom::object object_;
  std::string where_;
};

struct Known {
  std::string_view model_type, architecture, activation;
};

constexpr auto kKnown = std::to_array<Known>({
    {"llama", "llama", "silu"},
    {"mistral", "llama", "silu"},
    {"mixtral", "llama", "silu"},
    {"qwen2", "qwen2", "silu"},
    {"qwen3", "qwen3", "silu"},
    {"qwen3_moe", "qwen3moe", "silu"},
    {"gemma2", "gemma2", "gelu_pytorch_tanh"},
    {"gemma3_text", "gemma3", "gelu_pytorch_tanh"},
    {"phi3", "phi3", "silu"},
    {"gpt2", "gpt2", "gelu_new"},
});

// What llama.cpp divides each frequency by (transformers, modeling_rope_utils.py, llama3), computed as its converter does.
std::vector<float> llama3_factors(const Fields& rope, double theta, int64_t head_size) {
  const double factor = rope.number_or("factor", 8.0), low = rope.number_or("low_freq_factor", 1.0);
  const double high = rope.number_or("high_freq_factor", 4.0);
  const auto original = static_cast<double>(rope.integer_or("original_max_position_embeddings", 8192));
  if (!(factor > 0 && low > 0 && high > low)) rope.refuse("the llama3 rope scaling makes no sense");
  std::vector<float> factors;
  for (int64_t i = 0; i < head_size; i += 2) {
    const auto power =
        static_cast<float>(std::pow(theta, static_cast<double>(static_cast<float>(i) / static_cast<float>(head_size))));
    const double wavelength = 2.0 * std::numbers::pi / static_cast<double>(1.0F / power);
    double by = 1.0;
    if (wavelength > original / low) {
      by = factor;
    } else if (wavelength >= original / high) {
      const double smooth = (original / wavelength - low) / (high - low);
      by = 1.0 / ((1.0 - smooth) / factor + smooth);
    }
    factors.push_back(static_cast<float>(by));
  }
  return factors;
}

class Reader {
 public:
  Reader(const Fields& fields, GgufFamily& family) : fields_(fields), family_(family) {}

  void read() {
    find_family();
    if (family_.model_type == "gpt2") return read_gpt2();
    sizes();
    windows();
    rotary();
    experts();
  }

 private:
  template <class Value>
  void key(const std::string& name, Value value) {
    family_.keys.emplace_back(family_.architecture + "." + name, value);
  }
  void size(const std::string& name, int64_t value) { key(name, static_cast<uint32_t>(value)); }
  void real(const std::string& name, double value) { key(name, static_cast<float>(value)); }

  void find_family() {
    family_.model_type = fields_.text_or("model_type", "");
    const auto known =
        std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& k) { return k.model_type == family_.model_type; });
    if (known == kKnown.end()) {
      std::string names;
      for (const Known& k : kKnown) names += (names.empty() ? "" : ", ") + std::string(k.model_type);
      throw Error(fmt::format("model_type '{}' cannot be exported to GGUF", family_.model_type), "config.json",
                  "supported: " + names);
    }
    family_.architecture = known->architecture;
    const std::string activation = fields_.text_or(
        "hidden_activation",
        fields_.text_or("hidden_act", fields_.text_or("activation_function", std::string(known->activation))));
    if (activation != known->activation) fields_.refuse(fmt::format("the activation '{}' cannot be exported", activation));
    if (fields_.find("quantization_config")) fields_.refuse("a quantized model cannot be exported");
    family_.vocab_size = fields_.integer("vocab_size");
    family_.bos = fields_.token("bos_token_id");
    family_.eos = fields_.token("eos_token_id");
    family_.pad = fields_.token("pad_token_id");
  }

  void read_gpt2() {
    const int64_t width = fields_.integer("n_embd");
    family_.layers = fields_.integer("n_layer");
    family_.heads = family_.kv_heads = fields_.integer("n_head");
    if (fields_.integer_or("n_inner", 4 * width) != 4 * width) fields_.refuse("n_inner is not 4 n_embd");
    if (fields_.is_true("scale_attn_by_inverse_layer_idx")) fields_.refuse("scale_attn_by_inverse_layer_idx is set");
    size("block_count", family_.layers);
    size("context_length", fields_.integer_or("n_positions", fields_.integer_or("n_ctx", 1024)));
    size("embedding_length", width);
    size("feed_forward_length", 4 * width);
    size("attention.head_count", family_.heads);
    real("attention.layer_norm_epsilon", fields_.number_or("layer_norm_epsilon", 1e-5));
    size("vocab_size", family_.vocab_size);
  }

  void sizes() {
    const int64_t width = fields_.integer("hidden_size");
    family_.layers = fields_.integer("num_hidden_layers");
    family_.heads = fields_.integer("num_attention_heads");
    family_.kv_heads = fields_.integer_or("num_key_value_heads", family_.heads);
    head_size_ = fields_.integer_or("head_dim", std::max<int64_t>(1, width / family_.heads));
    context_ = fields_.integer("max_position_embeddings");
    if (head_size_ % 2 != 0) fields_.refuse("the size of a head is odd");
    size("block_count", family_.layers);
    size("context_length", context_);
    size("embedding_length", width);
    size("feed_forward_length", fields_.integer("intermediate_size"));
    size("attention.head_count", family_.heads);
    size("attention.head_count_kv", family_.kv_heads);
    size("attention.key_length", head_size_);
    size("attention.value_length", head_size_);
    real("attention.layer_norm_rms_epsilon", fields_.number_or("rms_norm_eps", 1e-6));
    size("vocab_size", family_.vocab_size);
  }

  // Which layers see a window is written into llama.cpp for each family.
  void require_windows(int64_t every) {
    const auto types = fields_.find("layer_types");
    if (!types) {
      if (fields_.integer_or("sliding_window_pattern", every) != every) fields_.refuse("sliding_window_pattern differs");
      return;
    }
    int64_t layer = 0;
    for (const dom::element type : json_array("layer_types", *types, "config.json")) {
      const bool full = ++layer % every == 0;
      if (json_string("layer_types", type, "config.json") != (full ? "full_attention" : "sliding_attention"))
        fields_.refuse("layer_types differ from this family's pattern");
    }
  }

  void windows() {
    const bool gemma2 = family_.model_type == "gemma2", gemma3 = family_.model_type == "gemma3_text";
    const int64_t window = fields_.integer_or("sliding_window", 0, 0);
    if (gemma2 || gemma3) {
      require_windows(gemma2 ? 2 : 6);
      gemma_scale(gemma2 ? 46 : 62);
      size("attention.sliding_window", window);
      if (gemma2 && !fields_.find("attn_logit_softcapping")) fields_.refuse("attn_logit_softcapping is missing");
      if (gemma3 && fields_.find("attn_logit_softcapping")) fields_.refuse("attn_logit_softcapping is set");
      if (gemma2) real("attn_logit_softcapping", fields_.number_or("attn_logit_softcapping", 50.0));
      if (gemma2 && !fields_.find("final_logit_softcapping")) fields_.refuse("final_logit_softcapping is missing");
      if (fields_.find("final_logit_softcapping"))
        real("final_logit_softcapping", fields_.number_or("final_logit_softcapping", 30.0));
      if (fields_.is_true("use_bidirectional_attention")) fields_.refuse("use_bidirectional_attention is set");
    } else if (family_.model_type == "phi3") {
      size("attention.sliding_window", window);
    } else if (family_.model_type.starts_with("qwen")) {
      if (fields_.is_true("use_sliding_window")) fields_.refuse("use_sliding_window is set");
    } else if (window > 0 && window < context_) {
      family_.notes.push_back(
          fmt::format("the model sees {} tokens back, llama.cpp all of them: the two agree up to that length", window));
    }
  }

  // llama.cpp scales by the size of a head, but in the largest model of each family by the width over the heads.
  void gemma_scale(int64_t largest_layers) {
    const auto scalar = fields_.number_or("query_pre_attn_scalar", 256.0);
    const int64_t expected = family_.layers == largest_layers ? fields_.integer("hidden_size") / family_.heads : head_size_;
    if (scalar != static_cast<double>(expected)) fields_.refuse(fmt::format("query_pre_attn_scalar is not {}", expected));
  }

  void rotary() {
    std::optional<Fields> rope = fields_.object("rope_parameters");
    if (!rope) rope = fields_.object("rope_scaling");
    double theta = fields_.number_or("rope_theta", family_.model_type == "gemma3_text" ? 1e6 : 10000.0);
    double local = fields_.number_or("rope_local_base_freq", 10000.0);
    if (rope && rope->object("full_attention")) {
      if (const auto sliding = rope->object("sliding_attention")) local = sliding->number_or("rope_theta", local);
      rope = rope->object("full_attention");
    }
    if (rope) theta = rope->number_or("rope_theta", theta);
    size("rope.dimension_count", head_size_);
    real("rope.freq_base", theta);
    if (family_.model_type == "gemma3_text") real("rope.freq_base_swa", local);
    const double part = rope ? rope->number_or("partial_rotary_factor", fields_.number_or("partial_rotary_factor", 1.0))
                             : fields_.number_or("partial_rotary_factor", 1.0);
    if (part != 1.0) fields_.refuse("partial_rotary_factor cannot be exported");
    if (family_.model_type == "phi3")
      size("rope.scaling.original_context_length", fields_.integer_or("original_max_position_embeddings", context_));
    if (rope) scaling(*rope, theta);
  }

  void scaling(const Fields& rope, double theta) {
    const std::string type = rope.text_or("rope_type", rope.text_or("type", "default"));
    if (type == "default") return;
    if (type == "linear") {
      key("rope.scaling.type", std::string("linear"));
      real("rope.scaling.factor", rope.number_or("factor", 1.0));
    } else if (type == "llama3" && family_.architecture == "llama") {
      family_.rope_factors = llama3_factors(rope, theta, head_size_);
    } else {
      fields_.refuse(fmt::format("rope scaling '{}' cannot be exported", type));
    }
  }

  void experts() {
    if (family_.model_type != "mixtral" && family_.model_type != "qwen3_moe") return;
    family_.experts = fields_.integer(fields_.find("num_local_experts") ? "num_local_experts" : "num_experts");
    size("expert_count", family_.experts);
    size("expert_used_count", fields_.integer("num_experts_per_tok"));
    if (family_.model_type == "mixtral") return;
    size("expert_feed_forward_length", fields_.integer("moe_intermediate_size"));
    if (fields_.integer_or("decoder_sparse_step", 1) != 1) fields_.refuse("decoder_sparse_step is not 1");
    if (const auto dense = fields_.find("mlp_only_layers"); dense && !json_is_off(*dense))
      fields_.refuse("mlp_only_layers is not empty");
    if (const auto norm = fields_.find("norm_topk_prob"); !norm || !json_boolean("norm_topk_prob", *norm, "config.json"))
      fields_.refuse("norm_topk_prob is not true");
  }

  const Fields& fields_;
  GgufFamily& family_;
  int64_t head_size_ = 0, context_ = 0;
};

struct Name {
  std::string_view module, gguf;
};

constexpr auto kTop = std::to_array<Name>({{"embed_tokens", "token_embd"},
                                           {"wte", "token_embd"},
                                           {"wpe", "position_embd"},
                                           {"norm", "output_norm"},
                                           {"ln_f", "output_norm"},
                                           {"lm_head", "output"}});

constexpr auto kBlock = std::to_array<Name>({{"self_attn.q_proj", "attn_q"},
                                             {"self_attn.k_proj", "attn_k"},
                                             {"self_attn.v_proj", "attn_v"},
                                             {"self_attn.o_proj", "attn_output"},
                                             {"self_attn.qkv_proj", "attn_qkv"},
                                             {"self_attn.q_norm", "attn_q_norm"},
                                             {"self_attn.k_norm", "attn_k_norm"},
                                             {"mlp.gate_proj", "ffn_gate"},
                                             {"mlp.up_proj", "ffn_up"},
                                             {"mlp.down_proj", "ffn_down"},
                                             {"mlp.gate_up_proj", "ffn_up"},
                                             {"mlp.gate", "ffn_gate_inp"},
                                             {"block_sparse_moe.gate", "ffn_gate_inp"},
                                             {"input_layernorm", "attn_norm"},
                                             {"post_attention_layernorm", "ffn_norm"},
                                             {"ln_1", "attn_norm"},
                                             {"ln_2", "ffn_norm"},
                                             {"attn.c_attn", "attn_qkv"},
                                             {"attn.c_proj", "attn_output"},
                                             {"mlp.c_fc", "ffn_up"},
                                             {"mlp.c_proj", "ffn_down"}});

// Gemma has a norm before and one after each part.
constexpr auto kGemma = std::to_array<Name>({{"post_attention_layernorm", "post_attention_norm"},
                                             {"pre_feedforward_layernorm", "ffn_norm"},
                                             {"post_feedforward_layernorm", "post_ffw_norm"}});

constexpr auto kExpert = std::to_array<Name>({{"w1", "ffn_gate_exps"},
                                              {"w2", "ffn_down_exps"},
                                              {"w3", "ffn_up_exps"},
                                              {"gate_proj", "ffn_gate_exps"},
                                              {"down_proj", "ffn_down_exps"},
                                              {"up_proj", "ffn_up_exps"}});

template <size_t count>
std::string_view find_name(const std::array<Name, count>& names, std::string_view module) {
  const auto found = std::find_if(names.begin(), names.end(), [&](const Name& n) { return n.module == module; });
  return found == names.end() ? std::string_view() : found->gguf;
}

bool cut_front(std::string_view& text, std::string_view front) {
  if (!text.starts_with(front)) return false;
  text.remove_prefix(front.size());
  return true;
}

// The number at the front of `text`, with the dot behind it.
std::optional<int64_t> cut_number(std::string_view& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != '.' || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return number;
}

bool is_norm(std::string_view gguf) { return gguf.ends_with("_norm"); }

}  // namespace

std::optional<GgufPlace> GgufFamily::place_of(std::string_view tensor) const {
  if (tensor.ends_with(".rotary_emb.inv_freq") || tensor.ends_with(".attn.masked_bias") ||
      (model_type == "gpt2" && tensor.ends_with(".attn.bias")))
    return std::nullopt;
  const auto unknown = [&] { return Error(fmt::format("tensor '{}' has no name in GGUF's '{}'", tensor, architecture)); };
  std::string_view rest = tensor;
  if (!cut_front(rest, "model.")) cut_front(rest, "transformer.");
  std::string front;
  std::optional<int64_t> layer;
  if (cut_front(rest, "layers.") || cut_front(rest, "h.")) {
    layer = cut_number(rest);
    if (!layer || *layer >= layers) throw unknown();
    front = fmt::format("blk.{}.", *layer);
  }
  const size_t dot = rest.rfind('.');
  if (dot == std::string_view::npos) throw unknown();
  const std::string_view kind = rest.substr(dot + 1);
  std::string_view module = rest.substr(0, dot);
  if (kind != "weight" && kind != "bias") throw unknown();

  GgufPlace place;
  std::string_view name;
  if (cut_front(module, "block_sparse_moe.experts.") || cut_front(module, "mlp.experts.")) {
    const auto expert = cut_number(module);
    name = find_name(kExpert, module);
    if (!expert || *expert >= experts || kind != "weight") throw unknown();
    place.expert = *expert;
  } else if (layer) {
    if (architecture.starts_with("gemma")) name = find_name(kGemma, module);
    if (name.empty()) name = find_name(kBlock, module);
  } else {
    name = find_name(kTop, module);
  }
  if (name.empty()) throw unknown();
  if (name == "output" && architecture.starts_with("gemma"))
    throw Error("llama.cpp has no head of its own in Gemma", std::string(tensor),
                "this model's head was untied by its adapter");
  place.name = fmt::format("{}{}.{}", front, name, kind);
  place.always_f32 = kind == "bias" || is_norm(name) || name == "position_embd" || name == "ffn_gate_inp";
  if (architecture == "llama" && (name == "attn_q" || name == "attn_k")) {
    place.change = GgufChange::interleave_heads;
    place.heads = name == "attn_q" ? heads : kv_heads;
  }
  if (architecture.starts_with("gemma") && is_norm(name)) place.change = GgufChange::add_one;
  if (model_type == "gpt2" && layer && kind == "weight" && !is_norm(name)) place.change = GgufChange::transpose;
  return place;
}

GgufFamily parse_gguf_family(std::string_view json, const std::string& where) {
  const JsonDocument document(json, where);
  const Fields fields(document.root_object(), where);
  GgufFamily family;
  Reader(fields, family).read();
  return family;
}

GgufFamily read_gguf_family(const std::filesystem::path& model) {
  const std::filesystem::path path = model / "config.json";
  if (!is_there(path)) throw Error("there is no config.json here", model.string(), "give a checkpoint directory");
  return parse_gguf_family(read_text_file(path, int64_t{16} << 20), path.string());
}

}  // namespace snug
