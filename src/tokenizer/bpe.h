#pragma once
// Byte-pair encoding of one pre-token (Sennrich et al., "Neural machine translation of rare words with subword units",
// 2016): the pair of neighbours with the lowest rank is merged until none is left. Words met often are remembered in a table
// of fixed size. It knows ids and bytes, not files.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace snug {

class Bpe {
 public:
  struct Options {
    bool ignore_merges = false;  // a pre-token that is in the vocabulary is one id, whatever the merges say
    bool fuse_unknown = false;   // a run of unknown bytes is one unknown token
    int32_t unknown = -1;        // id for bytes that the vocabulary lacks; -1: such bytes are dropped, as `tokenizers` does
  };

  // Prepares for `merges` merges; a hint.
  void reserve(size_t merges);

  // Adds the next merge: its rank is the number of merges before it. A pair given twice takes the later rank.
  void add_merge(int32_t left, int32_t right, int32_t result);

  // To be called once, after the merges: reads the ids of the 256 bytes from `vocabulary`.
  void finish(const Vocabulary& vocabulary, const Options& options);

  // Appends the ids of the pre-token `word` (raw bytes). `vocabulary` is the one given to `finish`. Not for two threads at
  // once: scratch space and the word table change.
  void encode(std::string_view word, const Vocabulary& vocabulary, std::vector<int32_t>& ids) const;

  int64_t bytes() const;

 private:
  struct Merge {
    int32_t left = -1, right = -1;
    int32_t rank = 0, result = 0;
  };
  struct Symbol {
    int32_t id, previous, next;  // positions; -1 is none; a merged-away symbol has id -1
  };
  struct Candidate {
    int32_t rank, position, result;
  };
  struct Remembered {  // one cache line
    static constexpr size_t kMaxBytes = 30, kMaxIds = 6;
    uint64_t hash = 0;
    uint8_t length = 0, count = 0;  // length 0 is empty
    std::array<char, kMaxBytes> bytes{};
    std::array<int32_t, kMaxIds> ids{};
  };
  static constexpr size_t kRememberedWords = size_t{1} << 14;

  const Merge* find(int32_t left, int32_t right) const;
  size_t slot_of(int32_t left, int32_t right) const;
  void grow(size_t slots);
  void encode_unremembered(std::string_view word, const Vocabulary& vocabulary, std::vector<int32_t>& ids) const;
  void start(std::string_view word) const;
  void merge_short(std::vector<int32_t>& ids) const;
  void merge_long(std::vector<int32_t>& ids) const;

  Options options_;
  std::array<int32_t, 256> id_of_byte_{};
  std::vector<Merge> slots_;  // open addressing, at most three quarters full; left -1 is empty
  size_t pairs_ = 0;
  int32_t next_rank_ = 0;

  mutable std::vector<int32_t> symbols_;
  mutable std::vector<const Merge*> pair_merges_;
  mutable std::vector<Symbol> chain_;
  mutable std::vector<Candidate> heap_;
  mutable std::string alphabet_word_;
  mutable std::vector<Remembered> remembered_;
};

}  // namespace snug
