#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/checked.h"
#include "base/error.h"
#include "model/config_fields.h"
#include "model/deepseek_config.h"
#include "model/families.h"
#include "model/hub_cache.h"
#include "model/parameters.h"
#include "model/quantization_config.h"
#include "model/rope_config.h"
#include "model/tower_config.h"

namespace snug {

namespace dom = simdjson::dom;

namespace {

constexpr int64_t kLargestConfigBytes = int64_t{16} << 20;

// Fields that never change the arithmetic of a forward or backward pass.
constexpr auto kHarmless = std::to_array<std::string_view>({
    "_name_or_path",
    "quantization_config",  // says how the file is written; read apart
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_flash_attn_2_enabled",
    "attn_implementation",
    "boi_token_index",
    "eoi_token_index",
    "image_token_index",
    "mm_tokens_per_image",
    "cache_implementation",
    "chunk_size_feed_forward",
    "finetuning_task",
    "id2label",
    "is_llama_config",
    "label2id",
    "max_length",
    "max_sequence_length",
    "min_length",
    "do_sample",
    "temperature",
    "top_p",
    "top_k",
    "typical_p",
    "num_beams",
    "num_beam_groups",
    "num_return_sequences",
    "repetition_penalty",
    "length_penalty",
    "diversity_penalty",
    "early_stopping",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "bad_words_ids",
    "begin_suppress_tokens",
    "suppress_tokens",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "remove_invalid_values",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "prefix",
    "router_aux_loss_coef",
    "problem_type",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "decoder_start_token_id",
    "task_specific_params",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
});

// Features that checkpoints switch off explicitly. Any other value would change the mathematics.
constexpr auto kMustBeOff = std::to_array<std::string_view>({
    "add_cross_attention",
    "attention_dropout",
    "cross_attention_hidden_size",
    "is_decoder",
    "is_encoder_decoder",
    "output_router_logits",
    "pruned_heads",
    "reorder_and_upcast_attn",
    "rope_interleaved",
    "router_jitter_noise",
    "scale_attn_by_inverse_layer_idx",
    "use_bidirectional_attention",
});

// Beside a text model, of which they say nothing.
constexpr auto kTowers = std::to_array<std::string_view>({
    "text_config",
    "vision_config",
    "multimodal_projector_bias",
    "projector_hidden_act",
    "spatial_merge_size",
    "vision_feature_layer",
});

template <size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Fields read for every family.
constexpr auto kCommon = std::to_array<std::string_view>({
    "architectures",
    "attention_bias",
    "bos_token_id",
    "dtype",
    "eos_token_id",
    "head_dim",
    "hidden_act",
    "hidden_size",
    "initializer_range",
    "intermediate_size",
    "max_position_embeddings",
    "mlp_bias",
    "model_type",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "pad_token_id",
    "partial_rotary_factor",
    "pretraining_tp",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "tie_word_embeddings",
    "torch_dtype",
    "vocab_size",
});

Activation activation_of(const ConfigFields& config, std::string_view field, const std::string& name, bool plan_only) {
  for (const std::string_view other : {"gelu", "relu", "relu2"})
    if (plan_only && name == other) return Activation::gelu_tanh;  // its memory is the same here
  if (name == "silu" || name == "swish") return Activation::silu;
  for (const std::string_view tanh : {"gelu_pytorch_tanh", "gelu_new", "gelu_fast"})
    if (name == tanh) return Activation::gelu_tanh;
  config.refuse(fmt::format("{} \"{}\" is not supported yet", config.label(field), name),
                "supported: silu, gelu_pytorch_tanh, gelu_new");
}

class ConfigReader {
 public:
  // `inherited`: fields that an outer object gives, or null.
  ConfigReader(ConfigFields config, const ConfigFields* inherited) : config_(std::move(config)), inherited_(inherited) {}

