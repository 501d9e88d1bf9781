#include "recipe/dialects/reading.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "recipe/dialects/handed_on.h"
#include "recipe/foreign_keys.h"
#include "recipe/keys.h"
#include "recipe/schedule_keys.h"

namespace snug::dialects {

namespace {

bool matches(std::string_view pattern, std::string_view path) {
  return pattern.ends_with('*') ? path.starts_with(pattern.substr(0, pattern.size() - 1)) : path == pattern;
}

// Whether `word` is one of the words of `text`.
bool lists(std::string_view text, std::string_view word) {
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_not_of(" \n", at);
    if (begin == std::string_view::npos) return false;
    at = std::min(text.find_first_of(" \n", begin), text.size());
    if (matches(text.substr(begin, at - begin), word)) return true;
  }
  return false;
}

std::string shown(const Entry& entry) {
  if (entry.kind == EntryKind::map) return "{…}";
  std::string text = entry.kind == EntryKind::list ? fmt::format("[{}]", fmt::join(entry.values, ", "))
                     : entry.values.empty()        ? "null"
                                                   : entry.values[0];
  if (text.size() > 80) {
    size_t end = 80;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end) + "…";
  }
  return text;
}

// Keys of ours that no plan of memory looks at.
bool is_neutral(std::string_view ours) {
  return lists(
      "learning_rate lr_scheduler_type lr_scheduler_kwargs warmup_steps warmup_ratio weight_decay adam_beta1 adam_beta2 "
      "adam_epsilon "
      "max_grad_norm num_train_epochs max_steps save_steps save_strategy save_total_limit logging_steps report_to "
      "logging_dir "
      "eval_steps eval_strategy eval_on_start load_best_model_at_end metric_for_best_model greater_is_better "
      "early_stopping_patience early_stopping_threshold "
      "resume_from_checkpoint overwrite_output_dir seed neftune_noise_alpha output_dir lora_alpha lora_dropout use_rslora "
      "alpha_pattern "
      "train_on_inputs completion_only_loss assistant_only_loss shuffle val_size optim_args chat_template",
      ours);
}

bool is_off_value(const Entry& entry) {
  if (entry.values.empty()) return entry.kind != EntryKind::map;
  return entry.values.size() == 1 && means_off(entry.values[0]);
}

}  // namespace

const Rules& rules_of(Dialect dialect) {
  static const Rules kRules[] = {
#define SNUG_DIALECT(dialect) dialect##_rules(),
      SNUG_DIALECTS(SNUG_DIALECT)
#undef SNUG_DIALECT
  };
  return kRules[static_cast<size_t>(dialect)];
}

Reading::Reading(const Document& document, Dialect dialect) : document_(document), rules_(rules_of(dialect)) {
  result_.dialect = dialect;
}

ForeignRecipe Reading::read() {
  if (rules_.start) rules_.start(*this);
  std::set<std::string_view> seen;
  for (const Entry& entry : document_.entries) {
    if (entry.path.starts_with("launch.") || entry.path.starts_with("env.")) continue;
    if (document_.syntax != Syntax::shell && !seen.insert(entry.path).second)
      note(fmt::format("'{}' is given twice: the last holds, as in Python's readers", entry.path));
    classify(entry);
  }
  read_launcher(*this);
  if (rules_.finish) rules_.finish(*this);
  const char* const knows = document_.syntax == Syntax::python ? "Python" : "a shell";
  for (const std::string& text : document_.notes) note(text);
  for (const std::string& word : document_.unread)
    note(fmt::format("only {} knows {}: what it stands for is not read", knows, word.substr(0, 80)));
  if (!document_.beside.empty()) note(fmt::format("read beside it: {}", fmt::join(document_.beside, ", ")));
  for (const std::string& key : document_.firsts) note(fmt::format("{} is the first of several that a loop goes over", key));
  if (!document_.blank_ends.empty())
    note(fmt::format("line {}: blanks stand behind the backslash, where a shell ends the command; read on as it is meant",
                     document_.blank_ends.front()));
  settle();
  note_defaults();
  guess_bits();
  for (const char* name : {"tokenizer_name_or_path", "tokenizer_name", "tokenizer_path"})
    if (result_.tokenizer.empty()) result_.tokenizer = value(name);
  if (result_.models.empty()) guess_model();
  if (document_.syntax == Syntax::shell && result_.models.empty()) note_config();
  std::erase_if(result_.assumed, [&](const RecipeChange& change) { return has(change.key); });
  if (!result_.models.empty()) recipe().model = result_.models.front();
  return std::move(result_);
}

