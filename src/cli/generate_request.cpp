#include "cli/generate_request.h"

#include <algorithm>
#include <charconv>
#include <fstream>

#include "base/error.h"
#include "chat/json.h"
#include "cli/command_table.h"
#include "cli/terminal.h"
#include "formats/adapter_file.h"
#include "formats/file.h"
#include "formats/merge.h"
#include "model/hub_cache.h"

namespace snug::cli {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostTokens = int64_t{1} << 30;

class Flags {
 public:
  explicit Flags(const Arguments& arguments) : arguments_(arguments) {}

  std::optional<std::string> text(const std::string& name) const {
    return arguments_.has(name) ? std::optional(arguments_.value(name)) : std::nullopt;
  }
  std::optional<double> number(const std::string& name, double low, double high) const {
    return parsed<double>(name, low, high, "a number");
  }
  std::optional<int64_t> count(const std::string& name, int64_t low, int64_t high) const {
    return parsed<int64_t>(name, low, high, "a whole number");
  }

 private:
  template <class T>
  std::optional<T> parsed(const std::string& name, T low, T high, const char* kind) const {
    const auto given = text(name);
    if (!given) return std::nullopt;
    T value{};
    const auto [end, error] = std::from_chars(given->data(), given->data() + given->size(), value);
    const bool inside = value >= low && value <= high;  // false for what is not a number
    if (error != std::errc() || end != given->data() + given->size() || !inside)
      throw Error("must be " + std::string(kind) + range(low, high) + ", not '" + *given + "'", "--" + name);
    return value;
  }
  template <class T>
  static std::string range(T low, T high) {
    if constexpr (std::is_same_v<T, double>) {
      return high > 1e6 ? " of at least 0" : " above 0 and at most 1";
    } else {
      return high >= kMostTokens ? " of at least " + std::to_string(low) : " up to " + std::to_string(high);
    }
  }

  const Arguments& arguments_;
};

bool was_set(const Arguments& arguments, const std::string& key) {
  return std::find(arguments.keys_set.begin(), arguments.keys_set.end(), key) != arguments.keys_set.end();
}

// As transformers: what generation_config.json says where it samples, else the best token; flags change that.
Sampling sampling_of(const Flags& flags, const GenerationDefaults& defaults, uint64_t seed) {
  const auto temperature = flags.number("temperature", 0.0, 1e9);
  const auto top_p = flags.number("top-p", 1e-9, 1.0);
  const auto top_k = flags.count("top-k", 0, kMostTokens);
  Sampling sampling{.seed = seed};
  const bool draws = temperature ? *temperature > 0 : defaults.do_sample || top_p || top_k;
  if (!draws) return sampling;
  sampling.temperature = temperature.value_or(defaults.temperature);
  sampling.top_p = top_p.value_or(defaults.top_p);
  sampling.top_k = top_k.value_or(defaults.top_k);
  return sampling;
}

// The model, and the adapters on it: MODEL may be an adapter, which names its base.
void take_model(const Arguments& arguments, GenerateRequest& request) {
  const std::string& name = arguments.recipe.model;
  if (name.empty()) throw UsageError("which model? snug generate MODEL --prompt TEXT");
  request.model = local_checkpoint(name, "generating");
  const bool adapter = is_there(request.model / "adapter_config.json") && !is_there(request.model / "config.json");
  if (adapter) request.model = base_of(AdapterFile(request.adapters.emplace_back(request.model)));
  for (const std::string& more : arguments.values("adapter")) request.adapters.emplace_back(more);
}

std::vector<int32_t> question_of(const chat::Value& row, const TextSide& text) {
  if (!row.is(chat::Kind::dict)) throw Error("the row is not an object", "");
  if (const chat::Value* messages = row.dict()->find("messages")) return text.chat(*messages);
  const chat::Value* prompt = row.dict()->find("prompt");
  if (prompt == nullptr) throw Error(R"(the row has neither "prompt" nor "messages")", "");
  if (prompt->is_string()) return text.prompt(std::string(prompt->view()));
  return text.chat(*prompt);  // a conversation, as trl writes it
}

}  // namespace

GenerateRequest read_generate_request(std::span<char* const> words) {
  Terminal terminal;
  const Arguments arguments = parse_arguments(words, own_flags("generate"), terminal);
  const Flags flags(arguments);
  GenerateRequest request;
  take_model(arguments, request);
  request.prompt = flags.text("prompt");
  request.chat = flags.text("chat");
  if (!arguments.recipe.data.empty()) request.data = arguments.recipe.data;
  if (int(request.prompt.has_value()) + int(request.chat.has_value()) + int(request.data.has_value()) > 1)
    throw UsageError("--prompt, --chat and --data exclude one another");
  request.json = arguments.has("json");
  if (request.interactive() && (request.json || !is_terminal(stdin)))
    throw UsageError("what is asked? give --prompt TEXT, --chat TEXT or --data FILE.jsonl");

  const GenerationDefaults defaults = read_generation_defaults(request.model);
  request.sampling = sampling_of(flags, defaults, arguments.recipe.seed);
  request.ignored = defaults.ignored;
  request.limits.stop_tokens = defaults.stop_tokens;
  request.limits.max_new_tokens = flags.count("max-new-tokens", 1, kMostTokens).value_or(256);
  request.limits.stop_strings = arguments.values("stop");
  request.max_length = arguments.recipe.seq_len;
  if (arguments.recipe.bf16 && arguments.recipe.fp16) throw UsageError("--bf16 and --fp16 exclude one another");
  if (was_set(arguments, "bf16") || was_set(arguments, "fp16"))
    request.dtype = arguments.recipe.bf16 ? DType::bf16 : arguments.recipe.fp16 ? DType::f16 : DType::f32;
  request.memory_bytes = arguments.recipe.memory_bytes;
  request.threads = arguments.recipe.threads;
  return request;
}

std::vector<std::vector<int32_t>> questions_of(const GenerateRequest& request, const TextSide& text) {
  if (request.prompt) return {text.prompt(*request.prompt)};
  if (request.chat) return {text.chat(user_message(*request.chat))};
  std::vector<std::vector<int32_t>> questions;
  if (!request.data) return questions;
  std::ifstream file(*request.data);
  if (!file) throw Error("the file cannot be read", *request.data);
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = *request.data + ":" + std::to_string(number);
    try {
      questions.push_back(question_of(chat::parse_json(line, where), text));
    } catch (const Error& error) {
      throw error.where() == where ? error : Error(error.problem(), where, error.mend());
    }
  }
  if (questions.empty()) throw Error("the file has no rows", *request.data);
  return questions;
}

}  // namespace snug::cli
