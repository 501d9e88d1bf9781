#pragma once
// What loss is taken on: for each assistant message, the bytes of a rendered conversation that a model would have generated.
//
// A template that marks them with {% generation %} is taken at its word, as transformers' return_assistant_tokens_mask does.
// From every other one they are derived, for each message on its own and each end of its span on its own:
//
// 1. By prefixes, as TRL and axolotl do: the span begins where the rendering of the messages before, with generation prompt,
// ends,
//    and ends where the rendering up to and including the message ends, if those renderings are prefixes of the whole one;
//    but no later than the message's turn of a loop, for some templates close the whole text with more.
// 2. Where they are not (templates that drop earlier reasoning, that treat the last message differently, or that refuse a
// part of a
//    conversation) by provenance: every byte of the whole rendering knows in which message's turn of a loop it was written
//    and whether it is that message's own text. What the turn writes before the message's first byte is searched for the
//    generation prompt, or for the part of it that ends where the two part ways; the span begins after it. It ends where the
//    turn does.
//
// A template without generation prompt opens turns with the text that it writes before a plain answer; that is not generated
// either unless it is only space. At its end a span keeps what the template writes after the message's last own byte up to
// and including the first eos_token there; without one all of it but the space at its end. (The first special token would
// not do: between the last call of a tool and the end of the turn several templates write other special tokens, which are
// generated.) Line ends behind that belong to it too, though none is ever generated: TRL, LLaMA-Factory and ms-swift learn
// them, so that losses compare. Other space does not, for it may share a token with the next turn. Space alone is kept: then
// it is the end of the turn.
//
// Where nothing of a message shows in the text though it has content or calls tools, that is an Error: training on the empty
// turn that is left would teach silence. Nothing is ever trained on by default.

#include <functional>
#include <optional>
#include <unordered_map>

#include "chat/chat_template.h"
#include "chat/interpreter.h"

namespace snug::chat {

class SpanFinder {
 public:
  SpanFinder(const Syntax& syntax, std::function<std::tm()> clock, const Conversation& conversation,
             const Variables& special_tokens);

  Rendered render();

 private:
  // The bytes that one turn wrote without interruption.
  struct Region {
    int64_t begin = 0, end = 0;
    int64_t own_begin = -1, own_end = -1;  // first and last of the message's own bytes, -1: none
  };

  // The rendering of the first `count` messages; none where the template refuses them.
  std::optional<std::string> prefix(size_t count, bool generation_prompt) const;
  TextRef run(const std::vector<Value>& messages, bool generation_prompt, bool turns) const;
  bool wants_loss(size_t message) const;
  std::vector<AssistantSpan> marked_spans() const;
  std::vector<Region> regions_of(int32_t message) const;
  std::vector<AssistantSpan> spans_of(int32_t message);
  int64_t begin_of(const Region& region, const std::string& opening, bool certain) const;
  int64_t end_of(int64_t begin, int64_t end, int32_t message) const;
  const std::string& header();
  void refuse_lost(int32_t message) const;

  const Syntax& syntax_;
  std::function<std::tm()> clock_;
  const Conversation& conversation_;
  const Variables& special_tokens_;
  std::string eos_token_;
  std::vector<Value> messages_;
  std::string text_;
  std::vector<Run> runs_;
  std::optional<std::string> header_;
  bool by_prefixes_ = true;
};

}  // namespace snug::chat
