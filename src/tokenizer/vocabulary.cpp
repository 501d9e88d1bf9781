#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace snug {

void Vocabulary::reserve(size_t tokens, size_t bytes) {
  tokens = std::min(tokens, static_cast<size_t>(kMaxIds));
  pool_.reserve(bytes);
  places_.reserve(tokens);
  grow(std::bit_ceil(std::max<size_t>(tokens, 8)) * 2);
}

size_t Vocabulary::slot_of(std::string_view token_string, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const uint32_t tag = tag_of(hash);
  size_t slot = hash & mask;
  while (slots_[slot].next_id != 0 &&
         !(slots_[slot].tag == tag && text_of(places_[slots_[slot].next_id - 1]) == token_string))
    slot = (slot + 1) & mask;
  return slot;
}

void Vocabulary::grow(size_t slots) {
  if (slots <= slots_.size()) return;
  slots_.assign(slots, Slot{});
  for (int32_t id = 0; id < static_cast<int32_t>(places_.size()); ++id) {
    if (!contains(id)) continue;
    const uint64_t hash = hash_of(token(id));
    slots_[slot_of(token(id), hash)] = {static_cast<uint32_t>(id) + 1, tag_of(hash)};
  }
}

Vocabulary::Outcome Vocabulary::add(std::string_view token_string, int32_t id, uint64_t hash) {
  if (2 * (count_ + 1) > slots_.size()) grow(std::max<size_t>(16, slots_.size() * 2));
  const size_t slot = slot_of(token_string, hash);
  if (slots_[slot].next_id != 0) return Outcome::token_taken;
  if (contains(id)) return Outcome::id_taken;
  if (pool_.size() + token_string.size() >= kNone) throw Error("the vocabulary's strings exceed 4 GiB");
  if (static_cast<size_t>(id) >= places_.size()) places_.resize(static_cast<size_t>(id) + 1);
  places_[static_cast<size_t>(id)] = {static_cast<uint32_t>(pool_.size()), static_cast<uint32_t>(token_string.size())};
  pool_ += token_string;
  slots_[slot] = {static_cast<uint32_t>(id) + 1, tag_of(hash)};
  ++count_;
  return Outcome::added;
}

void Vocabulary::prefetch(uint64_t hash) const {
  if (!slots_.empty()) __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
}

int32_t Vocabulary::prefetch_token(uint64_t hash) const {
  const int32_t id = slots_.empty() ? -1 : slots_[hash & (slots_.size() - 1)].id();
  if (id >= 0) __builtin_prefetch(&places_[static_cast<size_t>(id)]);
  return id;
}

void Vocabulary::prefetch_text(int32_t id) const {
  if (id >= 0) __builtin_prefetch(pool_.data() + places_[static_cast<size_t>(id)].begin);
}

bool Vocabulary::contains(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < places_.size() && places_[static_cast<size_t>(id)].length != kNone;
}

std::string_view Vocabulary::token(int32_t id) const {
  return contains(id) ? text_of(places_[static_cast<size_t>(id)]) : std::string_view();
}

int64_t Vocabulary::bytes() const {
  return static_cast<int64_t>(pool_.capacity() + places_.capacity() * sizeof(Place) + slots_.capacity() * sizeof(Slot));
}

}  // namespace snug