  ModelSpec read() {
    ModelSpec spec;
    const Family& family = read_family();
    spec.family = family.model_type;
    spec.architecture = family.architecture;
    if (family.tensors) return read_tensors(family, std::move(spec));
    family.fix(spec);
    refuse_unknown_fields(family);
    if (spec.naming == TensorNaming::gpt2) {
      read_gpt2_sizes(spec);
    } else if (family.sizes) {
      family.sizes(config_, spec);
    } else {
      read_sizes(spec, family);
    }
    if (spec.naming == TensorNaming::deepseek) {
      read_latent_attention(config_, spec);
    } else {
      read_heads(spec, family);
    }
    read_windows(spec, family);
    read_switches(spec, family);
    read_experts(spec);
    if (family.details) family.details(config_, spec);
    if (!spec.learned_positions && !spec.alibi) read_rope(config_, family.rope_theta, family.rotary_share, spec);
    read_dtype(spec);
    spec.bos_token_id = token("bos_token_id", spec.vocab_size);
    spec.eos_token_id = token("eos_token_id", spec.vocab_size);
    spec.pad_token_id = token("pad_token_id", spec.vocab_size);
    checked_mul(total_parameters(spec), 64);  // every sum of bytes that follows stays within 63 bits
    return spec;
  }

 private:
  ModelSpec read_tensors(const Family& family, ModelSpec spec) const {
    family.tensors(config_, spec);
    read_dtype(spec);
    checked_mul(total_parameters(spec), 64);
    return spec;
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& mend = {}) const { config_.refuse(what, mend); }

  int64_t token(std::string_view name, int64_t vocab_size) const {
    const int64_t own = config_.token(name, vocab_size);
    return own < 0 && inherited_ != nullptr ? inherited_->token(name, vocab_size) : own;
  }

  // By model_type, or by architectures where that is all there is.
  const Family& read_family() const {
    const Family* family = nullptr;
    if (std::string name = config_.string("model_type", ""); !name.empty()) {
      if (name == "chatglm" && config_.field("inner_hidden_size")) name = "chatglm1";  // the first, another architecture
      if (name == "kimi_k2") name = "deepseek_v3";  // a name of its own for the same architecture
      family = find_family(&Family::model_type, name);
      if (!family && name.ends_with("_text")) family = find_family(&Family::model_type, name.substr(0, name.size() - 5));
      if (family != nullptr && family->tensors) return *family;
      if (family == nullptr)
        refuse(fmt::format("model_type '{}' is not supported yet", name), supported_families(&Family::model_type));
    }
    if (const auto architectures = config_.field("architectures")) {
      for (const dom::element entry : json_array("architectures", *architectures, config_.where())) {
        const std::string name = json_string("architectures", entry, config_.where());
        const Family* named = find_family(&Family::architecture, name);
        if (named == nullptr || (family != nullptr && named != family)) {
          refuse(fmt::format("architecture '{}' is not supported yet", name),
                 family ? fmt::format("supported with model_type {}: {}", family->model_type, family->architecture)
                        : supported_families(&Family::architecture));
        }
        family = named;
      }
    }
    if (family == nullptr) refuse("neither model_type nor architectures is given", "is this a Hugging Face config.json?");
    return *family;
  }

  void refuse_unknown_fields(const Family& family) const {
    for (const auto [name, value] : config_.object()) {
      if (value.is_null() || contains(kCommon, name) || contains(kHarmless, name)) continue;
      if (std::find(family.fields.begin(), family.fields.end(), name) != family.fields.end()) continue;
      // Phi-3 names its dropouts like GPT-2, but trains without.
      const bool must_be_off = contains(kMustBeOff, name) || name == "resid_pdrop" || name == "embd_pdrop";
      if (!must_be_off) {
        refuse(fmt::format("field '{}' is not understood and could change the mathematics", config_.label(name)),
               "remove it if it has no effect on this model");
      }
      if (!json_is_off(value)) refuse(fmt::format("{} = {} is not supported yet", config_.label(name), json_excerpt(value)));
    }
    if (config_.number("pretraining_tp", 1.0) != 1.0 && family.model_type != "bloom")
      refuse("pretraining_tp other than 1 is not supported", "set it to 1: the weights are the same");
  }

  void read_sizes(ModelSpec& spec, const Family& family) const {
    spec.hidden_size = config_.dimension("hidden_size");
    spec.intermediate_size = config_.dimension("intermediate_size");
    spec.vocab_size = config_.dimension("vocab_size");
    spec.layers = config_.integer("num_hidden_layers", std::nullopt, 1, kMostLayers);
    spec.heads = config_.dimension("num_attention_heads");
    const bool few_kv_heads = family.kv_heads > 0 && !config_.given("num_key_value_heads");
    spec.kv_heads = config_.dimension("num_key_value_heads", few_kv_heads ? family.kv_heads : spec.heads);
    spec.max_position = config_.dimension("max_position_embeddings", family.max_position);
    spec.norm_eps = config_.number("rms_norm_eps", family.norm_eps);
    if (spec.norm_eps <= 0.0 || spec.norm_eps >= 1.0) refuse("rms_norm_eps must lie between 0 and 1");
  }

