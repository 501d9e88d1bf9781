// Values that several dialects write alike.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "recipe/dialects/reading.h"
#include "recipe/foreign_keys.h"

namespace snug::dialects {

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return made;
}

int64_t count_of(std::string_view text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() ? count : -1;
}

int64_t joint_length(std::string_view asked, std::string_view answered) {
  constexpr int64_t kLongest = int64_t{1} << 40;
  const int64_t before = count_of(asked), behind = count_of(answered);
  return before > 0 && behind > 0 && before < kLongest && behind < kLongest ? before + behind : 0;
}

std::string_view ours_of(std::span<const Saying> words, std::string_view theirs) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const Saying& word) { return word.theirs == theirs; });
  return found == words.end() ? std::string_view() : found->ours;
}

std::string_view theirs_of(std::span<const Saying> words, std::string_view ours) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const Saying& word) { return word.ours == ours; });
  return found == words.end() ? std::string_view() : found->theirs;
}

void take_model(Reading& reading, const Entry& entry) {
  reading.set(entry, "model", entry.text());
  std::string name = entry.text();
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  reading.model(name);
  const size_t slash = name.rfind('/');
  if (slash != std::string::npos) reading.model(name.substr(slash + 1));
}

void take_data(Reading& reading, const Entry& entry) {
  std::string stranger;
  for (const std::string& value : entry.values)
    for (size_t at = 0; at <= value.size();) {
      const size_t comma = std::min(value.find(',', at), value.size());
      std::string name = value.substr(at, comma - at);
      name.erase(0, name.find_first_not_of(' '));
      if (!is_file(name)) stranger = name;
      reading.data(name);
      at = comma + 1;
    }
  reading.ignore(
      entry, stranger.empty() ? "" : fmt::format("the data set '{}' is no file: give --data FILE", stranger.substr(0, 80)));
}

// A text "eps=1e-8", or in YAML a mapping.
void take_optimizer_arguments(Reading& reading, const Entry& entry) {
  if (entry.kind == EntryKind::map) return reading.ignore(entry, "optim_args as a mapping is not supported");
  reading.set_list(entry, "optim_args", entry.values);
}

// A mapping, or transformers' JSON in one text.
void take_schedule_arguments(Reading& reading, const Entry& entry) {
  if (entry.kind != EntryKind::map) return reading.set_list(entry, "lr_scheduler_kwargs", entry.values);
  std::vector<std::string> pairs;
  for (const Entry& inner : reading.document().entries)
    if (inner.parent() == entry.path) pairs.push_back(fmt::format("{}={}", inner.leaf(), inner.text()));
  if (pairs.empty()) return reading.understood(entry);
  reading.set_list(entry, "lr_scheduler_kwargs", pairs);
}

void take_dtype(Reading& reading, const Entry& entry) {
  std::string word = entry.text();
  if (word.starts_with("torch.")) word = word.substr(6);
  if (word == "bfloat16" || word == "bf16") {
    reading.set(entry, "bf16", "true");
  } else if (word == "float16" || word == "fp16" || word == "half") {
    if (reading.is_on("bf16")) return reading.understood(entry, "bf16 decides");
    reading.set(entry, "fp16", "true");
  } else if (word == "auto") {
    reading.understood(entry, "the checkpoint's own dtype, taken to be bf16");
    if (!reading.has("fp16")) reading.decide("bf16", "true");
  } else if (word == "float32" || word == "fp32" || word == "float") {
    reading.understood(entry);
  } else {
    reading.touches(entry, fmt::format("weights in '{}' are not planned", word.substr(0, 40)));
  }
}

void take_template(Reading& reading, const Entry& entry) {
  reading.ignore(entry);
  if (means_off(entry.text())) return;
  reading.result().run_notes.push_back(fmt::format(
      "{} {} is not followed: conversations are rendered with the model's chat template, instructions with Alpaca's "
      "prompt; --chat-template names another, snug data shows what becomes of the rows",
      entry.path, entry.text().substr(0, 40)));
}

void take_bf16(Reading& reading, const Entry& entry) {
  const std::string word = lower(entry.text());
  if (word == "auto" || word == "full") return reading.set(entry, "bf16", "true");
  if (word == "false" && reading.recipe().bf16 && reading.has("bf16")) return reading.understood(entry, "the dtype decides");
  reading.set(entry, "bf16", entry.text());
}

void take_optimizer(Reading& reading, const Entry& entry) {
  constexpr Saying kWords[] = {
      {"adamw_torch_xla", "adamw_torch"}, {"adamw_torch_npu_fused", "adamw_torch"}, {"adamw_apex_fused", "adamw_torch"},
      {"adamw_torch_8bit", "adamw_8bit"}, {"adamw_bnb_8bit", "adamw_8bit"},
  };
  const std::string_view known = ours_of(kWords, entry.text());
  reading.set(entry, "optim", known.empty() ? std::string_view(entry.text()) : known);
}

void take_checkpointing(Reading& reading, const Entry& entry) {
  const std::string word = lower(entry.text());
  if (word == "unsloth" || word.starts_with("offload")) {
    reading.set(entry, "gradient_checkpointing", "true");
    reading.note(fmt::format("{}: {} keeps the blocks' inputs in host memory there, on the device here", entry.path, word));
  } else {
    reading.set(entry, "gradient_checkpointing", means_off(word) ? "false" : "true");
  }
}

