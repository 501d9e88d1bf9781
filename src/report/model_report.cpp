#include "report/model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/catalogue.h"
#include "model/families.h"
#include "model/parameters.h"
#include "report/list_text.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

std::string parameters_text(int64_t count) {
  const auto number = static_cast<double>(count);
  if (number >= 1e11) return fmt::format("{:.1f} B", number / 1e9);
  if (number >= 1e9) return fmt::format("{:.2f} B", number / 1e9);
  return number >= 1e5 ? fmt::format("{:.1f} M", number / 1e6) : fmt::format("{}", count);
}

std::vector<ModelSpec> all_models() {
  std::vector<ModelSpec> models;
  for (const std::string& name : model_names()) models.push_back(*find_model(name));
  return models;
}

std::string features(const ModelSpec& spec) {
  std::vector<std::string> list;
  const auto add = [&list](bool holds, const std::string& feature) {
    if (holds) list.push_back(feature);
  };
  add(spec.tied_embeddings, "tied embeddings");
  add(spec.query_key_value_bias, "biases");
  add(spec.query_key_norms, "query and key norms");
  add(spec.post_norms, "norms after blocks");
  add(spec.learned_positions, "learned positions");
  add(spec.alibi, "ALiBi");
  const auto local = std::count(spec.local_layers.begin(), spec.local_layers.end(), true);
  add(local > 0, fmt::format("window of {} in {} layers", spec.sliding_window, local));
  add(spec.attention_softcap > 0, "soft caps");
  add(spec.attention_sinks, "attention sinks");
  add(spec.parallel != ParallelBlock::none, "attention and MLP side by side");
  add(spec.vision_parameters > 0, "vision tower");
  return list.empty() ? "none" : list_text(list, 25);
}

std::string experts_text(const ModelSpec& spec) {
  const Experts& experts = spec.experts;
  std::string text =
      fmt::format("{}, {} for each token, of width {}", experts.count, experts.per_token, experts.intermediate_size);
  if (experts.shared > 0) text += fmt::format("; {} shared by all", experts.shared);
  if (experts.dense_layers > 0)
    text += fmt::format("; in the first {} an MLP of width {} instead",
                        experts.dense_layers == 1 ? "layer" : fmt::format("{} layers", experts.dense_layers),
                        spec.intermediate_size);
  return text;
}

std::string heads_text(const ModelSpec& spec) {
  if (!spec.has_latent_attention())
    return fmt::format("{} of {}, {} for keys and values", spec.heads, spec.head_size, spec.kv_heads);
  std::string text = fmt::format("{} of {}, {} for values; keys and values of rank {}", spec.heads, spec.head_size,
                                 spec.latent.value_size, spec.latent.rank);
  if (spec.latent.query_rank > 0) text += fmt::format(", queries of rank {}", spec.latent.query_rank);
  return text;
}

Json summary_json(const ModelSpec& spec) {
  return {{"name", spec.name},
          {"family", spec.family},
          {"architecture", spec.architecture},
          {"trainable", !is_plan_only(spec)},
          {"total_parameters", total_parameters(spec)},
          {"layers", spec.layers},
          {"hidden_size", spec.hidden_size},
          {"intermediate_size", spec.intermediate_size},
          {"heads", spec.heads},
          {"kv_heads", spec.kv_heads},
          {"head_size", spec.head_size},
          {"experts", spec.experts.count},
          {"experts_per_token", spec.experts.per_token},
          {"vocab_size", spec.vocab_size},
          {"max_position", spec.max_position},
          {"sliding_window", spec.sliding_window},
          {"tied_embeddings", spec.tied_embeddings},
          {"dtype", name_of(spec.dtype)}};
}

}  // namespace

std::string models_text() {
  std::string text;
  const std::vector<ModelSpec> models = all_models();
  for (const Family& family : families()) {
    std::vector<const ModelSpec*> members;
    for (const ModelSpec& spec : models)  // gemma3 wraps gemma3_text: one heading
      if (spec.family == family.model_type || (spec.family == "gemma3" && family.model_type == "gemma3_text"))
        members.push_back(&spec);
    if (members.empty()) continue;
    const std::string heading = std::string(family.model_type) + (family.plan_only ? " (plan only)" : "");
    text += fmt::format("{}{:<42} {:>10} {:>14} {:>9}\n", text.empty() ? "" : "\n", heading, "parameters", "layers x width",
                        "positions");
    for (const ModelSpec* spec : members)
      text += fmt::format("{:<42} {:>10} {:>14} {:>9}\n", spec->name, parameters_text(total_parameters(*spec)),
                          fmt::format("{} x {}", spec->layers, spec->hidden_size), spec->max_position);
  }
  text += fmt::format("\n{} models. `snug models NAME` shows one, `snug plan NAME` its memory.\n", models.size());
  return text;
}

std::string model_text(const ModelSpec& spec) {
  std::string text;
  text +=
      fmt::format("{}: {} parameters ({})\n", spec.name, parameters_text(total_parameters(spec)), total_parameters(spec));
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<22} {}\n", label, value);
  };
  const auto number = [&](std::string_view label, int64_t value) { line(label, std::to_string(value)); };
  line("family", fmt::format("{} ({})", spec.family, spec.architecture));
  line("can be", is_plan_only(spec) ? "planned; not trained yet" : "planned and trained");
  number("layers", spec.layers);
  number("hidden size", spec.hidden_size);
  if (spec.experts.count > 0) {
    line("experts", experts_text(spec));
  } else {
    number("MLP width", spec.intermediate_size);
  }
  line("heads", heads_text(spec));
  number("vocabulary", spec.vocab_size);
  number("positions", spec.max_position);
  line("stored as", std::string(name_of(spec.dtype)));
  line("besides", features(spec));
  text += fmt::format("  {:<22} {:>10}  {}\n", "part", "parameters", "each");
  for (const Parameter& parameter : parameters_of(spec)) {
    const int64_t times = parameter.instances(spec.layers);
    text += fmt::format("  {:<22} {:>10}  [{}]{}\n", parameter.part, parameters_text(parameter.elements() * times),
                        fmt::join(parameter.shape, ", "), times > 1 ? fmt::format(" x {}", times) : "");
  }
  if (spec.vision_parameters > 0)
    text += fmt::format("  {:<22} {:>10}\n", "vision tower", parameters_text(spec.vision_parameters));
  return text;
}

std::string models_json() {
  Json all = Json::array();
  for (const ModelSpec& spec : all_models()) all.push_back(summary_json(spec));
  return Json{{"schema", 1}, {"models", all}}.dump(2) + "\n";
}

std::string model_json(const ModelSpec& spec) {
  Json json = summary_json(spec);
  Json table = Json::array();
  for (const Parameter& parameter : parameters_of(spec))
    table.push_back({{"name", parameter.name},
                     {"part", parameter.part},
                     {"shape", parameter.shape},
                     {"instances", parameter.instances(spec.layers)},
                     {"elements", parameter.elements() * parameter.instances(spec.layers)}});
  json["vision_parameters"] = spec.vision_parameters;
  json["parameters"] = table;
  return json.dump(2) + "\n";
}

}  // namespace snug
