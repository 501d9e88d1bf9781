#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/hash.h"

namespace snug {

void Vocabulary::reserve(size_t tokens, size_t bytes) {
  tokens = std::min(tokens, static_cast<size_t>(kMaxIds));
  pool_.reserve(bytes);
  places_.reserve(tokens);
  grow(std::bit_ceil(std::max<size_t>(tokens, 8)) * 2);
}

Vocabulary::Slot Vocabulary::slot_for(std::string_view token_string, int32_t id) {
  return {static_cast<uint32_t>(id) + 1, tag_of(hash_bytes(token_string))};
}

size_t Vocabulary::slot_of(std::string_view token_string) const {
  const size_t mask = slots_.size() - 1;
  const uint64_t hash = hash_bytes(token_string);
  size_t slot = hash & mask;
  while (slots_[slot].next_id != 0 && !(slots_[slot].tag == tag_of(hash) && token(slots_[slot].id()) == token_string))
    slot = (slot + 1) & mask;
  return slot;
}

void Vocabulary::grow(size_t slots) {
  if (slots <= slots_.size()) return;
  slots_.assign(slots, Slot{});
  for (int32_t id = 0; id < static_cast<int32_t>(places_.size()); ++id) {
    if (contains(id)) slots_[slot_of(token(id))] = slot_for(token(id), id);
  }
}

Vocabulary::Outcome Vocabulary::add(std::string_view token_string, int32_t id) {
  if (2 * (count_ + 1) > slots_.size()) grow(std::max<size_t>(16, slots_.size() * 2));
  const size_t slot = slot_of(token_string);
  if (slots_[slot].next_id != 0) return Outcome::token_taken;
  if (contains(id)) return Outcome::id_taken;
  if (pool_.size() + token_string.size() >= kNone) throw Error("the vocabulary's strings exceed 4 GiB");
  if (static_cast<size_t>(id) >= places_.size()) places_.resize(static_cast<size_t>(id) + 1);
  places_[static_cast<size_t>(id)] = {static_cast<uint32_t>(pool_.size()), static_cast<uint32_t>(token_string.size())};
  pool_ += token_string;
  slots_[slot] = slot_for(token_string, id);
  ++count_;
  return Outcome::added;
}

int32_t Vocabulary::find(std::string_view token_string) const {
  if (slots_.empty()) return -1;
  return slots_[slot_of(token_string)].id();
}

bool Vocabulary::contains(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < places_.size() && places_[static_cast<size_t>(id)].length != kNone;
}

std::string_view Vocabulary::token(int32_t id) const {
  if (!contains(id)) return {};
  const Place place = places_[static_cast<size_t>(id)];
  return std::string_view(pool_).substr(place.begin, place.length);
}

int64_t Vocabulary::bytes() const {
  return static_cast<int64_t>(pool_.capacity() + places_.capacity() * sizeof(Place) + slots_.capacity() * sizeof(Slot));
}

}  // namespace snug
