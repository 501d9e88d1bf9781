#include "generate/answer.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "generate/stop_strings.h"
#include "tokenizer/streaming_decoder.h"

namespace snug {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::max(0.0, std::chrono::duration<double>(Clock::now() - start).count());
}

class Writer {
 public:
  Writer(const Tokenizer& tokenizer, const AnswerLimits& limits, const std::function<void(std::string_view)>& sink,
         std::string& text)
      : decoder_(tokenizer), stops_(limits.stop_strings), sink_(sink), text_(text) {}

  void add(int32_t token) { show(stops_.push(decoder_.push(token))); }
  void finish() {
    show(stops_.push(decoder_.finish()));
    show(stops_.finish());
  }
  bool stopped() const { return stops_.stopped(); }

 private:
  void show(const std::string& piece) {
    if (piece.empty()) return;
    text_ += piece;
    sink_(piece);
  }

  StreamingDecoder decoder_;
  StopStrings stops_;
  const std::function<void(std::string_view)>& sink_;
  std::string& text_;
};

}  // namespace

const char* name_of(StopReason reason) {
  constexpr const char* kNames[] = {"eos", "stop", "max_new_tokens", "max_length", "interrupted"};
  return kNames[static_cast<int>(reason)];
}

Answer answer(Session& session, const Tokenizer& tokenizer, std::span<const int32_t> prompt, Sampler& sampler,
              uint64_t stream, const AnswerLimits& limits, const std::function<void(std::string_view)>& sink,
              const std::atomic<int>& stop) {
  constexpr int64_t kReserved = int64_t{1} << 20;
  if (static_cast<int64_t>(prompt.size()) >= session.capacity())
    throw Error("the prompt has " + std::to_string(prompt.size()) + " tokens and leaves no room for an answer", "",
                "max_length is " + std::to_string(session.capacity()));
  Answer result{.prompt_tokens = static_cast<int64_t>(prompt.size()), .tokens = {}, .text = {}};
  result.tokens.reserve(static_cast<size_t>(std::min(limits.max_new_tokens, session.capacity())));
  result.text.reserve(static_cast<size_t>(std::min(kReserved, 16 * limits.max_new_tokens)));
  Writer writer(tokenizer, limits, sink, result.text);

  Clock::time_point start = Clock::now();
  session.feed(prompt.subspan(static_cast<size_t>(session.rewind_to_common(prompt))));
  while (true) {
    const int32_t token = sampler.pick(session.logits(), stream, result.tokens.size());
    result.tokens.push_back(token);
    if (result.tokens.size() == 1) {
      result.prompt_seconds = seconds_since(start);
      start = Clock::now();
    }
    const auto& ends = limits.stop_tokens;
    const bool ended = std::find(ends.begin(), ends.end(), token) != ends.end();
    if (!ended) writer.add(token);
    const auto ends_by = [&](bool condition, StopReason reason) {
      if (condition) result.reason = reason;
      return condition;
    };
    if (ends_by(ended, StopReason::end_of_text) || ends_by(writer.stopped(), StopReason::stop_string) ||
        ends_by(static_cast<int64_t>(result.tokens.size()) >= limits.max_new_tokens, StopReason::max_new_tokens) ||
        ends_by(session.length() + 1 >= session.capacity(), StopReason::max_length) ||
        ends_by(stop.load() != 0, StopReason::interrupted))
      break;
    session.feed(std::span(&token, 1));
  }
  result.seconds = seconds_since(start);
  writer.finish();
  return result;
}

}  // namespace snug