  // GPT-2 has words of its own, and sizes where they are silent.
  void read_gpt2_sizes(ModelSpec& spec) const {
    spec.hidden_size = config_.dimension("n_embd", 768);
    spec.intermediate_size = config_.dimension("n_inner", checked_mul(spec.hidden_size, 4));
    spec.vocab_size = config_.dimension("vocab_size", 50257);
    spec.layers = config_.integer("n_layer", 12, 1, kMostLayers);
    spec.heads = spec.kv_heads = config_.dimension("n_head", 12);
    spec.max_position = config_.dimension("n_positions", 1024);
    spec.norm_eps = config_.number("layer_norm_epsilon", 1e-5);
    if (spec.norm_eps <= 0.0 || spec.norm_eps >= 1.0) refuse("layer_norm_epsilon must lie between 0 and 1");
    if (!config_.boolean("scale_attn_weights", true)) refuse("scale_attn_weights = false is not supported");
    for (const std::string_view name : {"attn_pdrop", "embd_pdrop", "resid_pdrop"})
      spec.dropout = std::max(spec.dropout, config_.number(name, 0.1));
  }

  void read_heads(ModelSpec& spec, const Family& family) const {
    const bool divided =
        spec.head_size == 0 && !config_.field("head_dim") && (family.head_size == 0 || config_.given("head_dim"));
    if (divided && spec.hidden_size % spec.heads != 0) {
      refuse(fmt::format("hidden_size {} is not a multiple of num_attention_heads {}", spec.hidden_size, spec.heads));
    }
    const int64_t share = std::max<int64_t>(spec.hidden_size / spec.heads, 1);
    if (spec.head_size == 0) spec.head_size = config_.dimension("head_dim", divided ? share : family.head_size);
  }

  // Which layers see a window only: all (Mistral, Phi-3), those that layer_types names, every other one (Gemma 2), all but
  // each sixth (Gemma 3), those from max_window_layers on (Qwen).
  void read_windows(ModelSpec& spec, const Family& family) const {
    const bool known = family.sliding_window > 0 ||
                       std::find(family.fields.begin(), family.fields.end(), "sliding_window") != family.fields.end();
    if (!known) return;
    const int64_t assumed = config_.given("sliding_window") ? 0 : family.sliding_window;
    const bool qwen = std::find(family.fields.begin(), family.fields.end(), "use_sliding_window") != family.fields.end();
    const bool used = !qwen || config_.boolean("use_sliding_window", false);
    spec.sliding_window = used ? config_.dimension("sliding_window", assumed) : 0;
    const auto layers = static_cast<size_t>(spec.layers);
    if (const auto types = config_.field("layer_types")) {
      for (const dom::element entry : json_array(config_.label("layer_types"), *types, config_.where())) {
        const std::string type = json_string(config_.label("layer_types"), entry, config_.where());
        if (type != "sliding_attention" && type != "full_attention")
          refuse(fmt::format("layer type '{}' is not supported yet", type), "supported: full_attention, sliding_attention");
        spec.local_layers.push_back(type == "sliding_attention");
      }
      if (spec.local_layers.size() != layers)
        refuse(
            fmt::format("{} has {} entries for {} layers", config_.label("layer_types"), spec.local_layers.size(), layers));
    } else if (spec.sliding_window > 0) {
      const bool every_fourth = spec.naming == TensorNaming::olmo2;
      const int64_t pattern =
          every_fourth ? 4 : config_.dimension("sliding_window_pattern", config_.dimension("_sliding_window_pattern", 6));
      const int64_t from = qwen ? config_.integer("max_window_layers", 28, 0, kMostLayers) : 0;
      for (int64_t i = 0; i < spec.layers; ++i) {
        bool local = i >= from;
        if (spec.naming == TensorNaming::gpt_oss) local = i % 2 == 0;
        if (spec.post_norms) local = spec.query_key_norms ? (i + 1) % pattern != 0 : i % 2 == 0;
        spec.local_layers.push_back(local);
      }
    }
    const bool any = std::find(spec.local_layers.begin(), spec.local_layers.end(), true) != spec.local_layers.end();
    if (any && spec.sliding_window == 0) refuse("layer_types names sliding attention, but sliding_window is not given");
    if (!any) spec.local_layers.clear(), spec.sliding_window = 0;
  }

