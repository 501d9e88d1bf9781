#pragma once
// Normalization: what is done to a text before it is cut into words. A chain of steps, as tokenizer.json lists them. It
// knows nothing of JSON or ids.

#include <array>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizer/aligned_text.h"
#include "tokenizer/normal_forms.h"
#include "tokenizer/pattern.h"

namespace snug {

class Normalizer {
 public:
  struct Prepend {
    std::string text;
  };
  struct Replace {
    Pattern pattern;
    std::string content;
  };
  struct Strip {
    bool left, right;
  };
  enum class Simple : uint8_t { lowercase, strip_accents, nmt, byte_level };
  using Step = std::variant<NormalForm, Prepend, Replace, Strip, Simple>;

  void add(Step&& step);
  bool empty() const { return steps_.empty(); }

  // Two texts that a piece moves between on its way; one for each thread.
  using Scratch = std::array<AlignedText, 2>;

  // `piece` after all steps, in `piece` itself or in `scratch`, with its origins if `tracked`.
  TextPiece apply(TextPiece piece, bool tracked, Scratch& scratch) const;

 private:
  std::vector<Step> steps_;
};

// `piece` with ' ' replaced by `content`, in `to`.
void replace_spaces(const TextPiece& piece, std::string_view content, AlignedText& to);

// `piece` (not empty) after `text`, which stands for what the first character of `piece` stands for, in `to`.
void prepend(const TextPiece& piece, std::string_view text, AlignedText& to);

// The bytes of `piece` as characters of the byte alphabet, in `to`.
void spell_bytes(const TextPiece& piece, AlignedText& to);

}  // namespace snug
