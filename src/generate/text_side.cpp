#include "generate/text_side.h"

#include "base/error.h"
#include "formats/file.h"
#include "model/json.h"

namespace snug {

namespace fs = std::filesystem;
namespace dom = simdjson::dom;

namespace {

constexpr int64_t kMostBytes = int64_t{16} << 20;

std::optional<std::string> from_json(const fs::path& file) {
  const JsonDocument document(read_text_file(file, kMostBytes), file.string());
  dom::element found;
  if (document.root_object()["chat_template"].get(found) != simdjson::SUCCESS || found.is_null()) return std::nullopt;
  if (!found.is_array()) return json_string("chat_template", found, file.string());
  for (const dom::element one : json_array("chat_template", found, file.string())) {
    const dom::object entry = json_object("chat_template", one, file.string());
    dom::element name, source;
    if (entry["name"].get(name) == simdjson::SUCCESS && entry["template"].get(source) == simdjson::SUCCESS &&
        json_string("name", name, file.string()) == "default")
      return json_string("template", source, file.string());
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> chat_template_of(const fs::path& model) {
  if (is_there(model / "chat_template.jinja")) return read_text_file(model / "chat_template.jinja", kMostBytes);
  for (const char* name : {"chat_template.json", "tokenizer_config.json"})
    if (is_there(model / name))
      if (auto source = from_json(model / name)) return source;
  return std::nullopt;
}

TextSide TextSide::load(const fs::path& model) {
  TextSide side(Tokenizer::load(model), model);
  if (auto source = chat_template_of(model))
    side.template_ = chat::ChatTemplate::parse(*std::move(source), (model / "chat_template").string());
  for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
    if (const auto token = side.tokenizer_.special_token(name)) side.variables_.emplace_back(name, *token);
  return side;
}

std::vector<int32_t> TextSide::prompt(const std::string& text) const {
  std::vector<int32_t> ids = tokenizer_.encode(text, true);
  if (ids.empty())
    if (const auto first = tokenizer_.bos_id()) ids.push_back(*first);
  if (ids.empty()) throw Error("the prompt has no tokens", "--prompt", "give it a text");
  return ids;
}

std::vector<int32_t> TextSide::chat(const chat::Value& messages) const {
  if (!template_) throw Error("the model has no chat template", model_.string(), "give --prompt, for text without turns");
  const chat::Conversation conversation{.messages = messages, .tools = {}, .extra = {}, .add_generation_prompt = true};
  std::vector<int32_t> ids = tokenizer_.encode(template_->render_text(conversation, variables_), false);
  if (ids.empty()) throw Error("the chat template makes no text of this conversation", model_.string());
  return ids;
}

chat::Value user_message(const std::string& text) {
  chat::Dict message;
  message.set("role", chat::Value::text("user"));
  message.set("content", chat::Value::text(text));
  return chat::Value::list({chat::Value::dict(std::move(message))});
}

}  // namespace snug
