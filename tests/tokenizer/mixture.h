#pragma once
// Mixed text from a seed: the same as tests/oracle/tokenizer_mixture.py makes, so that golden files need only hold hashes.

#include <simdjson.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/support.h"

namespace snug::test {

class Mixture {
 public:
  explicit Mixture(uint64_t seed) : state_(seed) {
    simdjson::dom::parser parser;
    const simdjson::dom::element root = parser.load(golden("mixture.json").string());
    for (const std::string_view text : simdjson::dom::array(root["fragments"])) fragments_.emplace_back(text);
    for (const std::string_view text : simdjson::dom::array(root["spaces"])) spaces_.emplace_back(text);
    for (const simdjson::dom::array range : simdjson::dom::array(root["ranges"]))
      ranges_.emplace_back(uint64_t(range.at(0)), uint64_t(range.at(1)));
  }

  // At least `size` bytes; valid UTF-8 unless `damage`.
  std::string text(size_t size, bool damage = false) {
    std::string result;
    while (result.size() < size) add_piece(result, damage);
    return result;
  }

 private:
  uint64_t next(uint64_t bound) {  // splitmix64
    state_ += 0x9E3779B97F4A7C15U;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return (z ^ z >> 31) % bound;
  }

  void add_characters(std::string& to, char first, uint64_t kinds, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) to += static_cast<char>(first + static_cast<char>(next(kinds)));
  }

  void add_piece(std::string& to, bool damage) {
    const uint64_t kind = next(64);
    if (kind < 30) {
      to += fragments_[next(fragments_.size())];
    } else if (kind < 40) {
      to += ' ';
      add_characters(to, 'a', 26, 1 + next(9));
    } else if (kind < 46) {
      add_characters(to, '0', 10, 1 + next(6));
    } else if (kind < 52) {
      const std::string& space = spaces_[next(spaces_.size())];
      for (uint64_t count = 1 + next(6); count > 0; --count) to += space;
    } else if (kind < 63) {
      const auto [first, last] = ranges_[next(ranges_.size())];
      for (uint64_t count = 1 + next(4); count > 0; --count)
        append_utf8(to, static_cast<uint32_t>(first + next(last - first + 1)));
    } else if (damage && next(8) == 0) {
      to += static_cast<char>(128 + next(128));
    } else {
      to += static_cast<char>(next(128));
    }
  }

  uint64_t state_;
  std::vector<std::string> fragments_, spaces_;
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
};

// FNV-1a, a step for each item.
class Fold {
 public:
  template <typename Items>
  void add(const Items& items) {
    for (const auto item : items) hash_ = (hash_ ^ static_cast<uint64_t>(item)) * 0x100000001B3U;
  }
  std::string hex() const {
    std::string text(16, '0');
    for (size_t i = 0; i < 16; ++i) text[i] = "0123456789abcdef"[hash_ >> (60 - 4 * i) & 15U];
    return text;
  }

 private:
  uint64_t hash_ = 0xCBF29CE484222325U;
};

}  // namespace snug::test
