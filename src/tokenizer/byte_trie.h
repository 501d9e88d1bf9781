#pragma once
// A trie of byte strings with a number each, for the longest of them that a text starts with: one probe of a flat table for
// each byte, whatever the number of strings.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace snug {

class ByteTrie {
 public:
  bool empty() const { return numbers_.size() == 1; }

  // Adds `text` (not empty) with `number` (≥ 0), in place of an earlier one.
  void add(std::string_view text, int32_t number) {
    starts_[static_cast<unsigned char>(text[0])] = true;
    uint32_t node = 0;
    for (const char c : text) {
      if (2 * numbers_.size() >= edges_.size()) grow();
      Edge& edge = edges_[slot(node, c)];
      if (edge.to == 0) {
        edge = {key(node, c), static_cast<uint32_t>(numbers_.size())};
        numbers_.push_back(-1);
      }
      node = edge.to;
    }
    numbers_[node] = number;
  }

  struct Hit {
    size_t length = 0;
    int32_t number = -1;
  };

  // The longest string that `text` starts with; number -1: none.
  Hit longest(std::string_view text) const {
    Hit hit;
    uint32_t node = 0;
    if (text.empty() || !may_start(text[0])) return hit;
    for (size_t i = 0; i < text.size(); ++i) {
      node = edges_[slot(node, text[i])].to;
      if (node == 0) break;
      if (numbers_[node] >= 0) hit = {i + 1, numbers_[node]};
    }
    return hit;
  }

  bool may_start(char c) const { return starts_[static_cast<unsigned char>(c)]; }
  int64_t bytes() const {
    return static_cast<int64_t>(edges_.capacity() * sizeof(Edge) + numbers_.capacity() * sizeof(int32_t));
  }

 private:
  struct Edge {
    uint64_t key = 0;
    uint32_t to = 0;  // 0: no edge
  };

  static uint64_t key(uint32_t node, char c) { return uint64_t{node} << 8 | static_cast<unsigned char>(c); }

  size_t slot(uint32_t node, char c) const {
    const uint64_t wanted = key(node, c);
    const size_t mask = edges_.size() - 1;
    size_t at = hash_word(wanted, 0) & mask;
    while (edges_[at].to != 0 && edges_[at].key != wanted) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Edge> old(edges_.size() * 2);
    old.swap(edges_);
    const size_t mask = edges_.size() - 1;
    for (const Edge& edge : old) {
      if (edge.to == 0) continue;
      size_t at = hash_word(edge.key, 0) & mask;
      while (edges_[at].to != 0) at = (at + 1) & mask;
      edges_[at] = edge;
    }
  }

  std::array<bool, 256> starts_{};
  std::vector<int32_t> numbers_ = std::vector<int32_t>(1, -1);  // by node; node 0 is the root
  std::vector<Edge> edges_ = std::vector<Edge>(16);             // open addressing, at most half full
};

}  // namespace snug
