#pragma once
// The two-way table between token strings and ids, kept compact: one pool of characters, eight bytes an id and a flat table
// of ids. Strings are kept as tokenizer.json writes them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

class Vocabulary {
 public:
  // Ids must be below this; the largest published vocabulary has about a million tokens.
  static constexpr int64_t kMaxIds = int64_t{1} << 22;

  enum class Outcome : uint8_t { added, token_taken, id_taken };

  // Prepares for `tokens` tokens of `bytes` characters in all; a hint.
  void reserve(size_t tokens, size_t bytes);

  // Adds a token with its id (0 ≤ id < kMaxIds). Nothing changes unless the outcome is `added`.
  Outcome add(std::string_view token, int32_t id);

  // The id of `token`, or -1.
  int32_t find(std::string_view token) const;

  // True if a token has this id; any number may be asked for.
  bool contains(int32_t id) const;

  // The string of `id`; empty if there is none.
  std::string_view token(int32_t id) const;

  // Highest id + 1.
  int64_t size() const { return static_cast<int64_t>(places_.size()); }
  int64_t bytes() const;

  // How many tokens there are.
  int64_t count() const { return static_cast<int64_t>(count_); }

 private:
  struct Place {
    uint32_t begin = 0;
    uint32_t length = kNone;
  };
  struct Slot {
    uint32_t next_id = 0;  // id + 1; 0 is empty
    uint32_t tag = 0;      // of the hash: what differs there need not be compared
    int32_t id() const { return static_cast<int32_t>(next_id) - 1; }
  };
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  static Slot slot_for(std::string_view token_string, int32_t id);
  size_t slot_of(std::string_view token) const;
  void grow(size_t slots);

  std::string pool_;
  std::vector<Place> places_;  // by id
  std::vector<Slot> slots_;    // open addressing, at most half full
  size_t count_ = 0;
};

}  // namespace snug
