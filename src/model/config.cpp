#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <limits>
#include <optional>
#include <system_error>

#include "base/checked.h"
#include "base/error.h"
#include "model/json.h"
#include "model/parameters.h"

namespace snug {

namespace dom = simdjson::dom;

namespace {

constexpr int64_t kLargestDimension = std::numeric_limits<int32_t>::max();  // token ids and row indices are 32 bits
constexpr int64_t kMostLayers = 100'000;
constexpr int64_t kLargestConfigBytes = int64_t{16} << 20;

// A family differs from Llama in its names and in what transformers assumes where a field is absent.
struct Family {
  std::string_view model_type, architecture;
  int64_t max_position;
  int64_t kv_heads;        // 0: as many as query heads
  int64_t sliding_window;  // 0: the family has no such field
};
constexpr auto kFamilies = std::to_array<Family>({
    {"llama", "LlamaForCausalLM", 2048, 0, 0},
    {"mistral", "MistralForCausalLM", 131072, 8, 4096},
});

const Family* find_family(std::string_view Family::*name, std::string_view value) {
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family& f) { return f.*name == value; });
  return found == kFamilies.end() ? nullptr : &*found;
}

std::string supported(std::string_view Family::*name) {
  std::string list;
  for (const Family& family : kFamilies) list += (list.empty() ? "supported: " : ", ") + std::string(family.*name);
  return list;
}

