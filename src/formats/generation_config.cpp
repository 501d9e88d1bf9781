#include "formats/generation_config.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "formats/file.h"
#include "model/json.h"

namespace snug {

namespace fs = std::filesystem;
namespace dom = simdjson::dom;

namespace {

constexpr int64_t kMostBytes = int64_t{16} << 20;

std::vector<int32_t> read_tokens(std::string_view name, dom::element value, const std::string& where) {
  const auto id = [&](dom::element one) {
    return static_cast<int32_t>(json_integer(name, one, 0, std::numeric_limits<int32_t>::max(), where));
  };
  std::vector<int32_t> tokens;
  if (value.is_null()) return tokens;
  if (!value.is_array()) return {id(value)};
  for (const dom::element one : json_array(name, value, where)) tokens.push_back(id(one));
  return tokens;
}

// Each changes what transformers would generate; the second value is the one that does not.
struct Unapplied {
  std::string_view name;
  double neutral;
};
constexpr auto kUnapplied = std::to_array<Unapplied>({{"repetition_penalty", 1.0},
                                                      {"encoder_repetition_penalty", 1.0},
                                                      {"no_repeat_ngram_size", 0.0},
                                                      {"min_p", 0.0},
                                                      {"typical_p", 1.0},
                                                      {"epsilon_cutoff", 0.0},
                                                      {"eta_cutoff", 0.0},
                                                      {"num_beams", 1.0},
                                                      {"penalty_alpha", 0.0},
                                                      {"min_new_tokens", 0.0},
                                                      {"min_length", 0.0},
                                                      {"guidance_scale", 1.0}});
constexpr auto kUnappliedLists =
    std::to_array<std::string_view>({"suppress_tokens", "begin_suppress_tokens", "bad_words_ids", "sequence_bias",
                                     "forced_bos_token_id", "forced_eos_token_id", "exponential_decay_length_penalty"});

void note_unapplied(GenerationDefaults& defaults, std::string_view name, dom::element value) {
  for (const Unapplied& known : kUnapplied) {
    double number = 0;
    if (name == known.name && value.get(number) == simdjson::SUCCESS && number != known.neutral)
      defaults.ignored.push_back(std::string(name) + " " + json_excerpt(value));
  }
  if (std::find(kUnappliedLists.begin(), kUnappliedLists.end(), name) != kUnappliedLists.end() && !json_is_off(value))
    defaults.ignored.emplace_back(name);
}

void read_settings(GenerationDefaults& defaults, const std::string& text, const std::string& where) {
  const JsonDocument document(text, where);
  for (const auto [name, value] : document.root_object()) {
    if (value.is_null()) continue;
    if (name == "do_sample") defaults.do_sample = json_boolean(name, value, where);
    if (name == "temperature") defaults.temperature = json_number(name, value, where);
    if (name == "top_p") defaults.top_p = json_number(name, value, where);
    if (name == "top_k") defaults.top_k = json_integer(name, value, 0, int64_t{1} << 31, where);
    if (name == "eos_token_id") defaults.stop_tokens = read_tokens(name, value, where);
    note_unapplied(defaults, name, value);
  }
  if (defaults.temperature < 0) throw Error("temperature is below 0", where);
  if (defaults.top_p <= 0 || defaults.top_p > 1) throw Error("top_p is not between 0 and 1", where);
}

void read_stop_tokens(GenerationDefaults& defaults, const std::string& text, const std::string& where) {
  const JsonDocument document(text, where);
  const dom::object root = document.root_object();
  dom::element found;
  if (root["eos_token_id"].get(found) == simdjson::SUCCESS) defaults.stop_tokens = read_tokens("eos_token_id", found, where);
  dom::object nested;
  if (defaults.stop_tokens.empty() && root["text_config"].get(nested) == simdjson::SUCCESS &&
      nested["eos_token_id"].get(found) == simdjson::SUCCESS)
    defaults.stop_tokens = read_tokens("eos_token_id", found, where);
}

}  // namespace

GenerationDefaults parse_generation_defaults(const std::string& generation_config, const std::string& config,
                                             const std::string& where) {
  GenerationDefaults defaults;
  if (!generation_config.empty()) read_settings(defaults, generation_config, where + "/generation_config.json");
  if (defaults.stop_tokens.empty() && !config.empty()) read_stop_tokens(defaults, config, where + "/config.json");
  return defaults;
}

GenerationDefaults read_generation_defaults(const fs::path& model) {
  const auto text = [&](const char* name) {
    return is_there(model / name) ? read_text_file(model / name, kMostBytes) : std::string();
  };
  return parse_generation_defaults(text("generation_config.json"), text("config.json"), model.string());
}

}  // namespace snug
