#include "formats/model_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace snug {

namespace {

constexpr std::string_view kMark = "<!-- Written by snug. Remove this line, and snug will leave the file alone. -->";

// A scalar of YAML: bare where nothing in it means something, in double quotes otherwise.
std::string yaml_scalar(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '_' || c == '.' || c == '-';
  };
  if (!text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0 &&
      std::all_of(text.begin(), text.end(), plain))
    return text;
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') quoted += '\\';
    if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// Text within a line of Markdown: names come from outside.
std::string tame(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '`' || c == '<' || c == '*' || c == '[') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

std::string code(const std::string& text) {
  std::string out = "`";
  for (const char c : text) out += c == '`' || static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return out + "`";
}

std::string in_python(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

std::string in_shell(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("/_.-:").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  return out + "'";
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.4f}", value) : "not a number"; }

std::string use_of(const TrainingCard& card) {
  const std::string directory = in_python(card.directory);
  if (!card.adapter)
    return fmt::format(
        "```python\nfrom transformers import AutoModelForCausalLM\n\nmodel = "
        "AutoModelForCausalLM.from_pretrained({})\n```\n\n"
        "```sh\nsnug export {} --gguf model.gguf    # for llama.cpp\n```\n",
        directory, in_shell(card.directory));
  return fmt::format(
      "```python\nfrom peft import PeftModel\nfrom transformers import AutoModelForCausalLM\n\n"
      "model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained({0}), {1})\n```\n\n"
      "```sh\nsnug merge {2} --model {3} --output-dir merged         # a checkpoint of its own\n"
      "snug export {2} --model {3} --gguf adapter.gguf       # for llama.cpp\n"
      "snug train {3} --adapter-name-or-path {2} --data MORE.jsonl\n```\n",
      in_python(card.base_model), directory, in_shell(card.directory), in_shell(card.base_model));
}

std::string evaluations_of(const TrainingCard& card) {
  if (card.evaluations.empty()) return {};
  std::string text = "\n| after step | evaluation loss | tokens right | documents right |\n|---|---|---|---|\n";
  for (const CardEvaluation& e : card.evaluations)
    text += fmt::format("| {} | {} | {:.1f} % | {:.1f} % |\n", e.step, number(e.loss), 100.0 * e.token_accuracy,
                        100.0 * e.exact);
  return text;
}

}  // namespace

std::string training_model_card(const TrainingCard& card) {
  std::string text = "---\n";
  text += fmt::format("base_model: {}\n", yaml_scalar(card.base_model));
  text += fmt::format("library_name: {}\n", card.adapter ? "peft" : "transformers");
  text += "pipeline_tag: text-generation\ntags:\n";
  if (card.adapter)
    text += fmt::format("- {}\n- lora\n- transformers\n", yaml_scalar("base_model:adapter:" + card.base_model));
  text += "- snug\n---\n\n";
  text += fmt::format("{}\n\n# {}\n\n", kMark, card.adapter ? "LoRA adapter" : "Fine-tuned model");
  text += fmt::format("{} trained from {} with snug {}: {} of {} parameters.\n\n## Use\n\n",
                      card.adapter ? "An adapter" : "A model", code(card.base_model), card.version,
                      card.trainable_parameters, card.total_parameters);
  text += use_of(card);
  text += fmt::format(
      "\n## Training\n\n"
      "| | |\n|---|---|\n| data | {}: {} rows, {} tokens; {} sequences of {} |\n| steps | {} |\n| mean training loss | {} "
      "|\n"
      "| planned peak memory | {} bytes |\n| measured peak memory | {} bytes |\n",
      tame(card.data), card.rows, card.tokens, card.sequences, card.seq_len, card.steps, number(card.train_loss),
      card.planned_peak_bytes, card.measured_peak_bytes);
  text += evaluations_of(card);
  text += "\nKeys of the recipe that differ from their defaults:\n\n| key | value |\n|---|---|\n";
  for (const auto& [key, value] : card.recipe) text += fmt::format("| {} | {} |\n", code(key), tame(value));
  return text;
}

std::string merged_model_card(const std::filesystem::path& base, const std::vector<std::filesystem::path>& adapters) {
  std::string text =
      fmt::format("---\nbase_model: {}\nlibrary_name: transformers\npipeline_tag: text-generation\ntags:\n- snug\n---\n\n",
                  yaml_scalar(base.string()));
  text += fmt::format("{}\n\n# Merged model\n\n{}", kMark, code(base.string()));
  for (const auto& adapter : adapters) text += " + " + code(adapter.string());
  return text + ", merged with `snug merge`. Licence and limits are those of the parts.\n";
}

bool is_own_card(const std::string& text) { return text.find(kMark) != std::string::npos; }

}  // namespace snug
