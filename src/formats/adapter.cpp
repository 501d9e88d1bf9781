#include "formats/adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/file.h"
#include "model/json.h"

namespace snug {

namespace dom = simdjson::dom;

namespace {

constexpr std::string_view kPrefix = "base_model.model.";
constexpr int64_t kLargestRank = 1 << 20;

// Whatever they hold, applying the adapter computes the same.
constexpr auto kHarmless = std::to_array<std::string_view>({
    "auto_mapping",
    "base_model_name_or_path",
    "inference_mode",
    "megatron_core",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
    "lora_ga_config",
    "ensure_weight_tying",
    "merge_weights",
});

std::vector<std::string> string_list(std::string_view name, dom::element value, const std::string& where) {
  std::vector<std::string> items;
  if (value.is_null()) return items;
  for (const dom::element item : json_array(name, value, where)) items.push_back(json_string(name, item, where));
  return items;
}

// Which modules were adapted is seen from the tensors; merging need not know how they were chosen.
constexpr auto kHarmlessToMerge = std::to_array<std::string_view>({
    "target_modules",
    "exclude_modules",
    "layers_to_transform",
    "layers_pattern",
    "megatron_config",
    "loftq_config",
    "eva_config",
    "corda_config",
});

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool path_ends_with(std::string_view path, std::string_view end) {
  return path == end || (path.size() > end.size() && path.ends_with(end) && path[path.size() - end.size() - 1] == '.');
}

// What changes how the product of A and B is applied; false if it is something else.
bool read_variant(AdapterConfig& config, std::string_view name, dom::element value, const std::string& where) {
  if (name == "use_rslora") {
    config.use_rslora = !value.is_null() && json_boolean(name, value, where);
  } else if (name == "use_dora") {
    config.use_dora = !value.is_null() && json_boolean(name, value, where);
  } else if (name == "rank_pattern" || name == "alpha_pattern") {
    if (value.is_null()) return true;
    for (const auto [key, number] : json_object(name, value, where)) {
      check_path_pattern(name, key, where);
      if (name == "rank_pattern") {
        config.rank_pattern.emplace_back(key, json_integer(name, number, 1, kLargestRank, where));
      } else {
        config.alpha_pattern.emplace_back(key, json_number(name, number, where));
      }
    }
  } else {
    return false;
  }
  return true;
}

void read_target_modules(AdapterConfig& config, dom::element value, const std::string& where) {
  if (value.is_string()) {
    throw Error("target_modules is a regular expression, which is not supported", where,
                R"(list the modules: ["q_proj", "v_proj"])");
  }
  config.target_modules = string_list("target_modules", value, where);
}

// 16 rather than 16.0.
nlohmann::ordered_json number_json(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return whole ? nlohmann::ordered_json(static_cast<int64_t>(value)) : nlohmann::ordered_json(value);
}

// In the order of their keys, as PEFT writes them.
template <class Value>
nlohmann::json pattern_json(const PathPatterns<Value>& patterns) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [key, value] : patterns) json[key] = number_json(static_cast<double>(value));
  return json;
}

void read_init(dom::element value, const std::string& where) {
  // Some initializations (pissa, olora, corda, eva, loftq) change the base weights, which the adapter then relies on.
  const bool plain = value.is_bool() || value.is_null() || (value.is_string() && std::string_view(value) == "gaussian");
  if (!plain) throw Error(fmt::format("init_lora_weights {} is not supported", json_excerpt(value)), where);
}

}  // namespace

bool AdapterConfig::targets(std::string_view module_path) const {
  return std::any_of(target_modules.begin(), target_modules.end(),
                     [&](const std::string& target) { return path_ends_with(module_path, target); });
}

double AdapterConfig::scale_of(std::string_view module_path, int64_t rank) const {
  const double alpha = pattern_value(alpha_pattern, module_path, lora_alpha);
  const auto by = static_cast<double>(rank);
  return alpha / (use_rslora ? std::sqrt(by) : by);
}

std::string format_adapter_config(const AdapterConfig& config) {
  const auto null_if_empty = [](const auto& value) {
    return value.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value);
  };
  nlohmann::ordered_json json;
  json["alpha_pattern"] = pattern_json(config.alpha_pattern);
  json["auto_mapping"] = nullptr;
  json["base_model_name_or_path"] = null_if_empty(config.base_model);
  json["bias"] = "none";
  json["fan_in_fan_out"] = config.fan_in_fan_out;
  json["inference_mode"] = true;
  json["init_lora_weights"] = true;
  json["layers_pattern"] = nullptr;
  json["layers_to_transform"] = nullptr;
  json["lora_alpha"] = number_json(config.lora_alpha);
  json["lora_dropout"] = config.lora_dropout;
  json["modules_to_save"] = null_if_empty(config.modules_to_save);
  json["peft_type"] = "LORA";
  json["r"] = config.r;
  json["rank_pattern"] = pattern_json(config.rank_pattern);
  json["revision"] = nullptr;
  json["target_modules"] = config.target_modules;
  json["task_type"] = "CAUSAL_LM";
  json["use_dora"] = config.use_dora;
  json["use_rslora"] = config.use_rslora;
  return json.dump(2) + "\n";
}