// A script of somebody's own that is started with flags: what it does where no flag says it stands in the script alone.
void Reading::note_defaults() {
  if (document_.syntax != Syntax::shell || document_.by_python() || document_.command[0] != "python" ||
      result_.dialect != Dialect::hugging_face)
    return;
  std::vector<std::string_view> unsaid;
  if (!has("method") && !has("lora_r")) unsaid.emplace_back("method");
  if (!has("lora_r") && has("method") && recipe().method == Method::lora) unsaid.emplace_back("lora_r");
  if (!has("max_length")) unsaid.emplace_back("max_length");
  if (!unsaid.empty())
    note(fmt::format("no flag says {}: {}'s own defaults are not read", fmt::join(unsaid, ", "), document_.command[1]));
}

// "train_args/qlora/yi.json" of a trainer that needs no key for it, as Firefly's: only its name tells.
void Reading::guess_bits() {
  if (result_.dialect != Dialect::hugging_face || document_.by_python() || recipe().method != Method::lora) return;
  const std::filesystem::path file(document_.where);
  const std::string name = lower((file.parent_path().filename() / file.filename()).string());
  const bool said = std::ranges::any_of(document_.entries, [](const Entry& entry) {
    const std::string leaf = lower(entry.leaf());
    return leaf.find("bit") != std::string::npos || leaf.find("quant") != std::string::npos;
  });
  if (said || name.find("qlora") == std::string::npos) return;
  recipe().quantize.in_4bit = true;
  note("its name says QLoRA and no key how many bits: planned in 4");
}

// "--model_path_name qwen/Qwen-1_8B": of the keys that no trainer has, the one that tells of a model and of nothing that is
// done with one.
void Reading::guess_model() {
  constexpr std::string_view kOthers[] = {"save",    "out",   "max",  "template", "reward", "ref",
                                          "teacher", "judge", "eval", "hub",      "draft",  "parall",
                                          "version", "type",  "best", "dtype",    "merge",  "name_or"};
  for (const Entry& entry : document_.entries) {
    const std::string leaf = lower(entry.leaf());
    const std::string& value = entry.text();
    if (entry.kind != EntryKind::scalar || leaf.find("model") == std::string::npos || entry.path.starts_with("env."))
      continue;
    if (std::ranges::any_of(kOthers, [&](std::string_view other) { return leaf.find(other) != std::string::npos; }))
      continue;
    const bool name = value.find('/') != std::string::npos && value.find_first_of(" $\n") == std::string::npos &&
                      value.find_first_of("0123456789") != std::string::npos && !is_file(value);
    if (!name) continue;
    model(value);
    understood(entry, "taken for its model");
    return;
  }
}

// A script that hands on a file of keys is not the recipe itself.
void Reading::note_config() {
  if (!document_.beside.empty()) return;  // read
  result_.keys_in = handed_on(document_).substr(0, 200);
  if (!result_.keys_in.empty()) note(fmt::format("the keys are in {}: give that file", result_.keys_in));
}

// What Hugging Face's Trainer lets stand side by side and our own checks do not.
void Reading::settle() {
  Recipe& r = recipe();
  const auto says_auto = [&] {
    return std::any_of(document_.entries.begin(), document_.entries.end(),
                       [](const Entry& entry) { return entry.leaf() == "bf16" && entry.text() == "auto"; });
  };
  if (r.fp16 && r.bf16 && has("bf16") && !says_auto()) {
    r.fp16 = false;
    note("bf16 and fp16 are both on: planned in bf16");
  }
  if (r.fp16 && (!has("bf16") || r.bf16)) {
    r.bf16 = false;
    std::erase_if(result_.assumed, [](const RecipeChange& change) { return change.key == "bf16"; });
  }
  if (r.warmup_steps > 0) r.warmup_ratio = 0.0;
  if (r.lr_scheduler_type == Schedule::constant) {
    r.warmup_steps = 0;
    r.warmup_ratio = 0.0;
  }
  settle_schedule();
  const auto& whole = r.lora.modules_to_save;
  std::erase_if(r.lora.target_modules,
                [&](const std::string& name) { return std::find(whole.begin(), whole.end(), name) != whole.end(); });
}