void take_quantization_bit(Reading& reading, const Entry& entry) {
  const std::string& bits = entry.text();
  if (bits == "4" || bits == "8") {
    reading.set(entry, bits == "4" ? "load_in_4bit" : "load_in_8bit", "true");
  } else if (means_off(bits)) {
    reading.ignore(entry);
  } else {
    reading.touches(entry, fmt::format("{} bits are not planned: 4 or 8 are", bits.substr(0, 20)));
  }
}

void take_eval_batch(Reading& reading, const Entry& entry) {
  reading.result().eval_batch = std::max<int64_t>(0, count_of(entry.text()));
  reading.understood(entry, "sequences a device in evaluation; the plan evaluates in training's micro-batches");
}

void take_attention(Reading& reading, const Entry& entry) {
  const std::string word = lower(entry.text());
  if (word == "eager" || word == "disabled") {
    reading.touches(entry, "eager attention keeps whole matrices of scores");
  } else {
    reading.understood(entry, "scores are never kept whole");
  }
}

void take_report(Reading& reading, const Entry& entry) { reading.set_list(entry, "report_to", entry.values); }

void take_on(Reading& reading, const Entry& entry) { reading.understood(entry, "what snug does anyway"); }

// A count that may be written "0" or "-1" for "not given".
void take_count(Reading& reading, const Entry& entry) {
  const std::string& text = entry.text();
  if (text == "0" || text == "-1" || means_off(text)) return reading.understood(entry);
  const std::string_view name = entry.leaf();
  std::string value = text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  if (value.find('.') != std::string::npos) return reading.ignore(entry);  // a share of all steps
  reading.set(entry, name == "save_steps" || name == "eval_steps" || name == "logging_steps" ? name : "max_steps", value);
}

// The longest rows need the same; the plan counts those.
void take_padding_free(Reading& reading, const Entry& entry) {
  reading.understood(entry, "no more than the padded rows that are planned");
}

// "….(mlp|self_attn).(q|k|v|up)_proj" -> q_proj, k_proj, …: the last alternatives of a pattern and what follows them. Empty
// for patterns of another form.
static std::vector<std::string> names_in_pattern(std::string_view pattern) {
  const auto plain = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return std::islower(static_cast<unsigned char>(c)) || c == '_'; });
  };
  if (pattern.ends_with('$')) pattern.remove_suffix(1);
  const size_t close = pattern.rfind(')');
  const size_t open = close == std::string_view::npos ? close : pattern.rfind('(', close);
  if (open == std::string_view::npos || !plain(pattern.substr(close + 1))) return {};
  std::vector<std::string> names;
  std::string_view inside = pattern.substr(open + 1, close - open - 1);
  if (inside.starts_with("?:")) inside.remove_prefix(2);
  for (size_t at = 0; at <= inside.size();) {
    const size_t end = std::min(inside.find('|', at), inside.size());
    const std::string_view word = inside.substr(at, end - at);
    if (word.empty() || !plain(word)) return {};
    names.push_back(std::string(word) + std::string(pattern.substr(close + 1)));
    at = end + 1;
  }
  return names;
}

// "all", "all-linear", a list of last names, or a pattern, which says what it takes only to PEFT.
void take_targets(Reading& reading, const Entry& entry) {
  const std::string text = entry.values.size() == 1 ? entry.values[0] : "";
  if (text == "all" || text == "all-linear") return reading.set(entry, "lora_target_modules", "all-linear");
  const bool pattern = entry.kind == EntryKind::scalar && text.find_first_of("*()|\\[]^$") != std::string::npos;
  if (const auto read = pattern ? names_in_pattern(text) : std::vector<std::string>(); !read.empty()) {
    reading.note(fmt::format("{}: planned in every layer", entry.path));
    return reading.set_list(entry, "lora_target_modules", read);
  }
  if (pattern) return reading.touches(entry, "a pattern of module names is not read: planned with q_proj and v_proj");
  std::vector<std::string> names;
  for (const std::string& value : entry.values) {
    for (size_t at = 0; at <= value.size();) {
      const size_t end = std::min(value.find_first_of(", ", at), value.size());
      if (end > at) names.push_back(value.substr(at, end - at));
      at = end + 1;
    }
  }
  if (std::find(names.begin(), names.end(), "all-linear") != names.end() ||
      std::find(names.begin(), names.end(), "all") != names.end())
    names = {"all-linear"};
  reading.set_list(entry, "lora_target_modules", names);
}

std::string why_stage(std::string_view stage) {
  const bool pairs = stage == "dpo" || stage == "orpo" || stage == "cpo" || stage == "simpo" || stage == "rm" ||
                     stage == "reward" || stage == "ipo" || stage == "kto";
  std::string why = stage == "dpo" || stage == "kto" || stage == "ipo"
                        ? "a reference model beside the trained one, and two rows for each example"
                    : pairs ? "two rows for each example"
                            : "generation, a reference model and rewards beside the trained model";
  return fmt::format("{}: {}; planned as sft", stage, why);
}

void take_stage(Reading& reading, const Entry& entry) {
  const std::string stage = lower(entry.text());
  reading.result().stage = stage;
  if (stage == "sft" || stage == "pt") return reading.understood(entry);
  reading.touches(entry, why_stage(stage));
}

}  // namespace snug::dialects