AdapterConfig parse_adapter_config(std::string_view text, const std::string& where, AdapterUse use) {
  const JsonDocument document(text, where);
  const dom::object root = document.root_object();
  const auto has = [&](std::string_view name) { return root.at_key(name).error() == simdjson::SUCCESS; };
  if (has("fine_tune_type") && has("lora_parameters")) {
    throw Error("this is an adapter of mlx-lm, whose layout differs from PEFT's", where, "convert it to PEFT's format");
  }
  for (const std::string_view name : {"peft_type", "r", "lora_alpha", "target_modules"}) {
    if (!has(name)) throw Error(fmt::format("'{}' is missing", name), where, "this is not a LoRA adapter of PEFT");
  }
  AdapterConfig config;
  for (const auto [name, value] : root) {
    if (use == AdapterUse::merge && is_one_of(kHarmlessToMerge, name)) continue;
    if (read_variant(config, name, value, where)) continue;
    if (name == "peft_type") {
      if (const std::string type = json_string(name, value, where); type != "LORA")
        throw Error(fmt::format("peft_type '{}' is not supported", type), where, "supported: LORA");
    } else if (name == "r") {
      config.r = json_integer(name, value, 1, kLargestRank, where);
    } else if (name == "lora_alpha") {
      config.lora_alpha = json_number(name, value, where);
    } else if (name == "lora_dropout") {
      config.lora_dropout = value.is_null() ? 0.0 : json_number(name, value, where);
    } else if (name == "target_modules") {
      read_target_modules(config, value, where);
    } else if (name == "modules_to_save") {
      config.modules_to_save = string_list(name, value, where);
    } else if (name == "task_type") {
      if (!value.is_null() && json_string(name, value, where) != "CAUSAL_LM")
        throw Error(fmt::format("task_type {} is not supported", json_excerpt(value)), where, "supported: CAUSAL_LM");
    } else if (name == "bias") {
      if (!value.is_null() && json_string(name, value, where) != "none")
        throw Error(fmt::format("bias {} is not supported", json_excerpt(value)), where, "supported: none");
    } else if (name == "fan_in_fan_out") {
      config.fan_in_fan_out = !value.is_null() && json_boolean(name, value, where);
    } else if (name == "init_lora_weights") {
      read_init(value, where);
    } else if (name == "base_model_name_or_path") {
      if (!value.is_null()) config.base_model = json_string(name, value, where);
    } else if (!is_one_of(kHarmless, name) && !json_is_off(value)) {
      throw Error(fmt::format("{} is not supported by this program", name), where,
                  "the adapter would not compute what it was trained for");
    }
  }
  if (use == AdapterUse::train && config.target_modules.empty() && config.modules_to_save.empty())
    throw Error("target_modules is empty", where);
  return config;
}

AdapterConfig read_adapter_config(const std::filesystem::path& directory, AdapterUse use) {
  const std::filesystem::path path = directory / "adapter_config.json";
  if (!is_there(path))
    throw Error("there is no adapter_config.json here", directory.string(), "give a directory that PEFT or snug saved");
  return parse_adapter_config(read_text_file(path, int64_t{16} << 20), path.string(), use);
}

std::string lora_a_name(std::string_view module_path) { return fmt::format("{}{}.lora_A.weight", kPrefix, module_path); }
std::string lora_b_name(std::string_view module_path) { return fmt::format("{}{}.lora_B.weight", kPrefix, module_path); }
std::string lora_magnitude_name(std::string_view module_path) {
  return fmt::format("{}{}.lora_magnitude_vector", kPrefix, module_path);
}
std::string lora_embedding_a_name(std::string_view module_path) {
  return fmt::format("{}{}.lora_embedding_A", kPrefix, module_path);
}
std::string lora_embedding_b_name(std::string_view module_path) {
  return fmt::format("{}{}.lora_embedding_B", kPrefix, module_path);
}
std::string saved_module_name(std::string_view module_path) { return fmt::format("{}{}.weight", kPrefix, module_path); }

std::optional<AdapterTensor> parse_adapter_tensor_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  struct Ending {
    std::string_view text;
    AdapterPart part;
  };
  constexpr auto kEndings = std::to_array<Ending>({
      {".lora_A.weight", AdapterPart::lora_a},
      {".lora_B.weight", AdapterPart::lora_b},
      {".lora_magnitude_vector", AdapterPart::magnitude},
      {".lora_embedding_A", AdapterPart::embedding_a},
      {".lora_embedding_B", AdapterPart::embedding_b},
      {".weight", AdapterPart::saved_module},  // last: the others end in it too
  });
  for (const Ending& ending : kEndings) {
    if (!name.ends_with(ending.text) || name.size() == ending.text.size()) continue;
    return AdapterTensor{std::string(name.substr(0, name.size() - ending.text.size())), ending.part};
  }
  return std::nullopt;
}

}  // namespace snug
