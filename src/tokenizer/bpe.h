#pragma once
// Byte-pair encoding of one word (Sennrich et al., "Neural machine translation of rare words with subword units", 2016): the
// pair of neighbours with the lowest rank is merged until none is left. It begins with the bytes of the word (byte-level, as
// GPT-2) or with its characters (as SentencePiece). It knows ids and text, not files.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/merge_table.h"
#include "tokenizer/safe_cuts.h"
#include "tokenizer/vocabulary.h"

namespace snug {

class Bpe {
 public:
  struct Options {
    bool bytes = true;           // words are raw bytes that stand for characters of the byte alphabet
    bool ignore_merges = false;  // a word that is in the vocabulary is one id, whatever the merges say
    bool fuse_unknown = false;   // a run of unknown characters is one unknown token
    bool byte_fallback = false;  // an unknown character becomes its bytes, "<0xE2>" …, if the vocabulary has them all
    int32_t unknown = -1;        // id for what the vocabulary lacks; -1: that is dropped, as `tokenizers` does
  };

  // What an id stands for: bytes [begin, end) of the word.
  struct Part {
    uint32_t begin, end;
  };

  // What one thread needs to encode: space to work in, and the words it met often. Good for one Bpe only.
  class Scratch {
   public:
    Scratch();

   private:
    friend class Bpe;
    struct Remembered {  // one cache line
      static constexpr size_t kMaxBytes = 30, kMaxIds = 6;
      uint64_t hash = 0;
      uint8_t length = 0, count = 0;  // length 0 is empty
      std::array<char, kMaxBytes> bytes{};
      std::array<int32_t, kMaxIds> ids{};
    };
    static constexpr size_t kRememberedWords = size_t{1} << 15;

    struct Symbol {
      int32_t id;
      Part part;
    };
    struct Link {
      int32_t previous, next;  // places; -1 is none
    };
    struct Candidate {
      int32_t rank, place, result;
    };

    std::vector<Symbol> symbols;
    std::vector<const Merge*> merges;  // of neighbours
    std::vector<Link> links;
    std::vector<Candidate> heap;
    std::string alphabet_word;
    std::vector<Remembered> remembered;
  };

  MergeTable& merges() { return merges_; }

  // To be called once, after the merges: reads the ids of characters and bytes from `vocabulary`, which must stay and in
  // which ids from now on are not looked for. Throws Error if bytes are wanted that cannot be spelled.
  void finish(const Vocabulary& vocabulary, const Options& options);

  // Appends the ids of `word` (in bytes, or else valid UTF-8); if `parts` is given, also what each stands for.
  void encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids, std::vector<Part>* parts) const;

  // True if every text has ids other than that of unknown characters.
  bool covers_all() const { return covers_all_; }

  int64_t bytes() const;

 private:
  using Symbol = Scratch::Symbol;

  int32_t id_of(uint32_t character) const {
    const size_t page = character / 256;
    return page < pages_.size() && pages_[page] > 0 ? ids_[(static_cast<size_t>(pages_[page]) - 1) * 256 + character % 256]
                                                    : -1;
  }
  void read_characters();
  int32_t whole_word(std::string_view word, Scratch& scratch) const;
  size_t next_cut(std::string_view word, size_t begin) const;
  void encode_piece(std::string_view piece, uint32_t at, Scratch& scratch, std::vector<int32_t>& ids,
                    std::vector<Part>* parts) const;
  bool recall(std::string_view piece, uint32_t at, uint64_t hash, const Scratch& scratch, std::vector<int32_t>& ids,
              std::vector<Part>* parts) const;
  void remember(std::string_view piece, uint64_t hash, Scratch& scratch) const;
  void start(std::string_view piece, Scratch& scratch) const;
  void start_characters(std::string_view piece, Scratch& scratch) const;
  void merge_short(Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;

  Options options_;
  const Vocabulary* vocabulary_ = nullptr;
  MergeTable merges_;
  SafeCuts cuts_;
  bool covers_all_ = false;
  std::array<int32_t, 256> id_of_byte_{};  // of "Ġ" …, or of "<0x20>" …
  std::vector<int32_t> pages_, ids_;       // ids of characters in pages of 256; page 0 is none
};

}  // namespace snug