  void read_switches(ModelSpec& spec, const Family& family) const {
    std::string field = "hidden_act";
    if (spec.learned_positions) field = "activation_function";
    if (spec.naming == TensorNaming::falcon) field = "activation";
    if (config_.field("hidden_activation")) field = "hidden_activation";
    spec.activation = activation_of(config_, field, config_.string(field, family.activation), family.plan_only);
    if (config_.boolean("attention_bias", spec.naming == TensorNaming::gpt_oss)) {
      if (spec.fused_projections) refuse("attention_bias = true is not supported in this family");
      spec.query_key_value_bias = spec.output_bias = true;
    }
    spec.mlp_bias = config_.boolean("mlp_bias", spec.mlp_bias);
    spec.initializer_range = config_.number("initializer_range", 0.02);
    if (spec.initializer_range < 0.0) refuse("initializer_range must not be negative");
    const bool outer = inherited_ != nullptr && inherited_->boolean("tie_word_embeddings", family.tied);
    spec.tied_embeddings = config_.boolean("tie_word_embeddings", inherited_ != nullptr ? outer : family.tied);
    if (spec.norms_from_zero && spec.norm == NormKind::rms)
      spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden_size));
    if (spec.naming != TensorNaming::gemma) return;
    spec.attention_scale = 1.0 / std::sqrt(config_.positive("query_pre_attn_scalar", 256.0));
    const bool capped = !spec.query_key_norms;  // Gemma 2's defaults
    spec.attention_softcap = cap("attn_logit_softcapping", capped ? 50.0 : 0.0);
    spec.logit_softcap = cap("final_logit_softcapping", capped ? 30.0 : 0.0);
  }

  double cap(std::string_view name, double assumed) const {
    if (!config_.given(name)) return assumed;
    return config_.field(name) ? config_.positive(name, 1.0) : 0.0;
  }

  void read_experts(ModelSpec& spec) const {
    if (spec.naming == TensorNaming::deepseek) return read_deepseek_experts(config_, spec);
    const bool qwen = spec.naming == TensorNaming::qwen_moe;
    const bool gpt_oss = spec.naming == TensorNaming::gpt_oss;
    if (!qwen && !gpt_oss && spec.naming != TensorNaming::mixtral) return;
    const std::string_view count = config_.field("num_experts") ? "num_experts" : "num_local_experts";
    const bool olmoe = spec.wide_query_key_norms, old = spec.experts.shared_gate;
    const int64_t usual = old ? 60 : olmoe ? 64 : qwen || gpt_oss ? 128 : 8;
    spec.experts.count = config_.integer(count, usual, 1, kMostExperts);
    spec.experts.per_token = config_.integer("num_experts_per_tok",
                                             qwen && !old      ? 8
                                             : qwen || gpt_oss ? 4
                                                               : 2,
                                             1, spec.experts.count);
    spec.experts.intermediate_size =
        qwen && !olmoe ? config_.dimension("moe_intermediate_size", old ? 1408 : 768) : spec.intermediate_size;
    spec.experts.normalize = !qwen || config_.boolean("norm_topk_prob", false);
    if (config_.integer("decoder_sparse_step", 1, 1, kMostLayers) != 1)
      refuse("decoder_sparse_step other than 1 is not supported yet", "every layer must have experts");
    if (const auto plain = config_.field("mlp_only_layers"); plain && !json_is_off(*plain))
      refuse("mlp_only_layers is not supported yet", "every layer must have experts");
    const auto shared = config_.field("shared_expert_intermediate_size");
    if (shared && !json_is_off(*shared) && !spec.experts.shared_gate) refuse("shared experts are not supported yet");
  }

