#include "model/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <vector>

#include "base/edit_distance.h"
#include "base/error.h"
#include "model/config.h"
#include "model/hub_cache.h"
#include "model/other_kinds.h"

namespace snug {

extern const std::string_view kModelsText;  // models.txt

namespace {

// A line of models.txt: "name other-name … {config.json}". Only the line that is asked for is parsed.
struct Entry {
  std::string_view names, config;

  std::string_view name() const { return names.substr(0, names.find(' ')); }
};

// Calls `visit` with each entry until it returns true.
template <class Visit>
void visit_entries(const Visit& visit) {
  for (std::string_view text = kModelsText; !text.empty();) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t brace = line.find('{');
    if (line.empty() || line.front() == '#' || brace == std::string_view::npos) continue;
    if (visit(Entry{line.substr(0, brace), line.substr(brace)})) return;
  }
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string_view without_owner(std::string_view name) {
  const size_t slash = name.find('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

// "owner/name" of ".../models--owner--name/snapshots/commit", where Hugging Face's cache keeps a repository; ".../name" of
// ".../name/snapshots/commit"; else the name.
std::string of_the_cache(std::string_view name) {
  constexpr std::string_view kBegin = "models--", kEnd = "/snapshots/";
  const size_t end = name.rfind(kEnd);
  if (end == std::string_view::npos) return std::string(name);
  const std::string_view path = name.substr(0, end), folder = path.substr(path.rfind('/') + 1);
  if (!folder.starts_with(kBegin)) return std::string(path);  // somebody's copy of it
  std::string repository(folder.substr(kBegin.size()));
  if (const size_t dashes = repository.find("--"); dashes != std::string::npos) repository.replace(dashes, 2, "/");
  return repository;
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == '-' || c == '_') {
      words.emplace_back();
    } else if (c != '.') {
      words.back() += c;
    }
  }
  return words;
}

// "8b", "15b" of 1.5B, "135m".
bool is_size(std::string_view word) {
  return word.size() > 1 && (word.back() == 'b' || word.back() == 'm') &&
         std::all_of(word.begin(), word.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
}

// A directory's name that says nothing of the model in it.
bool is_anybodys(std::string_view part) {
  constexpr std::string_view kNames[] = {
      "model",      "final",        "final_model", "model_final",         "merged", "merged_model", "best",
      "latest",     "last",         "data",        "mlflow_model_folder", "hf",     "default",      "weights",
      "checkpoint", "transformers", "pytorch"};
  if (part.starts_with("checkpoint-")) part.remove_prefix(std::string_view("checkpoint-").size());
  return std::ranges::find(kNames, part) != std::end(kNames) ||
         std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

// Which part of a path (lower case) names a model: the last that says anything. Kaggle writes
// "llama-3.2/transformers/3b-instruct/1".
std::string part_that_names(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::string_view rest = path; !rest.empty(); rest.remove_prefix(std::min(rest.find('/'), rest.size() - 1) + 1))
    if (const std::string_view part = rest.substr(0, rest.find('/')); !part.empty()) parts.push_back(part);
  if (parts.empty()) return {};
  const std::string_view last = parts.back();
  while (!parts.empty() && is_anybodys(parts.back())) parts.pop_back();
  if (parts.empty() || parts.back() == "." || parts.back() == ".." || parts.back() == "~") return std::string(last);
  const size_t n = parts.size();
  const bool is_variant =
      n >= 3 && (parts[n - 2] == "transformers" || parts[n - 2] == "pytorch") && is_size(words_of(parts[n - 1]).front());
  if (n >= 2 && is_size(words_of(parts[n - 1]).front()) && words_of(parts[n - 1]).size() == 1)  // ".../llama_hf/7B"
    return fmt::format("{}-{}", parts[n - 2], parts[n - 1]);
  return is_variant ? fmt::format("{}-{}", parts[n - 3], parts[n - 1]) : std::string(parts[n - 1]);
}

// In lower case; of a directory of somebody's the part that names a model; "2___5" is how ModelScope's cache writes 2.5.
std::string as_published(std::string_view given) {
  std::string path(given);
  if (given.find(":\\") == 1) std::ranges::replace(path, '\\', '/');  // of Windows
  std::string whole = of_the_cache(path);
  if (whole.size() > 2 && whole[1] == ':' && whole[2] == '\\') whole.erase(0, 2);  // "D:\models\name"
  std::ranges::replace(whole, '\\', '/');
  std::string_view name = whole;
  while (name.ends_with('/')) name.remove_suffix(1);
  const bool is_path =
      name.starts_with('/') || name.starts_with('.') || name.starts_with('~') || std::ranges::count(name, '/') > 1;
  std::string asked = is_path ? part_that_names(lower(name)) : lower(name);
  for (size_t at = asked.find("___"); at != std::string::npos; at = asked.find("___", at)) asked.replace(at, 3, ".");
  return asked;
}

// "open_calm_7b" is "open-calm-7b" to whoever writes it down.
bool is_written_alike(std::string_view one, std::string_view other) {
  return std::ranges::equal(
      one, other, {}, [](char c) { return c == '_' ? '-' : c; }, [](char c) { return c == '_' ? '-' : c; });
}

// True if `asked` (lower case) is one of the entry's names in full or without its owner.
bool answers_to(const Entry& entry, std::string_view asked) {
  const bool with_owner = asked.find('/') != std::string_view::npos;
  for (std::string_view rest = entry.names; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    if (is_written_alike(lower(with_owner ? name : without_owner(name)), asked)) return true;
  }
  return false;
}

std::optional<ModelSpec> entry_named(std::string_view asked) {
  std::optional<ModelSpec> spec;
  visit_entries([&](const Entry& entry) {
    if (!answers_to(entry, asked)) return false;
    spec = parse_config(entry.config, std::string(entry.name()));
    return true;
  });
  return spec;
}

// Takes off the name what others put at its end when they publish the same weights again: their form, a date, or what they
// were trained for.
bool take_end_off(std::string& name, std::optional<StoredQuantization>& quantization) {
  constexpr size_t kDate = 5;  // "-2507"
  for (const std::string_view end : {"-unsloth-bnb-4bit", "-bnb-4bit", "-bnb-8bit", "-hf", "-bf16", "-fp16", "-fp32",
                                     "-sharded", "-base", "-instruct", "-thinking", "-chat", "-it", "-pt", "-sft", "-dpo"}) {
    if (!name.ends_with(end) || name.size() == end.size()) continue;
    name.resize(name.size() - end.size());
    if (end.ends_with("-4bit")) quantization = StoredQuantization{.type = DType::nf4, .double_quant = true};
    if (end.ends_with("-8bit")) quantization = StoredQuantization{.type = DType::i8};
    return true;
  }
  if (const size_t step = name.find("-intermediate-step"); step != std::string::npos && step > 0) {
    name.resize(step);
    return true;
  }
  if (name.size() <= kDate || name[name.size() - kDate] != '-' ||
      !std::all_of(name.end() - (kDate - 1), name.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return false;
  name.resize(name.size() - kDate);
  return true;
}

// The first of the catalogue whose name goes on with a version: "mistral-7b" is Mistral-7B-v0.1.
std::optional<ModelSpec> first_version(const std::string& name) {
  std::optional<ModelSpec> spec;
  visit_entries([&](const Entry& entry) {
    const std::string full = lower(without_owner(entry.name()));
    const size_t digit = name.size() + 2;  // "qwen3-vl" is no version of qwen3
    const bool version =
        full.starts_with(name + "-v") && digit < full.size() && std::isdigit(static_cast<unsigned char>(full[digit])) != 0;
    if (!version && full != name + "-hf") return false;
    spec = parse_config(entry.config, std::string(entry.name()));
    return true;
  });
  return spec;
}

// `owner`: "unsloth/", whose copies of some models have modules of their own; or "".
std::optional<ModelSpec> find_copy(const std::string& owner, std::string name) {
  std::optional<StoredQuantization> quantization;
  std::optional<ModelSpec> spec = first_version(name);
  while (!spec && take_end_off(name, quantization)) {
    spec = entry_named(owner + name);
    if (!spec) spec = entry_named(name);
    if (!spec) spec = first_version(name);
  }
  if (spec && quantization) spec->quantization = quantization;
  return spec;
}

// How a name says that its weights are stored in a way of which there is no plan to the byte, and where.
struct Form {
  std::string_view form;  // "GPTQ"; empty: it does not
  size_t at = 0;
};

Form stored_form(std::string_view lower_name) {
  if (lower_name.starts_with("mlx-community/")) return {"MLX", lower_name.size()};
  for (const std::string_view form : {"GPTQ", "AWQ", "GGUF", "EXL2", "MLX", "FP8", "AQLM", "HQQ", "W4A16", "Int4", "Int8"})
    for (const char mark : {'-', '_'})
      if (const size_t at = lower_name.find(mark + lower(form)); at != std::string_view::npos) return {form, at};
  return {};
}

std::string_view unplanned_form(std::string_view lower_name) { return stored_form(lower_name).form; }

// ---- Which model a name of somebody's own tells of: "llama-3-1-8b-math", "Nous-Hermes-Llama2-13b".

// "llama7b" is "llama", "7b".
std::vector<std::string> with_sizes_apart(const std::vector<std::string>& words) {
  std::vector<std::string> apart;
  for (const std::string& word : words) {
    size_t digits = word.size() > 1 && (word.back() == 'b' || word.back() == 'm') ? word.size() - 1 : 0;
    while (digits > 0 && word[digits - 1] >= '0' && word[digits - 1] <= '9') --digits;
    constexpr size_t kShortest = 4;  // "qwen"; gemma-3n's "e2b" is no size
    const bool glued = digits >= kShortest && is_size(std::string_view(word).substr(digits));
    if (glued) apart.push_back(word.substr(0, digits));
    apart.push_back(glued ? word.substr(digits) : word);
  }
  return apart;
}

// What a name says before a model's size, in one word, and the size; empty where it says none.
struct FamilyAndSize {
  std::string family, size;
};

FamilyAndSize family_and_size(std::string_view name) {
  std::vector<std::string> words = words_of(lower(without_owner(name)));
  if (words.front() == "meta") words.erase(words.begin());
  FamilyAndSize found;
  for (const std::string& word : words) {
    if (is_size(word)) {
      found.size = word;
      return found;
    }
    found.family += word;
  }
  return {};
}

// Families whose name stands for nothing else, behind what somebody put before it in the same word: "biomistral".
bool may_end_a_word(const std::string& family) { return family == "mistral" || family == "llama2" || family == "llama3"; }

// The names tell of the family by words in a row, and behind them of the size.
bool tells_of(const std::vector<std::string>& words, const FamilyAndSize& model) {
  for (size_t first = 0; first < words.size(); ++first) {
    const auto size_behind = [&](size_t next) {  // a number at once behind the family is another generation: gemma-4
      const bool later =
          next < words.size() && std::ranges::all_of(words[next], [](char c) { return c >= '0' && c <= '9'; });
      return !later && std::find(words.begin() + static_cast<int64_t>(next), words.end(), model.size) != words.end();
    };
    if (may_end_a_word(model.family) && words[first].ends_with(model.family)) return size_behind(first + 1);
    std::string family;
    for (size_t next = first; next < words.size() && family.size() < model.family.size();) {
      family += words[next++];
      if (family == model.family) return size_behind(next);
    }
  }
  return false;
}

// Words of names whose model has another shape than the one it was made from; unless it is `family` that has the word.
bool tells_of_another_shape(const std::vector<std::string>& words, std::string_view family) {
  constexpr std::string_view kWords[] = {"pro",  "vl",      "vision", "moe",  "pruned", "mini",
                                         "nano", "distill", "draft",  "omni", "audio"};
  return std::ranges::any_of(words, [&](const std::string& word) {
    return std::ranges::find(kWords, word) != std::end(kWords) && family.find(word) == std::string_view::npos;
  });
}

// Of one part of a name; "" where none is told of.
std::string_view told_of_by(std::string_view part) {
  const std::vector<std::string> words = with_sizes_apart(words_of(part));
  std::string_view found;
  size_t longest = 1;  // of its family's name: Llama 3.1 before Llama 3
  visit_entries([&](const Entry& entry) {
    for (std::string_view rest = entry.names; !rest.empty();) {
      const FamilyAndSize model = family_and_size(rest.substr(0, rest.find(' ')));
      rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
      if (model.family.size() <= longest || !tells_of(words, model)) continue;
      if (tells_of_another_shape(words, model.family)) continue;
      longest = model.family.size();
      found = entry.name();
    }
    return false;
  });
  return found;
}

// "checkpoint-64" of "llama-2-7b-sft/checkpoint-64": what runs call what they leave; the folder above tells.
bool is_a_runs(std::string_view part) {
  constexpr std::string_view kNames[] = {"checkpoint", "final",  "merged",  "best",         "last",
                                         "epoch",      "output", "adapter", "pytorch_model"};
  constexpr std::string_view kEndings[] = {".bin", ".safetensors", ".pt", ".pth"};
  constexpr std::string_view kStages[] = {"sft", "dpo", "lora", "qlora", "full", "model", "policy", "latest", "hf"};
  return part.empty() || std::ranges::find(kStages, part) != std::end(kStages) ||
         std::ranges::any_of(kNames, [&](std::string_view name) { return part.starts_with(name); }) ||
         std::ranges::any_of(kEndings, [&](std::string_view ending) { return part.ends_with(ending); });
}

}  // namespace

std::string model_within(std::string_view name) {
  const std::string asked = as_published(name.substr(0, 200));
  if (!unplanned_form(asked).empty()) return {};
  std::string_view found = told_of_by(without_owner(asked));
  const std::string path = lower(name.substr(0, 200));
  std::string_view rest = path;
  while (found.empty() && rest.find('/') != std::string_view::npos && is_a_runs(rest.substr(rest.rfind('/') + 1))) {
    rest = rest.substr(0, rest.rfind('/'));
    found = told_of_by(rest.substr(rest.rfind('/') + 1));
  }
  return std::string(found);
}

std::optional<QuantizedCopy> quantized_copy(std::string_view name) {
  const std::string asked = as_published(name.substr(0, 200));
  const auto [form, at] = stored_form(asked);
  if (form.empty() || form == "EXL2" || form == "MLX") return std::nullopt;
  const std::string plain = asked.substr(0, at);
  const auto spec = find_model(plain);
  QuantizedCopy copy{spec ? spec->name : model_within(plain), std::string(form)};
  if (copy.form.starts_with("Int")) copy.form = "GPTQ";  // as Qwen names its own
  return copy.base.empty() ? std::nullopt : std::optional(copy);
}

std::optional<ModelSpec> find_model(std::string_view name) {
  const std::string asked = as_published(name);
  if (auto spec = entry_named(asked)) return spec;
  const std::string alone(without_owner(asked));
  if (auto spec = entry_named(alone)) return spec;
  return unplanned_form(asked).empty() ? find_copy(asked.substr(0, asked.size() - alone.size()), alone) : std::nullopt;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  visit_entries([&](const Entry& entry) {
    names.emplace_back(entry.name());
    return false;
  });
  return names;
}

std::string nearest_model_name(std::string_view name) {
  const std::string asked = lower(name.substr(0, 200));
  const bool with_owner = asked.find('/') != std::string::npos;
  std::string_view nearest;
  int64_t least = most_slips(asked.size()) + 1;
  visit_entries([&](const Entry& entry) {
    const int64_t distance = edit_distance(asked, lower(with_owner ? entry.name() : without_owner(entry.name())));
    if (distance < least) {
      least = distance;
      nearest = entry.name();
    }
    return false;
  });
  return std::string(nearest);
}

ModelSpec resolve_model(const std::string& argument) {
  if (argument.empty())
    throw Error("no model is given", "", "give a checkpoint directory, a config.json or a catalogue name");
  std::error_code error;
  if (std::filesystem::exists(argument, error)) return read_config(argument);
  if (auto spec = find_model(argument)) return *spec;
  if (const auto snapshot = cached_snapshot(argument)) return read_config(*snapshot);
  const std::string nearest = nearest_model_name(argument);
  if (const std::string_view form = unplanned_form(lower(argument)); !form.empty())
    throw Error(fmt::format("'{}' is no path, and by its name {} weights, which are not planned", argument, form), "",
                fmt::format("give the model that they were made from{}, and --method qlora",
                            nearest.empty() ? "" : ", such as " + nearest));
  const std::string_view kind = other_kind(as_published(argument));
  if (!kind.empty() && other_kind(nearest) != kind)  // -Vision is no slip of the decoder's name
    throw Error(fmt::format("'{}' is no path, and by its name {}: snug plans decoders of text", argument, kind), "",
                "if it is a decoder, give its config.json");
  throw Error(fmt::format("'{}' is neither a path nor a model of the catalogue", argument), "",
              nearest.empty() ? "`snug models` lists them; or give its config.json"
                              : fmt::format("nearest: {}; `snug models` lists them", nearest));
}

}  // namespace snug
