#include "tokenizer/bpe.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/hash.h"
#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"

namespace snug {
namespace {

// Up to here a linear search for the best pair beats the heap.
constexpr size_t kShortWord = 40;

// Bytes of a word that a token stands for, if it stands for itself.
size_t length_of(std::string_view token, bool bytes) {
  if (!bytes) return token.size();
  return static_cast<size_t>(std::ranges::count_if(token, [](char c) { return !utf8_continues(c); }));
}

}  // namespace

Bpe::Scratch::Scratch() : remembered(kRememberedWords) {}

void Bpe::finish(const Vocabulary& vocabulary, const Options& options) {
  options_ = options;
  vocabulary_ = &vocabulary;
  covers_all_ = options.bytes || options.byte_fallback;
  for (size_t byte = 0; byte < id_of_byte_.size(); ++byte) {
    std::string spelled;
    if (options.bytes) {
      kByteAlphabet.append(spelled, static_cast<unsigned char>(byte));
    } else {
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "<0x%02X>", static_cast<unsigned>(byte));
      spelled = code.data();
    }
    id_of_byte_[byte] = vocabulary.find(spelled);
    covers_all_ =
        covers_all_ && (id_of_byte_[byte] >= 0 || (!options.bytes && (byte == 0xC0 || byte == 0xC1 || byte > 0xF4)));
  }
  if (!options.bytes) read_characters();
}

void Bpe::read_characters() {
  pages_.assign(0x110000 / 256, 0);
  ids_.clear();
  for (int32_t id = 0; id < vocabulary_->size(); ++id) {
    const std::string_view token = vocabulary_->token(id);
    if (token.empty() || utf8_length(token[0]) != token.size()) continue;
    const uint32_t character = code_point_at(token, 0).value;
    int32_t& page = pages_[character / 256];
    if (page == 0) {
      ids_.resize(ids_.size() + 256, -1);
      page = static_cast<int32_t>(ids_.size() / 256);
    }
    ids_[(static_cast<size_t>(page) - 1) * 256 + character % 256] = id;
  }
  std::vector<bool> seen(static_cast<size_t>(vocabulary_->size()));
  merges_.for_each([&](const Merge& merge) {
    if (seen[static_cast<size_t>(merge.result)]) return;
    seen[static_cast<size_t>(merge.result)] = true;
    cuts_.add_token(vocabulary_->token(merge.result));
  });
}

void Bpe::encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids, std::vector<Part>* parts) const {
  if (word.empty()) return;
  if (options_.ignore_merges) {
    if (const int32_t id = whole_word(word, scratch); id >= 0) {
      ids.push_back(id);
      if (parts != nullptr) parts->push_back({0, static_cast<uint32_t>(word.size())});
      return;
    }
  }
  if (options_.bytes) return encode_piece(word, 0, scratch, ids, parts);
  for (size_t begin = 0; begin < word.size();) {
    const size_t end = next_cut(word, begin);
    encode_piece(word.substr(begin, end - begin), static_cast<uint32_t>(begin), scratch, ids, parts);
    begin = end;
  }
}

int32_t Bpe::whole_word(std::string_view word, Scratch& scratch) const {
  if (!options_.bytes) return vocabulary_->find(word);
  scratch.alphabet_word.clear();
  for (const char c : word) kByteAlphabet.append(scratch.alphabet_word, static_cast<unsigned char>(c));
  return vocabulary_->find(scratch.alphabet_word);
}

// The first place after `begin` where the word may be cut: between known characters (unknown ones may be fused, and their
// ids do not spell them) that no merge joins.
size_t Bpe::next_cut(std::string_view word, size_t begin) const {
  CodePoint left = code_point_at(word, begin);
  bool known = id_of(left.value) >= 0;
  for (size_t at = begin + left.bytes; at < word.size();) {
    const CodePoint right = code_point_at(word, at);
    const bool both = known;
    known = id_of(right.value) >= 0;
    if (both && known && !cuts_.joined(left.value, right.value)) return at;
    left = right;
    at += right.bytes;
  }
  return word.size();
}

