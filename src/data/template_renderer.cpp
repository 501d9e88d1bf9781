#include "data/template_renderer.h"

#include <array>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "chat/chat_template.h"

namespace snug {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostTemplateBytes = int64_t{16} << 20;
constexpr const char* kNone = "name one: chat_template: chatml, or a file";

// ChatML (OpenAI, 2023), which Qwen, SmolLM and others speak. The end mark is learned, with the line end behind it, as
// chat/spans.h has it.
constexpr const char* kChatMl =
    "{%- for message in messages -%}\n"
    "{{- '<|im_start|>' + message['role'] + '\\n' -}}\n"
    "{%- if message['role'] == 'assistant' -%}\n"
    "{%- generation -%}{{- message['content'] + '<|im_end|>\\n' -}}{%- endgeneration -%}\n"
    "{%- else -%}\n"
    "{{- message['content'] + '<|im_end|>\\n' -}}\n"
    "{%- endif -%}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}\n";

std::optional<std::string> text_of(const fs::path& file) {
  if (!file_exists(file)) return std::nullopt;
  return read_text(file, kMostTemplateBytes, 0, kNone);
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

chat::ChatTemplate parse(chat::TemplateSource source) {
  return chat::ChatTemplate::parse(std::move(source.source), std::move(source.where));
}

}  // namespace

chat::TemplateSource find_chat_template(const DatasetRequest& request, bool with_tools) {
  if (request.chat_template == "chatml") return {kChatMl, "chatml"};
  if (!request.chat_template.empty())
    return {read_text(request.chat_template, kMostTemplateBytes, 0, kNone), request.chat_template};
  if (!request.model.empty()) {
    const chat::CheckpointTexts texts = {.tokenizer_config = text_of(request.model / "tokenizer_config.json"),
                                         .special_tokens_map = std::nullopt,
                                         .template_jinja = text_of(request.model / "chat_template.jinja"),
                                         .template_json = text_of(request.model / "chat_template.json")};
    if (auto found = chat::choose_template(texts, request.model.string(), with_tools)) return *std::move(found);
  }
  throw Error("the rows are conversations and the model has no chat template", request.model.string(), kNone);
}

ChatRenderer make_template_renderer(const DatasetRequest& request, const Tokenizer& tokenizer) {
  // A checkpoint may have a template of its own for conversations with tools.
  const auto plain = std::make_shared<const chat::ChatTemplate>(parse(find_chat_template(request, false)));
  const auto with_tools = std::make_shared<const chat::ChatTemplate>(parse(find_chat_template(request, true)));
  const bool spans = request.assistant_only_loss;
  return [plain, with_tools, spans, tokens = special_tokens_of(tokenizer)](const Chat& chat) {
    const chat::ChatTemplate& chosen = chat.tools.is_null() ? *plain : *with_tools;
    const chat::Value extra = chat.extra.is_null() ? chat::Value() : value_of(chat.extra);
    const chat::Conversation conversation{value_of(chat.messages), value_of(chat.tools), extra, false};
    RenderedChat result;
    if (!spans) {
      result.text = chosen.render_text(conversation, tokens);
      return result;
    }
    chat::Rendered rendered = chosen.render(conversation, tokens);
    result.text = std::move(rendered.text);
    for (const chat::AssistantSpan& span : rendered.assistant)
      result.assistant.push_back({span.begin, span.end, span.message});
    return result;
  };
}

}  // namespace snug
