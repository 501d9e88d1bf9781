#include "model/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <limits>
#include <numeric>

#include "base/edit_distance.h"
#include "base/error.h"
#include "model/config.h"

namespace snug {

namespace {

// What the models of one release share.
struct Release {
  int64_t vocab_size, max_position;
  double rope_theta, rope_factor;  // factor 1: no scaling; otherwise llama3 with 1, 4, 8192
  DType dtype;
  std::string_view family = "llama", architecture = "LlamaForCausalLM";
  int64_t sliding_window = 0;
};
constexpr Release kLlama2 = {32000, 4096, 10000.0, 1.0, DType::f16};
constexpr Release kLlama3 = {128256, 8192, 500000.0, 1.0, DType::bf16};
constexpr Release kLlama31 = {128256, 131072, 500000.0, 8.0, DType::bf16};
constexpr Release kLlama32 = {128256, 131072, 500000.0, 32.0, DType::bf16};
constexpr Release kTinyLlama = {32000, 2048, 10000.0, 1.0, DType::bf16};
constexpr Release kSmolLm2 = {49152, 8192, 100000.0, 1.0, DType::bf16};
constexpr Release kSmolLm2Large = {49152, 8192, 130000.0, 1.0, DType::bf16};
constexpr Release kMistral01 = {32000, 32768, 10000.0, 1.0, DType::bf16, "mistral", "MistralForCausalLM", 4096};
constexpr Release kMistral02 = {32000, 32768, 1000000.0, 1.0, DType::bf16, "mistral", "MistralForCausalLM"};
constexpr Release kMistral03 = {32768, 32768, 1000000.0, 1.0, DType::bf16, "mistral", "MistralForCausalLM"};

// C, F, L, H, K; the head size is C/H in all of them.
struct Shape {
  int64_t hidden_size, intermediate_size, layers, heads, kv_heads;
  bool tied;
};
constexpr Shape k7B = {4096, 11008, 32, 32, 32, false};
constexpr Shape k13B = {5120, 13824, 40, 40, 40, false};
constexpr Shape k8B = {4096, 14336, 32, 32, 8, false};  // Mistral 7B too: it has a smaller vocabulary
constexpr Shape k70B = {8192, 28672, 80, 64, 8, false};
constexpr Shape k405B = {16384, 53248, 126, 128, 8, false};
constexpr Shape k1B = {2048, 8192, 16, 32, 8, true};
constexpr Shape k3B = {3072, 8192, 28, 24, 8, true};
constexpr Shape kTiny = {2048, 5632, 22, 32, 4, false};
constexpr Shape k135M = {576, 1536, 30, 9, 3, true};
constexpr Shape k360M = {960, 2560, 32, 15, 5, true};
constexpr Shape k1700M = {2048, 8192, 24, 32, 32, true};

struct Entry {
  std::string_view name;
  const Release& release;
  const Shape& shape;
  int64_t bos, eos, pad;  // token ids; the first where the config lists several; -1: none
};

constexpr auto kModels = std::to_array<Entry>({
    {"meta-llama/Llama-2-7b-hf", kLlama2, k7B, 1, 2, -1},
    {"meta-llama/Llama-2-7b-chat-hf", kLlama2, k7B, 1, 2, -1},
    {"meta-llama/Llama-2-13b-hf", kLlama2, k13B, 1, 2, -1},
    {"meta-llama/Llama-2-13b-chat-hf", kLlama2, k13B, 1, 2, -1},
    {"meta-llama/Llama-2-70b-hf", kLlama2, k70B, 1, 2, -1},
    {"meta-llama/Llama-2-70b-chat-hf", kLlama2, k70B, 1, 2, -1},
    {"meta-llama/Meta-Llama-3-8B", kLlama3, k8B, 128000, 128001, -1},
    {"meta-llama/Meta-Llama-3-8B-Instruct", kLlama3, k8B, 128000, 128009, -1},
    {"meta-llama/Meta-Llama-3-70B", kLlama3, k70B, 128000, 128001, -1},
    {"meta-llama/Meta-Llama-3-70B-Instruct", kLlama3, k70B, 128000, 128009, -1},
    {"meta-llama/Llama-3.1-8B", kLlama31, k8B, 128000, 128001, -1},
    {"meta-llama/Llama-3.1-8B-Instruct", kLlama31, k8B, 128000, 128001, -1},
    {"meta-llama/Llama-3.1-70B", kLlama31, k70B, 128000, 128001, -1},
    {"meta-llama/Llama-3.1-70B-Instruct", kLlama31, k70B, 128000, 128001, -1},
    {"meta-llama/Llama-3.1-405B", kLlama31, k405B, 128000, 128001, -1},
    {"meta-llama/Llama-3.1-405B-Instruct", kLlama31, k405B, 128000, 128001, -1},
    {"meta-llama/Llama-3.2-1B", kLlama32, k1B, 128000, 128001, -1},
    {"meta-llama/Llama-3.2-1B-Instruct", kLlama32, k1B, 128000, 128001, -1},
    {"meta-llama/Llama-3.2-3B", kLlama32, k3B, 128000, 128001, -1},
    {"meta-llama/Llama-3.2-3B-Instruct", kLlama32, k3B, 128000, 128001, -1},
    {"meta-llama/Llama-3.3-70B-Instruct", kLlama31, k70B, 128000, 128001, -1},
    {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", kTinyLlama, kTiny, 1, 2, -1},
    {"HuggingFaceTB/SmolLM2-135M", kSmolLm2, k135M, 0, 0, -1},
    {"HuggingFaceTB/SmolLM2-135M-Instruct", kSmolLm2, k135M, 1, 2, 2},
    {"HuggingFaceTB/SmolLM2-360M", kSmolLm2, k360M, 0, 0, -1},
    {"HuggingFaceTB/SmolLM2-360M-Instruct", kSmolLm2, k360M, 1, 2, 2},
    {"HuggingFaceTB/SmolLM2-1.7B", kSmolLm2Large, k1700M, 0, 0, -1},
    {"HuggingFaceTB/SmolLM2-1.7B-Instruct", kSmolLm2Large, k1700M, 1, 2, 2},
    {"mistralai/Mistral-7B-v0.1", kMistral01, k8B, 1, 2, -1},
    {"mistralai/Mistral-7B-Instruct-v0.1", kMistral01, k8B, 1, 2, -1},
    {"mistralai/Mistral-7B-Instruct-v0.2", kMistral02, k8B, 1, 2, -1},
    {"mistralai/Mistral-7B-v0.3", kMistral03, k8B, 1, 2, -1},
    {"mistralai/Mistral-7B-Instruct-v0.3", kMistral03, k8B, 1, 2, -1},
});

// Other names under which the same checkpoint is published.
struct OtherName {
  std::string_view other, name;
};
constexpr auto kOtherNames = std::to_array<OtherName>({
    {"meta-llama/Meta-Llama-3.1-8B", "meta-llama/Llama-3.1-8B"},
    {"meta-llama/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"},
    {"meta-llama/Meta-Llama-3.1-70B", "meta-llama/Llama-3.1-70B"},
    {"meta-llama/Meta-Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"},
    {"meta-llama/Meta-Llama-3.1-405B", "meta-llama/Llama-3.1-405B"},
    {"meta-llama/Meta-Llama-3.1-405B-Instruct", "meta-llama/Llama-3.1-405B-Instruct"},
    {"meta-llama/Llama-3-8B", "meta-llama/Meta-Llama-3-8B"},
    {"meta-llama/Llama-3-8B-Instruct", "meta-llama/Meta-Llama-3-8B-Instruct"},
    {"meta-llama/Llama-3-70B", "meta-llama/Meta-Llama-3-70B"},
    {"meta-llama/Llama-3-70B-Instruct", "meta-llama/Meta-Llama-3-70B-Instruct"},
    {"meta-llama/Llama-2-7b", "meta-llama/Llama-2-7b-hf"},
    {"meta-llama/Llama-2-13b", "meta-llama/Llama-2-13b-hf"},
    {"meta-llama/Llama-2-70b", "meta-llama/Llama-2-70b-hf"},
});

ModelSpec spec_of(const Entry& entry) {
  ModelSpec spec;
  spec.name = entry.name;
  spec.architecture = entry.release.architecture;
  spec.family = entry.release.family;
  spec.hidden_size = entry.shape.hidden_size;
  spec.intermediate_size = entry.shape.intermediate_size;
  spec.vocab_size = entry.release.vocab_size;
  spec.layers = entry.shape.layers;
  spec.heads = entry.shape.heads;
  spec.kv_heads = entry.shape.kv_heads;
  spec.head_size = entry.shape.hidden_size / entry.shape.heads;
  spec.max_position = entry.release.max_position;
  spec.sliding_window = entry.release.sliding_window;
  spec.norm_eps = 1e-5;
  spec.rope.theta = entry.release.rope_theta;
  if (spec.sliding_window > 0) spec.local_layers.assign(static_cast<size_t>(spec.layers), true);
  if (entry.release.rope_factor != 1.0) {
    spec.rope.scaling = RopeScaling::llama3;
    spec.rope.factor = entry.release.rope_factor;
  }
  spec.tied_embeddings = entry.shape.tied;
  spec.dtype = entry.release.dtype;
  spec.bos_token_id = entry.bos;
  spec.eos_token_id = entry.eos;
  spec.pad_token_id = entry.pad;
  return spec;
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

// True if `asked` (lower case) is `name` in full or without its owner.
bool answers_to(std::string_view name, std::string_view asked) {
  return lower(name) == asked || (asked.find('/') == std::string_view::npos && lower(without_owner(name)) == asked);
}

}  // namespace

std::optional<ModelSpec> find_model(std::string_view name) {
  std::string asked = lower(name);
  for (const OtherName& other : kOtherNames) {
    if (answers_to(other.other, asked)) asked = lower(other.name);
  }
  for (const Entry& entry : kModels) {
    if (answers_to(entry.name, asked)) return spec_of(entry);
  }
  return std::nullopt;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kModels) names.emplace_back(entry.name);
  return names;
}

std::string nearest_model_name(std::string_view name) {
  const std::string asked = lower(name.substr(0, 200));
  const bool with_owner = asked.find('/') != std::string::npos;
  std::string_view nearest;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Entry& entry : kModels) {
    const int64_t distance = edit_distance(asked, lower(with_owner ? entry.name : without_owner(entry.name)));
    if (distance < least) {
      least = distance;
      nearest = entry.name;
    }
  }
  return std::string(nearest);
}

ModelSpec resolve_model(const std::string& argument) {
  if (argument.empty())
    throw Error("no model is given", "", "give a checkpoint directory, a config.json or a catalogue name");
  std::error_code error;
  if (std::filesystem::exists(argument, error)) return read_config(argument);
  if (auto spec = find_model(argument)) return *spec;
  throw Error(fmt::format("'{}' is neither a path nor a model of the catalogue", argument), "",
              fmt::format("nearest: {}; `snug models` lists them", nearest_model_name(argument)));
}

}  // namespace snug