// Fields that never change the arithmetic of a forward or backward pass.
constexpr auto kHarmless = std::to_array<std::string_view>({
    "_name_or_path",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_flash_attn_2_enabled",
    "attn_implementation",
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

// Features that Llama checkpoints switch off explicitly. Any other value would change the mathematics.
constexpr auto kMustBeOff = std::to_array<std::string_view>({
    "add_cross_attention",
    "attention_bias",
    "attention_dropout",
    "cross_attention_hidden_size",
    "is_decoder",
    "is_encoder_decoder",
    "mlp_bias",
    "pruned_heads",
    "rope_interleaved",
});

template <size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class ConfigReader {
 public:
  explicit ConfigReader(const JsonDocument& document) : where_(document.where()), root_(document.root_object()) {}

  ModelSpec read() {
    ModelSpec spec;
    const Family& family = read_family();
    spec.family = family.model_type;
    spec.architecture = family.architecture;
    refuse_unknown_fields(family);
    spec.hidden_size = dimension("hidden_size");
    spec.intermediate_size = dimension("intermediate_size");
    spec.vocab_size = dimension("vocab_size");
    spec.layers = integer("num_hidden_layers", std::nullopt, 1, kMostLayers);
    spec.heads = dimension("num_attention_heads");
    const bool few_kv_heads = family.kv_heads > 0 && !given("num_key_value_heads");
    spec.kv_heads = dimension("num_key_value_heads", few_kv_heads ? family.kv_heads : spec.heads);
    spec.max_position = dimension("max_position_embeddings", family.max_position);
    spec.sliding_window = dimension("sliding_window", given("sliding_window") ? 0 : family.sliding_window);
    read_head_size(spec);
    spec.norm_eps = number("rms_norm_eps", 1e-6);
    if (spec.norm_eps <= 0.0 || spec.norm_eps >= 1.0) refuse("rms_norm_eps must lie between 0 and 1");
    spec.initializer_range = number("initializer_range", 0.02);
    if (spec.initializer_range < 0.0) refuse("initializer_range must not be negative");
    if (const auto value = field("tie_word_embeddings")) {
      spec.tied_embeddings = json_boolean("tie_word_embeddings", *value, where_);
    }
    read_rope(spec);
    read_dtype(spec);
    spec.bos_token_id = token("bos_token_id", spec.vocab_size);
    spec.eos_token_id = token("eos_token_id", spec.vocab_size);
    spec.pad_token_id = token("pad_token_id", spec.vocab_size);
    checked_mul(total_parameters(spec), 64);  // every sum of bytes that follows stays within 63 bits
    return spec;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& mend = {}) const { throw Error(what, where_, mend); }

  // The field's value; none where it is absent or null.
  std::optional<dom::element> field(std::string_view name) const { return field(root_, name); }
  static std::optional<dom::element> field(const dom::object& object, std::string_view name) {
    dom::element value;
    if (object.at_key(name).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    return value;
  }

  // True if the field is there, be it null: only then do transformers' defaults not apply.
  bool given(std::string_view name) const { return root_.at_key(name).error() == simdjson::SUCCESS; }

  int64_t integer(std::string_view name, std::optional<int64_t> fallback, int64_t low, int64_t high) const {
    if (const auto value = field(name)) return json_integer(name, *value, low, high, where_);
    if (!fallback) refuse(fmt::format("{} is missing", name), "every config.json has it");
    return *fallback;
  }
  int64_t dimension(std::string_view name, std::optional<int64_t> fallback = std::nullopt) const {
    return integer(name, fallback, 1, kLargestDimension);
  }
  double number(std::string_view name, double fallback) const {
    const auto value = field(name);
    return value ? json_number(name, *value, where_) : fallback;
  }

  // A token id or a list of them, of which the first counts; -1 where absent.
  int64_t token(std::string_view name, int64_t vocab_size) const {
    auto value = field(name);
    if (!value) return -1;
    if (value->is_array()) {
      const dom::array ids = json_array(name, *value, where_);
      if (ids.begin() == ids.end()) return -1;
      value = *ids.begin();
    }
    return json_integer(name, *value, -1, vocab_size - 1, where_);
  }

  // By model_type, or by architectures where that is all there is.
  const Family& read_family() const {
    const Family* family = nullptr;
    if (const auto type = field("model_type")) {
      const std::string name = json_string("model_type", *type, where_);
      family = find_family(&Family::model_type, name);
      if (family == nullptr)
        refuse(fmt::format("model_type '{}' is not supported yet", name), supported(&Family::model_type));
    }
    if (const auto architectures = field("architectures")) {
      for (const dom::element entry : json_array("architectures", *architectures, where_)) {
        const std::string name = json_string("architectures", entry, where_);
        const Family* named = find_family(&Family::architecture, name);
        if (named == nullptr || (family != nullptr && named != family)) {
          refuse(fmt::format("architecture '{}' is not supported yet", name),
                 family ? fmt::format("supported with model_type {}: {}", family->model_type, family->architecture)
                        : supported(&Family::architecture));
        }
        family = named;
      }
    }
    if (family == nullptr) refuse("neither model_type nor architectures is given", "is this a Hugging Face config.json?");
    return *family;
  }

  void refuse_unknown_fields(const Family& family) const {
    constexpr auto kRead = std::to_array<std::string_view>({
        "architectures",
        "bos_token_id",
        "dtype",
        "eos_token_id",
        "head_dim",
        "hidden_act",
        "hidden_size",
        "initializer_range",
        "intermediate_size",
        "max_position_embeddings",
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
    for (const auto [name, value] : root_) {
      if (value.is_null() || contains(kRead, name) || contains(kHarmless, name)) continue;
      if (name == "sliding_window" && family.sliding_window > 0) continue;
      if (name == "quantization_config") {
        refuse("quantization_config: quantized weights are not supported yet", "use the unquantized checkpoint");
      }
      if (!contains(kMustBeOff, name)) {
        refuse(fmt::format("field '{}' is not understood and could change the mathematics", name),
               "remove it if it has no effect on this model");
      }
      if (!json_is_off(value)) refuse(fmt::format("{} = {} is not supported yet", name, json_excerpt(value)));
    }
    if (const auto act = field("hidden_act"); act && json_string("hidden_act", *act, where_) != "silu") {
      refuse(fmt::format("hidden_act {} is not supported yet", json_excerpt(*act)), "supported: silu");
    }
    if (const auto tp = field("pretraining_tp"); tp && json_number("pretraining_tp", *tp, where_) != 1.0) {
      refuse("pretraining_tp other than 1 is not supported", "set it to 1: the weights are the same");
    }
    if (number("partial_rotary_factor", 1.0) != 1.0) refuse("partial_rotary_factor other than 1 is not supported yet");
  }

  void read_head_size(ModelSpec& spec) const {
    if (!field("head_dim") && spec.hidden_size % spec.heads != 0) {
      refuse(fmt::format("hidden_size {} is not a multiple of num_attention_heads {}", spec.hidden_size, spec.heads));
    }
    spec.head_size = dimension("head_dim", std::max<int64_t>(spec.hidden_size / spec.heads, 1));
    if (spec.head_size % 2 != 0) {
      refuse(fmt::format("head size {} is odd", spec.head_size), "rotary embeddings turn pairs of elements");
    }
    if (spec.heads % spec.kv_heads != 0) {
      refuse(fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}", spec.heads, spec.kv_heads));
    }
  }

  // `rope_theta` and `rope_scaling` (transformers 4) or `rope_parameters` (transformers 5).
  void read_rope(ModelSpec& spec) const {
    const auto scaling = field("rope_scaling");
    const auto parameters = field("rope_parameters");
    if (scaling && parameters) refuse("rope_scaling and rope_parameters are both given", "keep one");
    const auto theta = field("rope_theta");
    if (theta) spec.rope.theta = json_number("rope_theta", *theta, where_);
    const auto nested = scaling ? scaling : parameters;
    if (nested) {
      const std::string_view name = scaling ? "rope_scaling" : "rope_parameters";
      read_rope_object(spec, json_object(name, *nested, where_), name, theta.has_value());
    }
    if (spec.rope.theta < 1.0) refuse(fmt::format("rope_theta is {}", spec.rope.theta), "it must be at least 1");
  }

  void read_rope_object(ModelSpec& spec, const dom::object& object, std::string_view outer, bool has_theta) const {
    Rope& rope = spec.rope;
    const auto label = [&](std::string_view name) { return fmt::format("{}.{}", outer, name); };
    std::string type;
    for (const std::string_view name : {"rope_type", "type"}) {
      const auto value = field(object, name);
      if (!value) continue;
      const std::string text = json_string(label(name), *value, where_);
      if (!type.empty() && type != text) refuse(fmt::format("{} and {} differ", label("rope_type"), label("type")));
      type = text;
    }
    if (type.empty()) refuse(fmt::format("{} is missing", label("rope_type")));
    if (type == "linear") {
      rope.scaling = RopeScaling::linear;
    } else if (type == "llama3") {
      rope.scaling = RopeScaling::llama3;
    } else if (type != "default") {
      refuse(fmt::format("rope type '{}' is not supported yet", type), "supported: default, linear, llama3");
    }
    const bool llama3 = rope.scaling == RopeScaling::llama3;
    for (const auto [name, value] : object) {
      if (value.is_null() || name == "rope_type" || name == "type") continue;
      const double given = json_number(label(name), value, where_);
      if (name == "rope_theta") {
        if (has_theta && given != rope.theta) refuse(fmt::format("rope_theta and {} differ", label(name)));
        rope.theta = given;
      } else if (name == "partial_rotary_factor") {
        if (given != 1.0) refuse(fmt::format("{} other than 1 is not supported yet", label(name)));
      } else if (name == "factor" && rope.scaling != RopeScaling::none) {
        rope.factor = given;
      } else if (name == "low_freq_factor" && llama3) {
        rope.low_freq_factor = given;
      } else if (name == "high_freq_factor" && llama3) {
        rope.high_freq_factor = given;
      } else if (name == "original_max_position_embeddings" && llama3) {
        rope.original_max_position = json_integer(label(name), value, 1, kLargestDimension, where_);
      } else {
        refuse(fmt::format("{} is not understood with rope type '{}'", label(name), type));
      }
    }
    const auto require = [&](std::string_view name) {
      if (!field(object, name)) refuse(fmt::format("{} is missing", label(name)));
    };
    if (rope.scaling != RopeScaling::none) {
      require("factor");
      if (rope.factor < 1.0) refuse(fmt::format("{} is {}", label("factor"), rope.factor), "it must be at least 1");
    }
    if (!llama3) return;
    for (const std::string_view name : {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"})
      require(name);
    if (rope.low_freq_factor <= 0.0 || rope.high_freq_factor <= rope.low_freq_factor) {
      refuse(fmt::format("{} must be positive and less than high_freq_factor", label("low_freq_factor")));
    }
  }

  void read_dtype(ModelSpec& spec) const {
    const auto newer = field("dtype");
    const auto older = field("torch_dtype");
    if (!newer && !older) return;
    std::string name = json_string("dtype", newer ? *newer : *older, where_);
    if (name.starts_with("torch.")) name.erase(0, 6);
    if (name == "float32") {
      spec.dtype = DType::f32;
    } else if (name == "float16") {
      spec.dtype = DType::f16;
    } else if (name != "bfloat16") {
      refuse(fmt::format("dtype '{}' is not supported", name), "supported: bfloat16, float16, float32");
    }
  }

  const std::string& where_;
  dom::object root_;
};

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

}  // namespace

ModelSpec parse_config(std::string_view json, const std::string& where) {
  const JsonDocument document(json, where);
  ModelSpec spec;
  try {
    spec = ConfigReader(document).read();
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
  spec.name = parent.filename().string();
  return spec;
}

}  // namespace snug