void Bpe::encode_piece(std::string_view piece, uint32_t at, Scratch& scratch, std::vector<int32_t>& ids,
                       std::vector<Part>* parts) const {
  const bool short_enough = piece.size() <= Scratch::Remembered::kMaxBytes;
  const uint64_t hash = short_enough ? hash_bytes(piece) : 0;
  if (short_enough && recall(piece, at, hash, scratch, ids, parts)) return;
  start(piece, scratch);
  if (scratch.symbols.size() <= kShortWord) {
    merge_short(scratch);
  } else {
    merge_long(scratch);
  }
  for (const Symbol& symbol : scratch.symbols) {
    ids.push_back(symbol.id);
    if (parts != nullptr) parts->push_back({at + symbol.part.begin, at + symbol.part.end});
  }
  if (short_enough) remember(piece, hash, scratch);
}

bool Bpe::recall(std::string_view piece, uint32_t at, uint64_t hash, const Scratch& scratch, std::vector<int32_t>& ids,
                 std::vector<Part>* parts) const {
  const Scratch::Remembered& entry = scratch.remembered[(hash >> 20) % Scratch::kRememberedWords];
  if (entry.hash != hash || std::string_view(entry.bytes.data(), entry.length) != piece) return false;
  ids.insert(ids.end(), entry.ids.begin(), entry.ids.begin() + entry.count);
  if (parts == nullptr) return true;
  for (size_t i = 0; i < entry.count; ++i) {
    const auto end = at + static_cast<uint32_t>(length_of(vocabulary_->token(entry.ids[i]), options_.bytes));
    parts->push_back({at, end});
    at = end;
  }
  return true;
}

// Only words whose ids spell them are remembered, so that the parts can be told from the ids.
void Bpe::remember(std::string_view piece, uint64_t hash, Scratch& scratch) const {
  if (scratch.symbols.size() > Scratch::Remembered::kMaxIds) return;
  uint32_t done = 0;
  for (const Symbol& symbol : scratch.symbols) {
    const size_t length = length_of(vocabulary_->token(symbol.id), options_.bytes);
    if (symbol.part.begin != done || symbol.part.end != done + length) return;
    done = symbol.part.end;
  }
  if (done != piece.size()) return;
  Scratch::Remembered& entry = scratch.remembered[(hash >> 20) % Scratch::kRememberedWords];
  entry.hash = hash;
  entry.length = static_cast<uint8_t>(piece.size());
  entry.count = static_cast<uint8_t>(scratch.symbols.size());
  std::memcpy(entry.bytes.data(), piece.data(), piece.size());
  for (size_t i = 0; i < scratch.symbols.size(); ++i) entry.ids[i] = scratch.symbols[i].id;
}

void Bpe::start(std::string_view piece, Scratch& scratch) const {
  scratch.symbols.clear();
  if (!options_.bytes) return start_characters(piece, scratch);
  bool after_unknown = false;
  for (uint32_t i = 0; i < piece.size(); ++i) {
    const int32_t id = id_of_byte_[static_cast<unsigned char>(piece[i])];
    if (id < 0 && after_unknown && options_.fuse_unknown) {
      scratch.symbols.back().part.end = i + 1;
    } else if (id >= 0 || options_.unknown >= 0) {
      scratch.symbols.push_back({id >= 0 ? id : options_.unknown, {i, i + 1}});
    }
    after_unknown = id < 0 && options_.unknown >= 0;
  }
}

