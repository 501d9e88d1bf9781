#include "tokenizer/encoder.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer_parts.h"

namespace snug {
namespace {

constexpr size_t kMaxText = size_t{1} << 30;

}  // namespace

struct Encoder::State {
  explicit State(const TokenizerParts& given) : parts(given) {}

  void encode_part(const TextPiece& raw);
  void push(int32_t id, TextOrigin origin) const;

  const TokenizerParts& parts;
  Bpe::Scratch words;
  Normalizer::Scratch normalized;
  std::vector<Bpe::Part> word_parts;
  std::string repaired;
  std::vector<uint32_t> repaired_from;

  // Of the text at hand.
  bool tracked = false;
  std::vector<int32_t>* ids = nullptr;
  std::vector<TextSpan>* spans = nullptr;
};

void Encoder::State::push(int32_t id, TextOrigin origin) const {
  ids->push_back(id);
  if (spans != nullptr) spans->push_back({origin.begin, origin.end});
}

// A part of the text without raw added tokens.
void Encoder::State::encode_part(const TextPiece& raw) {
  const Pretokenizer::Sink word = [this](const TextPiece& piece) {
    if (spans == nullptr) return parts.bpe.encode(piece.text, words, *ids, nullptr);
    word_parts.clear();
    parts.bpe.encode(piece.text, words, *ids, &word_parts);
    for (const Bpe::Part& part : word_parts) {
      const TextOrigin origin = piece.origin(part.begin, part.end);
      spans->push_back({origin.begin, origin.end});
    }
  };
  const TextPiece piece = parts.normalizer.apply(raw, tracked, normalized);
  parts.normalized_tokens.split(piece.text, [&](size_t begin, size_t end, int32_t id) {
    if (id < 0) return parts.pretokenizer.cut(piece.part(begin, end), tracked, word);
    push(id, spans != nullptr ? piece.origin(begin, end) : TextOrigin{});
  });
}

Encoder::Encoder(const TokenizerParts& parts) : state_(std::make_unique<State>(parts)) {}
Encoder::Encoder(const Tokenizer& tokenizer) : Encoder(*tokenizer.parts_) {}
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

void Encoder::run(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids, std::vector<TextSpan>* spans) {
  if (text.size() > kMaxText) throw Error("a text is larger than 1 GiB", {}, "split it");
  State& state = *state_;
  const TokenizerParts& parts = state.parts;
  const bool damaged = !is_utf8(text);
  if (damaged) text = state.repaired = utf8_lossy(text, state.repaired_from);
  state.tracked = spans != nullptr || parts.needs_origins;
  state.ids = &ids;
  state.spans = spans;

  if (add_special_tokens) {
    for (const int32_t id : parts.prefix) state.push(id, {0, 0});
  }
  const size_t first_span = spans != nullptr ? spans->size() : 0;
  parts.raw_tokens.split(text, [&](size_t begin, size_t end, int32_t id) {
    const TextPiece piece = TextPiece{text}.part(begin, end);
    if (id < 0) return state.encode_part(piece);
    state.push(id, {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  });
  if (damaged && spans != nullptr) {
    for (size_t i = first_span; i < spans->size(); ++i) {
      TextSpan& span = (*spans)[i];
      span = {state.repaired_from[static_cast<size_t>(span.begin)], state.repaired_from[static_cast<size_t>(span.end)]};
    }
  }
  if (add_special_tokens) {
    for (const int32_t id : parts.suffix) state.push(id, {0, 0});
  }
}

std::vector<std::vector<int32_t>> encode_batch(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                                               bool add_special_tokens, int threads) {
  std::vector<std::vector<int32_t>> results(texts.size());
  std::vector<std::exception_ptr> failures(texts.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    Encoder encoder(tokenizer);
    for (size_t i = next++; i < texts.size(); i = next++) {
      try {
        encoder.encode(texts[i], add_special_tokens, results[i]);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> helpers;
  const auto most = std::min<size_t>(texts.size(), static_cast<size_t>(std::max(threads, 1)));
  for (size_t i = 1; i < most; ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return results;
}

}  // namespace snug
