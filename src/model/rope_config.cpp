#include "model/rope_config.h"

#include <cmath>

namespace snug {

namespace {

constexpr double kGemma3LocalTheta = 10000.0;

RopeScaling scaling_of(const ConfigFields& fields, const std::string& type, std::string_view family) {
  if (type == "default" || type == "mrope") return RopeScaling::none;  // mrope: of images, text turns as ever
  if (type == "linear") return RopeScaling::linear;
  if (type == "llama3") return RopeScaling::llama3;
  // Phi-3's first files called LongRoPE "su", or "yarn"
  if (type == "longrope" || type == "su" || (type == "yarn" && family == "phi3")) return RopeScaling::longrope;
  if (type == "yarn") return RopeScaling::yarn;
  fields.refuse(fmt::format("rope type '{}' is not supported yet", type),
                "supported: default, linear, llama3, yarn, longrope");
}

std::string type_of(const ConfigFields& fields) {
  std::string type;
  for (const std::string_view name : {"rope_type", "type"}) {
    const std::string text = fields.string(name, "");
    if (text.empty()) continue;
    if (!type.empty() && type != text)
      fields.refuse(fmt::format("{} and {} differ", fields.label("rope_type"), fields.label("type")));
    type = text;
  }
  return type;
}

bool belongs_to(RopeScaling scaling, std::string_view name) {
  switch (scaling) {
    case RopeScaling::none: return name == "mrope_section";
    case RopeScaling::linear: return name == "factor";
    case RopeScaling::llama3:
      return name == "factor" || name == "low_freq_factor" || name == "high_freq_factor" ||
             name == "original_max_position_embeddings";
    case RopeScaling::yarn:
      return name == "factor" || name == "attention_factor" || name == "beta_fast" || name == "beta_slow" ||
             name == "mscale" || name == "mscale_all_dim" || name == "truncate" ||
             name == "original_max_position_embeddings";
    case RopeScaling::longrope:
      return name == "factor" || name == "attention_factor" || name == "short_factor" || name == "long_factor" ||
             name == "short_mscale" || name == "long_mscale" || name == "original_max_position_embeddings";
  }
  return false;
}

void require(const ConfigFields& fields, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (!fields.field(name)) fields.refuse(fmt::format("{} is missing", fields.label(name)));
}

void read_factor(const ConfigFields& fields, Rope& rope) {
  require(fields, {"factor"});
  rope.factor = fields.number("factor", 1.0);
  if (rope.factor < 1.0)
    fields.refuse(fmt::format("{} is {}", fields.label("factor"), rope.factor), "it must be at least 1");
}

void read_llama3(const ConfigFields& fields, Rope& rope) {
  require(fields, {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"});
  rope.low_freq_factor = fields.number("low_freq_factor", 1.0);
  rope.high_freq_factor = fields.number("high_freq_factor", 4.0);
  rope.original_max_position = fields.dimension("original_max_position_embeddings");
  if (rope.low_freq_factor <= 0.0 || rope.high_freq_factor <= rope.low_freq_factor)
    fields.refuse(fmt::format("{} must be positive and less than high_freq_factor", fields.label("low_freq_factor")));
}

// Peng et al., "YaRN", 2023, with the attention factor that transformers infers.
void read_yarn(const ConfigFields& fields, const ModelSpec& spec, Rope& rope) {
  const auto scale = [&](double weight) { return rope.factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(rope.factor) + 1.0; };
  rope.original_max_position = fields.dimension("original_max_position_embeddings", spec.max_position);
  rope.beta_fast = fields.positive("beta_fast", 32.0);
  rope.beta_slow = fields.positive("beta_slow", 1.0);
  rope.truncate = fields.boolean("truncate", true);
  const double mscale = fields.number("mscale", 0.0);
  const double all = fields.number("mscale_all_dim", 0.0);
  rope.attention_factor =
      fields.positive("attention_factor", mscale != 0 && all != 0 ? scale(mscale) / scale(all) : scale(1.0));
}

// Ding et al., "LongRoPE", 2024.
void read_longrope(const ConfigFields& outer, const ConfigFields& fields, const ModelSpec& spec, Rope& rope) {
  rope.original_max_position = fields.dimension("original_max_position_embeddings",
                                                outer.dimension("original_max_position_embeddings", spec.max_position));
  rope.short_factors = fields.numbers("short_factor");
  rope.long_factors = fields.numbers("long_factor");
  for (const auto* factors : {&rope.short_factors, &rope.long_factors}) {
    if (static_cast<int64_t>(factors->size()) != spec.rotated() / 2)
      fields.refuse(fmt::format("{} and {} must have {} numbers each", fields.label("short_factor"),
                                fields.label("long_factor"), spec.rotated() / 2));
    for (double factor : *factors)
      if (!(factor > 0.0))
        fields.refuse(fmt::format("{} holds {}", fields.label("short_factor"), factor), "give positive ones");
  }
  const double ratio = static_cast<double>(spec.max_position) / static_cast<double>(rope.original_max_position);
  const double factor = fields.number("factor", ratio);
  const double inferred =
      factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(static_cast<double>(rope.original_max_position)));
  rope.attention_factor = fields.positive("attention_factor", inferred);
}

// The scaling of one object; its theta replaces `rope.theta`.
void read_object(const ConfigFields& outer, const ConfigFields& fields, ModelSpec& spec, Rope& rope) {
  const std::string type = type_of(fields);
  if (type.empty()) fields.refuse(fmt::format("{} is missing", fields.label("rope_type")));
  rope.scaling = scaling_of(fields, type, spec.family);
  for (const auto [name, value] : fields.object()) {
    if (value.is_null() || name == "rope_type" || name == "type" || name == "rope_theta" || name == "partial_rotary_factor")
      continue;
    if (!belongs_to(rope.scaling, name))
      fields.refuse(fmt::format("{} is not understood with rope type '{}'", fields.label(name), type));
  }
  rope.theta = fields.number("rope_theta", rope.theta);
  switch (rope.scaling) {
    case RopeScaling::none: break;
    case RopeScaling::linear: read_factor(fields, rope); break;
    case RopeScaling::llama3: read_factor(fields, rope), read_llama3(fields, rope); break;
    case RopeScaling::yarn: read_factor(fields, rope), read_yarn(fields, spec, rope); break;
    case RopeScaling::longrope: read_longrope(outer, fields, spec, rope); break;
  }
}

void read_rotary_size(const ConfigFields& config, const std::optional<ConfigFields>& nested, double usual, ModelSpec& spec) {
  const double inner = nested ? nested->number("partial_rotary_factor", usual) : usual;
  const double share = config.number("partial_rotary_factor", inner);
  if (!(share > 0.0 && share <= 1.0)) config.refuse(fmt::format("partial_rotary_factor is {}", share), "it must be 0 to 1");
  if (share == 1.0) return;
  spec.rotary_size = static_cast<int64_t>(static_cast<double>(spec.head_size) * share);
  if (spec.rotary_size < 2 || spec.rotary_size % 2 != 0)
    config.refuse(fmt::format("partial_rotary_factor {} turns {} numbers of a head", share, spec.rotary_size),
                  "rotary embeddings turn pairs of elements");
}

// Gemma 3: an object for each kind of layer.
void read_by_layer(const ConfigFields& config, const ConfigFields& nested, ModelSpec& spec) {
  for (const auto [name, value] : nested.object())
    if (name != "full_attention" && name != "sliding_attention")
      nested.refuse(fmt::format("{} is not understood", nested.label(name)));
  if (const auto full = nested.field("full_attention")) {
    const std::string label = nested.label("full_attention");
    read_object(config, {json_object(label, *full, config.where()), config.where(), label + "."}, spec, spec.rope);
  }
  if (const auto sliding = nested.field("sliding_attention")) {
    const std::string label = nested.label("sliding_attention");
    Rope local{.theta = spec.local_rope_theta};
    const ConfigFields fields(json_object(label, *sliding, config.where()), config.where(), label + ".");
    read_object(config, fields, spec, local);
    if (local.scaling != RopeScaling::none) fields.refuse("scaled rotations of sliding attention are not supported yet");
    spec.local_rope_theta = local.theta;
  }
}

}  // namespace

void read_rope(const ConfigFields& config, double default_theta, double default_share, ModelSpec& spec) {
  const auto scaling = config.field("rope_scaling");
  const auto parameters = config.field("rope_parameters");
  if (scaling && parameters) config.refuse("rope_scaling and rope_parameters are both given", "keep one");
  const std::string_view name = scaling ? "rope_scaling" : "rope_parameters";
  std::optional<ConfigFields> nested;
  if (const auto value = scaling ? scaling : parameters)
    nested.emplace(json_object(config.label(name), *value, config.where()), config.where(), config.label(name) + ".");

  const bool two_tables = spec.query_key_norms && spec.norms_from_zero;  // Gemma 3
  if (two_tables) spec.local_rope_theta = config.number("rope_local_base_freq", kGemma3LocalTheta);
  spec.rope.theta = config.number("rope_theta", default_theta);
  const double outer_theta = spec.rope.theta;
  read_rotary_size(config, nested, default_share, spec);
  if (nested && two_tables && (nested->field("full_attention") || nested->field("sliding_attention"))) {
    read_by_layer(config, *nested, spec);
  } else if (nested && (nested->object().size() > 0 || scaling)) {
    read_object(config, *nested, spec, spec.rope);
    if (config.field("rope_theta") && spec.rope.theta != outer_theta)
      nested->refuse(fmt::format("rope_theta and {} differ", nested->label("rope_theta")));
  }
  for (double theta : {spec.rope.theta, two_tables ? spec.local_rope_theta : spec.rope.theta})
    if (!(theta >= 1.0)) config.refuse(fmt::format("rope_theta is {}", theta), "it must be at least 1");
  if (spec.local_layers.empty()) spec.local_rope_theta = 0.0;
}

}  // namespace snug