// As `tokenizers`, an unknown token waits for a known character or the end; bytes of a fallback do not release it.
void Bpe::start_characters(std::string_view piece, Scratch& scratch) const {
  Symbol waiting{-1, {0, 0}};
  const auto release = [&] {
    if (waiting.id >= 0) scratch.symbols.push_back(waiting);
    waiting.id = -1;
  };
  for (uint32_t at = 0; at < piece.size();) {
    const CodePoint character = code_point_at(piece, at);
    const uint32_t end = at + character.bytes;
    const std::string_view bytes = piece.substr(at, character.bytes);
    const auto has_id = [&](char c) { return id_of_byte_[static_cast<unsigned char>(c)] >= 0; };
    if (const int32_t id = id_of(character.value); id >= 0) {
      release();
      scratch.symbols.push_back({id, {at, end}});
    } else if (options_.byte_fallback && std::ranges::all_of(bytes, has_id)) {
      for (uint32_t i = at; i < end; ++i) {
        scratch.symbols.push_back({id_of_byte_[static_cast<unsigned char>(piece[i])], {i, i + 1}});
      }
    } else if (options_.unknown >= 0) {
      if (waiting.id >= 0 && options_.fuse_unknown) {
        waiting.part.end = end;
      } else {
        release();
        waiting = {options_.unknown, {at, end}};
      }
    }
    at = end;
  }
  release();
}

void Bpe::merge_short(Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  std::vector<const Merge*>& merges = scratch.merges;
  merges.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i) merges.push_back(merges_.find(symbols[i].id, symbols[i + 1].id));
  while (!merges.empty()) {
    const Merge* best = nullptr;
    size_t at = 0;
    for (size_t i = 0; i < merges.size(); ++i) {
      const Merge* merge = merges[i];
      if (merge != nullptr && (best == nullptr || merge->rank < best->rank)) {
        best = merge;
        at = i;
      }
    }
    if (best == nullptr) break;
    symbols[at] = {best->result, {symbols[at].part.begin, symbols[at + 1].part.end}};
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    merges.erase(merges.begin() + static_cast<std::ptrdiff_t>(at));
    if (at > 0) merges[at - 1] = merges_.find(symbols[at - 1].id, symbols[at].id);
    if (at < merges.size()) merges[at] = merges_.find(symbols[at].id, symbols[at + 1].id);
  }
}

void Bpe::merge_long(Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  std::vector<Scratch::Link>& links = scratch.links;
  std::vector<Scratch::Candidate>& heap = scratch.heap;
  const auto count = static_cast<int32_t>(symbols.size());
  links.clear();
  heap.clear();
  for (int32_t i = 0; i < count; ++i) links.push_back({i - 1, i + 1 < count ? i + 1 : -1});
  const auto symbol = [&](int32_t place) -> Symbol& { return symbols[static_cast<size_t>(place)]; };
  const auto link = [&](int32_t place) -> Scratch::Link& { return links[static_cast<size_t>(place)]; };
  const auto later = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
  };
  const auto offer = [&](int32_t place) {
    const Merge* merge = merges_.find(symbol(place).id, symbol(link(place).next).id);
    if (merge == nullptr) return;
    heap.push_back({merge->rank, place, merge->result});
    std::push_heap(heap.begin(), heap.end(), later);
  };
  for (int32_t i = 0; i + 1 < count; ++i) offer(i);
  while (!heap.empty()) {
    const Scratch::Candidate best = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    Symbol& left = symbol(best.place);
    const int32_t next = link(best.place).next;
    if (left.id < 0 || next < 0) continue;
    Symbol& right = symbol(next);
    const Merge* merge = merges_.find(left.id, right.id);
    if (merge == nullptr || merge->result != best.result) continue;  // the pair has changed since it was offered
    left.id = best.result;
    left.part.end = right.part.end;
    right.id = -1;
    link(best.place).next = link(next).next;
    if (link(next).next >= 0) {
      link(link(next).next).previous = best.place;
      offer(best.place);
    }
    if (link(best.place).previous >= 0) offer(link(best.place).previous);
  }
  std::erase_if(symbols, [](const Symbol& s) { return s.id < 0; });
}

int64_t Bpe::bytes() const {
  return merges_.bytes() + cuts_.bytes() + static_cast<int64_t>((pages_.capacity() + ids_.capacity()) * sizeof(int32_t));
}

}  // namespace snug
