#pragma once
// Pre-tokenization: a text is cut into the words within which BPE merges. A chain of steps, as tokenizer.json lists them. It
// knows nothing of JSON or ids.

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "tokenizer/aligned_text.h"
#include "tokenizer/pattern.h"

namespace snug {

// What becomes of a match when a text is split (names as in tokenizer.json).
enum class SplitBehavior : uint8_t { isolated, removed, merged_with_previous, merged_with_next, contiguous };

enum class PrependScheme : uint8_t { first, always, never };

class Pretokenizer {
 public:
  struct Split {  // cuts every piece at the matches, or (inverted) at what lies between them
    Pattern pattern;
    SplitBehavior behavior;
    bool inverted = false;
  };
  struct PrefixSpace {};  // every piece that does not start with a space gets one
  struct SpellBytes {};   // bytes become characters of the byte alphabet
  struct Metaspace {      // spaces become `replacement`, one is put before, and pieces end before each
    std::string replacement;
    PrependScheme scheme;
    bool split;
  };
  struct FixedLength {  // pieces of so many characters
    int64_t characters;
  };
  using Step = std::variant<Split, PrefixSpace, SpellBytes, Metaspace, FixedLength>;
  using Sink = std::function<void(const TextPiece&)>;

  void add(Step&& step);

  // True if the words come as raw bytes that stand for characters of the byte alphabet: the last step spells bytes.
  bool ends_in_bytes() const { return !steps_.empty() && std::holds_alternative<SpellBytes>(steps_.back()); }

  // Leaves out that last step, so that words do come as raw bytes.
  void keep_raw_bytes() { steps_.pop_back(); }

  // True if a step asks where in the original a piece begins, after steps that may have moved it.
  bool asks_for_origins(bool moved) const;

  // Calls `word` for every word of `piece`, in order; no word is empty. Origins are kept if `tracked`.
  void cut(const TextPiece& piece, bool tracked, const Sink& word) const { step(0, piece, tracked, word); }

 private:
  void step(size_t index, const TextPiece& piece, bool tracked, const Sink& word) const;

  std::vector<Step> steps_;
};

}  // namespace snug