// A schedule that cannot be run is no matter of memory: refused where it would be.
void Reading::settle_schedule() {
  Recipe& r = recipe();
  try {
    validate_schedule(r);
  } catch (const Error& error) {
    for (ForeignKey& key : result_.keys)
      if (key.ours == "lr_scheduler_type" || key.ours == "lr_scheduler_kwargs") key.refusal = error.problem();
    r.lr_scheduler_type = Schedule::cosine;
    r.lr_scheduler_kwargs.clear();
  }
}

void Reading::classify(const Entry& entry) {
  for (std::string_view above = entry.parent(); !above.empty();) {
    if (claimed_.contains(above)) return;
    const size_t dot = above.rfind('.');
    above = dot == std::string_view::npos ? std::string_view() : above.substr(0, dot);
  }
  const bool holds = entry.kind != EntryKind::scalar;
  const bool known = take_row(entry) || take_touch(entry);
  const bool ignored = is_ignored(entry.path) || (rules_.by_leaf && is_ignored(entry.leaf()));
  if (!known && entry.kind == EntryKind::map && has_rows_below(entry.path)) return;
  if (!known && ignored) {
    ignore(entry);
  } else if (!known && entry.kind == EntryKind::map) {
    return;  // what it holds speaks for itself
  } else if (!known && document_.syntax == Syntax::yaml &&
             document_.text.find("${" + entry.path + "}") != std::string::npos) {
    understood(entry, "a name that the file itself uses");
  } else if (!known) {
    key_of(entry);
  }
  if (holds) claimed_.insert(entry.path);
}

bool Reading::has_rows_below(const std::string& path) const {
  const auto below = [&](std::string_view name) { return name.starts_with(path + "."); };
  return std::any_of(rules_.rows.begin(), rules_.rows.end(), [&](const Row& row) { return below(row.theirs); });
}

bool Reading::take_row(const Entry& entry) {
  const std::string_view name = rules_.by_leaf ? entry.leaf() : std::string_view(entry.path);
  for (const Row& row : rules_.rows) {
    if (!matches(row.theirs, entry.path) && !(rules_.by_leaf && row.theirs == name)) continue;
    if (entry.kind == EntryKind::map && (!row.take || rules_.by_leaf)) return false;
    if (row.take) {
      if (entry.values.empty() && entry.kind == EntryKind::scalar) {
        understood(entry);
      } else {
        row.take(*this, entry);
      }
    } else if (entry.values.empty()) {
      understood(entry);  // null: the default holds
    } else if (entry.kind == EntryKind::list) {
      set_list(entry, row.ours, entry.values);
    } else {
      set(entry, row.ours, entry.values[0]);
    }
    return true;
  }
  return false;
}

bool Reading::take_touch(const Entry& entry) {
  const std::string_view name = rules_.by_leaf ? entry.leaf() : std::string_view(entry.path);
  for (const Touch& touch : rules_.touches) {
    if (!matches(touch.theirs, entry.path) && !matches(touch.theirs, name)) continue;
    const bool off = is_off_value(entry) || (entry.kind == EntryKind::map && is_empty(entry)) ||
                     (entry.values.size() == 1 && lists(touch.also_off, entry.values[0]));
    if (off || (!touch.only_with.empty() && !is_on(touch.only_with))) {
      ignore(entry);
    } else {
      touches(entry, std::string(touch.why));
    }
    return true;
  }
  return false;
}

bool Reading::is_empty(const Entry& map) const {
  const auto next = static_cast<size_t>(&map - document_.entries.data()) + 1;
  return next >= document_.entries.size() || !document_.entries[next].path.starts_with(map.path + ".");
}

bool Reading::is_ignored(std::string_view path) const {
  return std::any_of(rules_.ignored.begin(), rules_.ignored.end(), [&](std::string_view text) { return lists(text, path); });
}

std::string Reading::value(std::string_view path) const {
  const Entry* entry = document_.find(path);
  return entry ? entry->text() : std::string();
}

bool Reading::is_on(std::string_view path) const {
  const Entry* entry = document_.find(path);
  return entry && !is_off_value(*entry);
}

