#pragma once
// One hash for the flat tables of this room: eight bytes at a time, folded 128-bit products (the idea of wyhash). Not for
// files: its values may change.

#include <cstdint>
#include <cstring>
#include <string_view>

namespace snug {

inline uint64_t hash_word(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a ^ 0x9E3779B97F4A7C15U) * (b ^ 0xD6E8FEB86659FD93U);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = bytes.size();
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    hash = hash_word(hash, word);
    bytes.remove_prefix(8);
  }
  uint64_t tail = 0;
  if (!bytes.empty()) std::memcpy(&tail, bytes.data(), bytes.size());
  return hash_word(hash, tail);
}

}  // namespace snug
