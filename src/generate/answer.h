#pragma once
// One answer: a prompt is fed, then token after token is drawn and fed until something ends it. The text goes to a sink as
// it becomes complete.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "generate/sampler.h"
#include "generate/session.h"
#include "tokenizer/tokenizer.h"

namespace snug {

enum class StopReason : uint8_t { end_of_text, stop_string, max_new_tokens, max_length, interrupted };
const char* name_of(StopReason reason);  // "eos", "stop", "max_new_tokens", "max_length", "interrupted"

struct AnswerLimits {
  int64_t max_new_tokens = 256;
  std::vector<int32_t> stop_tokens;
  std::vector<std::string> stop_strings;  // an answer ends before them
};

struct Answer {
  int64_t prompt_tokens = 0;
  std::vector<int32_t> tokens;  // an end token included
  std::string text;             // without special tokens and without the stop string
  StopReason reason = StopReason::max_new_tokens;
  double prompt_seconds = 0, seconds = 0;  // until the first token was drawn; from then on

  // Of the tokens after the first.
  double tokens_per_second() const {
    return seconds > 0 && tokens.size() > 1 ? static_cast<double>(tokens.size() - 1) / seconds : 0.0;
  }
};

// Continues `prompt`, of which the session may hold the beginning already. `stream`: which answer of a run, for its random
// numbers. Ends early when `stop` becomes nonzero. Throws Error if the prompt leaves no room for an answer.
Answer answer(Session& session, const Tokenizer& tokenizer, std::span<const int32_t> prompt, Sampler& sampler,
              uint64_t stream, const AnswerLimits& limits, const std::function<void(std::string_view)>& sink,
              const std::atomic<int>& stop);

}  // namespace snug