bool Reading::is_off(std::string_view path) const {
  const Entry* entry = document_.find(path);
  return entry && !entry->values.empty() && is_off_value(*entry);
}

bool Reading::has(std::string_view ours) const {
  return std::find(result_.keys_set.begin(), result_.keys_set.end(), ours) != result_.keys_set.end();
}

void Reading::assume(std::string_view ours, std::string_view value) {
  apply(recipe(), ours, value);
  std::erase_if(result_.assumed, [&](const RecipeChange& change) { return change.key == ours; });
  result_.assumed.push_back({std::string(ours), std::string(value)});
}

void Reading::note(std::string text) {
  if (result_.notes.size() < 100) result_.notes.push_back(std::move(text));
}

ForeignKey& Reading::key_of(const Entry& entry) {
  const std::string name = entry.path.empty() ? "\"\"" : entry.path;  // a key may be empty: it is told as it is written
  const auto [place, is_new] = places_.try_emplace({entry.line, name}, result_.keys.size());
  if (is_new) result_.keys.emplace_back(ForeignKey{.name = name, .value = shown(entry), .line = entry.line});
  return result_.keys[place->second];
}

void Reading::mark_set(std::string_view ours) {
  if (const Key* key = find_key(ours); key && !has(key->name)) result_.keys_set.emplace_back(key->name);
}

void Reading::set(const Entry& entry, std::string_view ours, std::string_view value) {
  set_list(entry, ours, {std::string(value)});
}

void Reading::set_list(const Entry& entry, std::string_view ours, const std::vector<std::string>& written) {
  std::vector<std::string> values = written;
  for (std::string& value : values)  // 500_000, as YAML 1.1 writes it
    if (value.find_first_not_of("0123456789_") == std::string::npos) std::erase(value, '_');
  if (ours == "lora_modules_to_save")  // as scripts write none of them: "--modules_to_save null"
    std::erase_if(values, [](const std::string& value) { return value == "null" || value == "None" || value == "none"; });
  ForeignKey& key = key_of(entry);
  try {
    Recipe trial = recipe();
    if (values.size() == 1) {
      apply(trial, ours, values[0]);
    } else {
      apply_list(trial, ours, values);
    }
    recipe() = std::move(trial);
  } catch (const Error& error) {
    key.fate = is_neutral(ours) ? KeyFate::without_effect : KeyFate::touches_memory;
    key.refusal = error.problem();
    key.note = is_neutral(ours) ? "" : error.problem();
    return;
  }
  key.fate = KeyFate::understood;
  key.ours = ours;
  key.our_value = fmt::format("{}", fmt::join(values, ","));
  mark_set(ours);
}

void Reading::understood(const Entry& entry, std::string note) {
  ForeignKey& key = key_of(entry);
  key.fate = KeyFate::understood;
  key.note = std::move(note);
}

void Reading::ignore(const Entry& entry, std::string refusal) {
  ForeignKey& key = key_of(entry);
  key.fate = KeyFate::without_effect;
  key.refusal = std::move(refusal);
  if (!key.refusal.empty() || (!entry.values.empty() && is_file(entry.values[0]))) return;
  try {  // what our own reader refuses to train with
    static_cast<void>(pass_over_foreign_key(entry.leaf(), entry.values));
  } catch (const Error& error) {
    key.refusal = error.problem();
  }
}

void Reading::touches(const Entry& entry, std::string why) {
  ForeignKey& key = key_of(entry);
  key.fate = KeyFate::touches_memory;
  key.refusal = fmt::format("{}: {}", entry.path, why);
  key.note = std::move(why);
}

void Reading::decide(std::string_view ours, std::string_view value) {
  apply(recipe(), ours, value);
  mark_set(ours);
}

void Reading::model(const std::string& name) {
  if (!name.empty() && std::find(result_.models.begin(), result_.models.end(), name) == result_.models.end())
    result_.models.push_back(name);
}

bool is_file(const std::string& name) {
  return name.ends_with(".json") || name.ends_with(".jsonl") || name.ends_with(".parquet") || name.ends_with(".arrow") ||
         name.starts_with("/") || name.starts_with("./");
}

void Reading::data(const std::string& name) {
  if (name.empty() || result_.data.size() >= 100) return;
  result_.data.push_back(name);
  if (is_file(name) && recipe().data.empty()) recipe().data = name;
}

}  // namespace snug::dialects
