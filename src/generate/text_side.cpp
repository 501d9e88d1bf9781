#include "generate/text_side.h"

#include "base/error.h"
#include "chat/checkpoint_template.h"
#include "formats/file.h"

namespace snug {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kMostBytes = int64_t{16} << 20;

std::optional<std::string> text_of(const fs::path& file) {
  if (!is_there(file)) return std::nullopt;
  return read_text_file(file, kMostBytes);
}

}  // namespace

TextSide TextSide::load(const fs::path& model) {
  TextSide side(Tokenizer::load(model), model);
  const chat::CheckpointTexts texts = {.tokenizer_config = text_of(model / "tokenizer_config.json"),
                                       .special_tokens_map = {},
                                       .template_jinja = text_of(model / "chat_template.jinja"),
                                       .template_json = text_of(model / "chat_template.json")};
  if (auto found = chat::choose_template(texts, model.string(), false))
    side.template_ = chat::ChatTemplate::parse(std::move(found->source), std::move(found->where));
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
