#include "data/example_encoder.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "data/dataset_files.h"

namespace snug {
namespace {

int32_t eos_of(const DatasetRequest& request, const Tokenizer& tokenizer) {
  const auto eos = request.eos_id ? request.eos_id : tokenizer.eos_id();
  if (!eos) throw Error("the end-of-text token is not known", {}, "name eos_token in tokenizer_config.json");
  if (*eos < 0) throw Error("the end-of-text token is " + std::to_string(*eos), {}, "give a token id");
  return *eos;
}

// Where the template does not tell of which message a span is, all of the assistant's must be learned.
bool is_learned(const Chat& chat, int64_t message) {
  if (message >= 0) return message < static_cast<int64_t>(chat.learned.size()) && chat.learned[static_cast<size_t>(message)];
  for (size_t i = 0; i < chat.learned.size(); ++i) {
    const JsonValue* role = (*chat.messages.list())[i].find("role");
    if (chat.learned[i] || role == nullptr || role->string() == nullptr || *role->string() != "assistant") continue;
    throw Error("some messages are not to be learned, and the chat template does not tell which is which", {},
                "use another chat template, or leave those messages out");
  }
  return true;
}

}  // namespace

ExampleEncoder::ExampleEncoder(const DatasetRequest& request, const Tokenizer& tokenizer, const ChatRenderer& renderer)
    : request_(request), tokenizer_(tokenizer), renderer_(renderer), eos_(eos_of(request, tokenizer)) {}

void ExampleEncoder::encode(const Example& example, EncodedRow& row) {
  row.tokens.clear();
  row.sizes.clear();
  row.cut = row.truncated = row.dropped = false;
  ids_.clear();
  if (example.text) {
    text(example, row);
  } else if (example.chat) {
    chat(*example.chat, row);
  } else {
    pair(example, row);
  }
}

// Adds eos unless what starts at token `begin` already ends with it.
void ExampleEncoder::end_with_eos(int64_t begin) {
  if (static_cast<int64_t>(ids_.size()) == begin || ids_.back() != eos_) ids_.push_back(eos_);
}

void ExampleEncoder::text(const Example& example, EncodedRow& row) {
  tokenizer_.encode(*example.text, true, ids_);
  end_with_eos(0);
  check_vocabulary();
  row.length = static_cast<int64_t>(ids_.size());
  row.cut = row.length > request_.seq_len;
  for (const int32_t id : ids_) row.tokens.push_back(static_cast<uint32_t>(id) | kLabelBit);
  for (int64_t left = row.length; left > 0; left -= request_.seq_len)
    row.sizes.push_back(static_cast<int32_t>(std::min(left, request_.seq_len)));
}

void ExampleEncoder::pair(const Example& example, EncodedRow& row) {
  tokenizer_.encode(example.prompt, true, ids_);
  const auto prompt_tokens = static_cast<int64_t>(ids_.size());
  tokenizer_.encode(example.completion, false, ids_);
  end_with_eos(prompt_tokens);
  check_vocabulary();
  row.length = static_cast<int64_t>(ids_.size());
  row.dropped = prompt_tokens >= request_.seq_len;
  if (row.dropped) return;
  const int64_t first_label = request_.completion_only_loss ? prompt_tokens : 0;
  take_front(row, [&](int64_t i) { return i >= first_label; });
}

void ExampleEncoder::chat(const Chat& chat, EncodedRow& row) {
  const RenderedChat rendered = renderer_(chat);
  spans_.clear();
  tokenizer_.encode_with_spans(rendered.text, false, ids_, spans_);
  check_vocabulary();
  row.length = static_cast<int64_t>(ids_.size());
  mark_learned(chat, rendered);
  if (std::ranges::find(learned_, true) == learned_.end())
    throw Error("the chat template marks nothing of this conversation as the assistant's", {},
                "use a template with {% generation %} or name another one");
  const auto kept = std::min(row.length, request_.seq_len);
  row.dropped = std::ranges::find(learned_.begin() + std::min<int64_t>(1, kept), learned_.begin() + kept, true) ==
                learned_.begin() + kept;
  if (row.dropped) return;
  take_front(row, [&](int64_t i) { return learned_[static_cast<size_t>(i)]; });
}

// A token is a label if any of its bytes lies in a learned message of the assistant; tokens and spans both ascend. This is
// the rule of transformers' apply_chat_template(return_assistant_tokens_mask=True): all tokens from that of a span's first
// character to that of its last.
void ExampleEncoder::mark_learned(const Chat& chat, const RenderedChat& rendered) {
  learned_.assign(ids_.size(), !request_.assistant_only_loss);
  size_t from = 0;
  for (const RenderedChat::Span& span : rendered.assistant) {
    if (span.begin >= span.end || !is_learned(chat, span.message)) continue;
    while (from < spans_.size() && spans_[from].end <= span.begin) ++from;
    for (size_t i = from; i < spans_.size() && spans_[i].begin < span.end; ++i)
      learned_[i] = learned_[i] || spans_[i].begin < spans_[i].end;
  }
}

void ExampleEncoder::check_vocabulary() const {
  for (const int32_t id : ids_) {
    if (request_.vocab_size == 0 || id < request_.vocab_size) continue;
    throw Error(
        "token id " + std::to_string(id) + " is beyond the model's vocabulary of " + std::to_string(request_.vocab_size), {},
        "use the tokenizer that belongs to the model");
  }
}

// Takes over ids_, cut off on the right.
template <typename IsLabel>
void ExampleEncoder::take_front(EncodedRow& row, const IsLabel& is_label) const {
  const int64_t kept = std::min(row.length, request_.seq_len);
  row.truncated = kept < row.length;
  for (int64_t i = 0; i < kept; ++i)
    row.tokens.push_back(static_cast<uint32_t>(ids_[static_cast<size_t>(i)]) | (is_label(i) ? kLabelBit : 0U));
  row.sizes.push_back(static_cast<int32_t>(kept));
}

}  // namespace snug
