#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/hash.h"
#include "tokenizer/byte_alphabet.h"

namespace snug {
namespace {

// Up to here a linear search for the best pair beats the heap.
constexpr size_t kShortWord = 40;

}  // namespace

void Bpe::reserve(size_t merges) { grow(std::bit_ceil(std::max<size_t>(merges + merges / 3, 16))); }

size_t Bpe::slot_of(int32_t left, int32_t right) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = hash_word(static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right), 0) & mask;
  while (slots_[slot].left >= 0 && (slots_[slot].left != left || slots_[slot].right != right)) slot = (slot + 1) & mask;
  return slot;
}

void Bpe::grow(size_t slots) {
  if (slots <= slots_.size()) return;
  std::vector<Merge> old(slots);
  old.swap(slots_);
  for (const Merge& merge : old) {
    if (merge.left >= 0) slots_[slot_of(merge.left, merge.right)] = merge;
  }
}

void Bpe::add_merge(int32_t left, int32_t right, int32_t result) {
  if (4 * (pairs_ + 1) > 3 * slots_.size()) grow(std::max<size_t>(16, slots_.size() * 2));
  Merge& merge = slots_[slot_of(left, right)];
  if (merge.left < 0) ++pairs_;
  merge = {left, right, next_rank_++, result};
}

void Bpe::finish(const Vocabulary& vocabulary, const Options& options) {
  if (slots_.empty()) grow(16);
  options_ = options;
  for (size_t byte = 0; byte < id_of_byte_.size(); ++byte) {
    std::string character;
    kByteAlphabet.append(character, static_cast<unsigned char>(byte));
    id_of_byte_[byte] = vocabulary.find(character);
  }
  remembered_.resize(kRememberedWords);
}

const Bpe::Merge* Bpe::find(int32_t left, int32_t right) const {
  const Merge& merge = slots_[slot_of(left, right)];
  return merge.left < 0 ? nullptr : &merge;
}

void Bpe::encode(std::string_view word, const Vocabulary& vocabulary, std::vector<int32_t>& ids) const {
  if (word.empty()) return;
  if (word.size() > Remembered::kMaxBytes) return encode_unremembered(word, vocabulary, ids);
  const uint64_t hash = hash_bytes(word);
  Remembered& entry = remembered_[(hash >> 20) % kRememberedWords];
  if (entry.hash == hash && std::string_view(entry.bytes.data(), entry.length) == word) {
    ids.insert(ids.end(), entry.ids.begin(), entry.ids.begin() + entry.count);
    return;
  }
  const size_t before = ids.size();
  encode_unremembered(word, vocabulary, ids);
  const size_t count = ids.size() - before;
  if (count > Remembered::kMaxIds) return;
  entry.hash = hash;
  entry.length = static_cast<uint8_t>(word.size());
  entry.count = static_cast<uint8_t>(count);
  std::memcpy(entry.bytes.data(), word.data(), word.size());
  std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(before), count, entry.ids.begin());
}

void Bpe::encode_unremembered(std::string_view word, const Vocabulary& vocabulary, std::vector<int32_t>& ids) const {
  if (options_.ignore_merges) {
    alphabet_word_.clear();
    for (const char c : word) kByteAlphabet.append(alphabet_word_, static_cast<unsigned char>(c));
    const int32_t id = vocabulary.find(alphabet_word_);
    if (id >= 0) {
      ids.push_back(id);
      return;
    }
  }
  start(word);
  if (symbols_.size() <= kShortWord) {
    merge_short(ids);
  } else {
    merge_long(ids);
  }
}

// The symbols of single bytes, unknown ones as the options say.
void Bpe::start(std::string_view word) const {
  symbols_.clear();
  bool after_unknown = false;
  for (const char c : word) {
    const int32_t id = id_of_byte_[static_cast<unsigned char>(c)];
    if (id >= 0) {
      symbols_.push_back(id);
      after_unknown = false;
    } else if (options_.unknown >= 0) {
      if (!(after_unknown && options_.fuse_unknown)) symbols_.push_back(options_.unknown);
      after_unknown = true;
    }
  }
}

void Bpe::merge_short(std::vector<int32_t>& ids) const {
  pair_merges_.clear();
  for (size_t i = 0; i + 1 < symbols_.size(); ++i) pair_merges_.push_back(find(symbols_[i], symbols_[i + 1]));
  while (!pair_merges_.empty()) {
    const Merge* best = nullptr;
    size_t at = 0;
    for (size_t i = 0; i < pair_merges_.size(); ++i) {
      const Merge* merge = pair_merges_[i];
      if (merge != nullptr && (best == nullptr || merge->rank < best->rank)) {
        best = merge;
        at = i;
      }
    }
    if (best == nullptr) break;
    symbols_[at] = best->result;
    symbols_.erase(symbols_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    pair_merges_.erase(pair_merges_.begin() + static_cast<std::ptrdiff_t>(at));
    if (at > 0) pair_merges_[at - 1] = find(symbols_[at - 1], symbols_[at]);
    if (at < pair_merges_.size()) pair_merges_[at] = find(symbols_[at], symbols_[at + 1]);
  }
  ids.insert(ids.end(), symbols_.begin(), symbols_.end());
}

void Bpe::merge_long(std::vector<int32_t>& ids) const {
  const auto count = static_cast<int32_t>(symbols_.size());
  chain_.clear();
  heap_.clear();
  for (int32_t i = 0; i < count; ++i) {
    chain_.push_back({symbols_[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  }
  const auto at = [&](int32_t position) -> Symbol& { return chain_[static_cast<size_t>(position)]; };
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  };
  const auto offer = [&](int32_t position) {
    const Merge* merge = find(at(position).id, at(at(position).next).id);
    if (merge == nullptr) return;
    heap_.push_back({merge->rank, position, merge->result});
    std::push_heap(heap_.begin(), heap_.end(), later);
  };
  for (int32_t i = 0; i + 1 < count; ++i) offer(i);
  while (!heap_.empty()) {
    const Candidate best = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
    Symbol& left = at(best.position);
    if (left.id < 0 || left.next < 0) continue;
    Symbol& right = at(left.next);
    const Merge* merge = find(left.id, right.id);
    if (merge == nullptr || merge->rank != best.rank) continue;  // the pair has changed since it was offered
    left.id = merge->result;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) {
      at(left.next).previous = best.position;
      offer(best.position);
    }
    if (left.previous >= 0) offer(left.previous);
  }
  for (const Symbol& symbol : chain_) {
    if (symbol.id >= 0) ids.push_back(symbol.id);
  }
}

int64_t Bpe::bytes() const {
  return static_cast<int64_t>(slots_.capacity() * sizeof(Merge) + remembered_.capacity() * sizeof(Remembered));
}

}  // namespace snug
