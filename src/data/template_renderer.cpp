#include "data/template_renderer.h"

#include <simdjson.h>

#include <array>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "chat/chat_template.h"

namespace snug {
namespace {

namespace fs = std::filesystem;
namespace dom = simdjson::dom;

constexpr int64_t kMostBytes = int64_t{16} << 20;
constexpr const char* kNone = "name one: chat_template: chatml, or a file";

// ChatML (OpenAI, 2023), which Qwen, SmolLM and others speak. The end mark is learned, the line end behind it is not.
constexpr const char* kChatMl =
    "{%- for message in messages -%}\n"
    "{{- '<|im_start|>' + message['role'] + '\\n' -}}\n"
    "{%- if message['role'] == 'assistant' -%}\n"
    "{%- generation -%}{{- message['content'] + '<|im_end|>' -}}{%- endgeneration -%}\n"
    "{%- else -%}\n"
    "{{- message['content'] + '<|im_end|>' -}}\n"
    "{%- endif -%}\n"
    "{{- '\\n' -}}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}\n";

TemplateSource from_file(const fs::path& file) { return {read_text(file, kMostBytes, 0, kNone), file.string()}; }

// `chat_template` of tokenizer_config.json: a string, or a list of {name, template} of which one is "default".
std::optional<TemplateSource> from_config(const fs::path& file) {
  if (!file_exists(file)) return std::nullopt;
  const std::string text = read_text(file, kMostBytes, simdjson::SIMDJSON_PADDING, kNone);
  dom::parser parser;
  dom::element root;
  if (parser.parse(text).get(root) != simdjson::SUCCESS) throw Error("is not valid JSON", file.string(), "fetch it anew");
  const std::string where = file.string() + ": chat_template";
  dom::element found;
  if (root["chat_template"].get(found) != simdjson::SUCCESS || found.is_null()) return std::nullopt;
  std::string_view source;
  if (found.get(source) == simdjson::SUCCESS) return TemplateSource{std::string(source), where};
  dom::array named;
  if (found.get(named) != simdjson::SUCCESS) throw Error("should be a string", where, kNone);
  for (const dom::element entry : named) {
    std::string_view name;
    if (entry["name"].get(name) == simdjson::SUCCESS && name == "default" &&
        entry["template"].get(source) == simdjson::SUCCESS) {
      return TemplateSource{std::string(source), where};
    }
  }
  throw Error(R"(none of the templates is named "default")", where, kNone);
}

chat::Value value_of(const JsonValue& value) {
  if (value.boolean() != nullptr) return chat::Value::boolean(*value.boolean());
  if (value.integer() != nullptr) return chat::Value::integer(*value.integer());
  if (value.number() != nullptr) return chat::Value::real(*value.number());
  if (value.string() != nullptr) return chat::Value::text(*value.string());
  if (value.list() != nullptr) {
    std::vector<chat::Value> items;
    for (const JsonValue& item : *value.list()) items.push_back(value_of(item));
    return chat::Value::list(std::move(items));
  }
  if (value.object() != nullptr) {
    chat::Dict entries;
    for (const JsonMember& member : *value.object()) entries.set(member.name, value_of(member.value));
    return chat::Value::dict(std::move(entries));
  }
  return chat::Value::none();
}

chat::Variables special_tokens_of(const Tokenizer& tokenizer) {
  constexpr std::array<std::string_view, 7> kNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                      "pad_token", "cls_token", "mask_token"};
  chat::Variables variables;
  for (const std::string_view name : kNames)
    if (const auto text = tokenizer.special_token(name)) variables.emplace_back(name, *text);
  return variables;
}

}  // namespace

TemplateSource find_chat_template(const DatasetRequest& request) {
  if (request.chat_template == "chatml") return {kChatMl, "chatml"};
  if (!request.chat_template.empty()) return from_file(request.chat_template);
  if (!request.model.empty()) {
    const fs::path file = request.model / "chat_template.jinja";
    if (file_exists(file)) return from_file(file);
    for (const char* name : {"chat_template.json", "tokenizer_config.json"})
      if (auto found = from_config(request.model / name)) return *std::move(found);
  }
  throw Error("the rows are conversations and the model has no chat template", request.model.string(), kNone);
}

ChatRenderer make_template_renderer(const DatasetRequest& request, const Tokenizer& tokenizer) {
  TemplateSource source = find_chat_template(request);
  const auto parsed =
      std::make_shared<const chat::ChatTemplate>(chat::ChatTemplate::parse(std::move(source.text), std::move(source.where)));
  const bool spans = request.assistant_only_loss;
  return [parsed, spans, tokens = special_tokens_of(tokenizer)](const Chat& chat) {
    const chat::Conversation conversation{value_of(chat.messages), value_of(chat.tools), {}, false};
    RenderedChat result;
    if (!spans) {
      result.text = parsed->render_text(conversation, tokens);
      return result;
    }
    chat::Rendered rendered = parsed->render(conversation, tokens);
    result.text = std::move(rendered.text);
    for (const chat::AssistantSpan& span : rendered.assistant)
      result.assistant.push_back({span.begin, span.end, span.message});
    return result;
  };
}

}  // namespace snug
