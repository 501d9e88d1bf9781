#pragma once
// Text to ids with the state that this needs: space to work in and the words met often. One Encoder for each thread; they
// share the Tokenizer, which must outlive them.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace snug {

class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer);
  explicit Encoder(const TokenizerParts& parts);
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;
  ~Encoder();

  // As Tokenizer::encode_into.
  void encode(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids) {
    run(text, add_special_tokens, ids, nullptr);
  }

  // As Tokenizer::encode_with_spans.
  void encode_with_spans(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids,
                         std::vector<TextSpan>& spans) {
    run(text, add_special_tokens, ids, &spans);
  }

 private:
  struct State;

  void run(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids, std::vector<TextSpan>* spans);

  std::unique_ptr<State> state_;
};

// The ids of each of `texts`, by up to `threads` threads (at least one). Throws the first Error that a text meets.
std::vector<std::vector<int32_t>> encode_batch(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                                               bool add_special_tokens, int threads);

}  // namespace snug