  void read_dtype(ModelSpec& spec) const {
    std::string name = config_.string("dtype", config_.string("torch_dtype", ""));
    if (name.empty() && inherited_ != nullptr) name = inherited_->string("dtype", inherited_->string("torch_dtype", ""));
    if (name.empty()) return;
    if (name.starts_with("torch.")) name.erase(0, 6);
    if (name == "float32") {
      spec.dtype = DType::f32;
    } else if (name == "float16") {
      spec.dtype = DType::f16;
    } else if (name != "bfloat16") {
      refuse(fmt::format("dtype '{}' is not supported", name), "supported: bfloat16, float16, float32");
    }
  }

  ConfigFields config_;
  const ConfigFields* inherited_;
};

// Models with a vision tower: the text model is an object inside, and theirs is the family.
ModelSpec read_with_tower(const ConfigFields& outer) {
  const std::string type = outer.string("model_type", "");
  for (const auto [name, value] : outer.object()) {
    const bool known =
        contains(kHarmless, name) || contains(kCommon, name) || contains(kTowers, name) || name.ends_with("_token_id");
    if (!known && !value.is_null() && !(contains(kMustBeOff, name) && json_is_off(value)))
      outer.refuse(fmt::format("field '{}' is not understood and could change the mathematics", name),
                   "remove it if it has no effect on this model");
  }
  const auto text = outer.field("text_config");
  if (!text) outer.refuse("text_config is missing", "a model with a vision tower has it");
  ModelSpec spec =
      ConfigReader({json_object("text_config", *text, outer.where()), outer.where(), "text_config."}, &outer).read();
  spec.family = type;
  spec.architecture = "Gemma3ForConditionalGeneration";
  if (type != "gemma3") spec.architecture = find_family(&Family::model_type, type)->architecture;
  read_tower(outer, spec);
  return spec;
}

std::string read_text(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::status_known(status))
    throw Error("the file cannot be examined: " + error.message(), path.string(), "check the disk and the permissions");
  if (!std::filesystem::exists(status)) throw Error("there is no such file", path.string());
  if (!std::filesystem::is_regular_file(status)) throw Error("this is not a file", path.string());
  std::ifstream stream(path, std::ios::binary);
  while (!stream && errno == EINTR) stream = std::ifstream(path, std::ios::binary);
  if (!stream) throw Error("the file cannot be opened", path.string(), "check its permissions");
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error)
    throw Error("the file cannot be examined: " + error.message(), path.string(), "check the disk and the permissions");
  if (bytes > kLargestConfigBytes) throw Error("the file is larger than 16 MiB", path.string());
  std::string text(static_cast<size_t>(bytes), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) throw Error("the file cannot be read", path.string(), "check the disk and the permissions");
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

// Of every family, also those with a reader of their own.
void check_heads(const ModelSpec& spec, const std::string& where) {
  const int64_t turned = spec.has_latent_attention() ? spec.rotary_size : spec.head_size;
  if (turned % 2 != 0)
    throw Error(fmt::format("head size {} is odd", turned), where, "rotary embeddings turn pairs of elements");
  if (spec.heads % spec.kv_heads != 0)
    throw Error(fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}", spec.heads, spec.kv_heads),
                where, "give as many key and value heads as divide the others");
}

}  // namespace

ModelSpec parse_config(std::string_view json, const std::string& where) {
  const JsonDocument document(json, where);
  ModelSpec spec;
  try {
    const ConfigFields config(document.root_object(), document.where());
    const std::string type = config.string("model_type", "");
    const bool of_qwen = type == "qwen2_vl" || type == "qwen2_5_vl" || type == "qwen3_vl" || type == "qwen3_vl_moe";
    const bool nested = type == "gemma3" || type == "mistral3" || (of_qwen && config.field("text_config"));
    spec = nested ? read_with_tower(config) : ConfigReader(config, nullptr).read();
    read_quantization(config, is_plan_only(spec), spec);
    check_heads(spec, where);
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(error.problem(), where, "the sizes in this config are not those of a model");  // from checked arithmetic
  }
  spec.name = where;
  return spec;
}

ModelSpec read_config(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool directory = fs::is_directory(path, error);
  const fs::path file = directory ? path / "config.json" : path;
  if (directory && !fs::exists(file, error) && !error) {
    throw Error("there is no config.json in this directory", path.string(), "give a Hugging Face checkpoint directory");
  }
  ModelSpec spec = parse_config(read_text(file), file.string());
  const fs::path parent = fs::absolute(file, error).lexically_normal().parent_path();
  spec.name = checkpoint_name(parent);
  return spec;
}

}  // namespace snug
