#include "cli/support_workspace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

namespace snug::cli_tests {

namespace fs = std::filesystem;

namespace {

constexpr int kEndOfText = 256;

std::string utf8(int codepoint) {
  if (codepoint < 0x80) return {static_cast<char>(codepoint)};
  return {static_cast<char>(0xC0 | (codepoint >> 6)), static_cast<char>(0x80 | (codepoint & 0x3F))};
}

// A byte-level BPE of 256 bytes and an end of text, without merges. Bytes have the printable names that GPT-2 gave them.
Json tokenizer_json() {
  Json vocabulary;
  int unprintable = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    vocabulary[utf8(printable ? byte : 256 + unprintable++)] = byte;
  }
  vocabulary["</s>"] = kEndOfText;
  return {{"version", "1.0"},
          {"added_tokens", Json::array({{{"id", kEndOfText}, {"content", "</s>"}, {"special", true}}})},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
}

// A small Llama with `changes`; or, where they name a model_type, these alone.
Json config_json(const Json& changes) {
  if (changes.contains("model_type")) {
    Json config = changes;
    config.update({{"eos_token_id", kEndOfText}, {"bos_token_id", kEndOfText}, {"pad_token_id", nullptr}});
    return config;
  }
  Json config = {{"architectures", {"LlamaForCausalLM"}},
                 {"model_type", "llama"},
                 {"hidden_size", 32},
                 {"intermediate_size", 64},
                 {"num_hidden_layers", 3},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"vocab_size", 257},
                 {"eos_token_id", kEndOfText},
                 {"bos_token_id", kEndOfText},
                 {"max_position_embeddings", 256},
                 {"rms_norm_eps", 1e-5},
                 {"hidden_act", "silu"},
                 {"initializer_range", 0.1},
                 {"tie_word_embeddings", false}};
  config.update(changes);
  return config;
}

}  // namespace

Workspace::Workspace(const Json& config, const fs::path& parent) {
  std::string pattern = (parent / "snug-cli-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = pattern;
  fs::create_directory(outline());
  put(outline() / "config.json", config_json(config).dump(2));
  put(outline() / "tokenizer.json", tokenizer_json().dump());
  put(outline() / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  put(data(), text_rows(80, 1));
  const ProcessResult made = run_program({"init", (outline() / "config.json").string(), "--output-dir", model().string(),
                                          "--tokenizer", outline().string(), "--seed", "7"});
  if (made.exit_code != 0) throw std::runtime_error("snug init: " + made.error);
}

Workspace::~Workspace() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> Workspace::train(const fs::path& output, const std::vector<std::string>& more) const {
  return joined({"train", model().string(), "--data", data().string(), "--output-dir", output.string(), "--threads", "2"},
                more);
}

std::string text_rows(int rows, unsigned seed) {
  static constexpr const char* kWords[] = {"the", "cat",   "sat",   "on",    "a",  "mat", "and",
                                           "saw", "seven", "small", "boats", "go", "by"};
  std::minstd_rand random(seed);  // the same numbers everywhere
  std::string text;
  for (int row = 0; row < rows; ++row) {
    text += R"({"text": ")";
    const auto words = 3 + random() % 30;
    for (unsigned word = 0; word < words; ++word)
      text.append(word == 0 ? "" : " ").append(kWords[random() % std::size(kWords)]);
    text += "\"}\n";
  }
  return text;
}

std::string contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error("no " + file.string());
  std::string bytes(fs::file_size(file), '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(stream.gcount()));
  return bytes;
}

void put(const fs::path& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

std::vector<Json> read_metrics(const fs::path& output) {
  std::ifstream file(output / "metrics.jsonl");
  std::vector<Json> list;
  for (std::string line; std::getline(file, line);) list.push_back(Json::parse(line));
  return list;
}

std::vector<std::string> step_lines(const fs::path& output) {
  std::vector<std::string> list;
  for (const Json& line : read_metrics(output)) {
    if (line.contains("eval_loss"))
      list.push_back(fmt::format("step {}: eval_loss {}", line["step"].dump(), line["eval_loss"].dump()));
    else if (line.contains("step"))
      list.push_back(fmt::format("step {}: loss {}, grad_norm {}, learning_rate {}", line["step"].dump(),
                                 line["loss"].dump(), line["grad_norm"].dump(), line["learning_rate"].dump()));
  }
  return list;
}

std::vector<std::string> unfinished(const fs::path& directory) {
  std::vector<std::string> list;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(directory, ignored))
    if (entry.path().filename().string().find(".tmp") != std::string::npos) list.push_back(entry.path().string());
  return list;
}

int64_t newest_step(const fs::path& output) {
  int64_t newest = -1;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(output, ignored)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view kPrefix = "checkpoint-";
    int64_t step = -1;
    if (!name.starts_with(kPrefix)) continue;
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size()) newest = std::max(newest, step);
  }
  return newest;
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace snug::cli_tests
