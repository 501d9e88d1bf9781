#pragma once
// The bytes of a pickle in order, from a file (through one buffer, without mapping: mapped pages count as memory) or from
// memory. Lengths are checked against what is left before anything is allocated.

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/file.h"

namespace snug {

class PickleSource {
 public:
  explicit PickleSource(const std::filesystem::path& path);
  PickleSource(std::span<const std::byte> bytes, std::string where);

  const std::string& where() const { return where_; }
  int64_t offset() const { return loaded_ - static_cast<int64_t>(left_.size()); }  // of the next byte
  int64_t remaining() const { return size_ - offset(); }

  // A little-endian number of its own size. Throws Error at the end of the file.
  template <class T>
  T number() {
    if (left_.size() < sizeof(T)) load(sizeof(T));
    T value;
    std::memcpy(&value, left_.data(), sizeof(T));
    left_ = left_.subspan(sizeof(T));
    return value;
  }

  // The next bytes, valid until the next call. Throws Error if the file has fewer, before anything is allocated.
  std::string_view take(int64_t bytes);

  // Up to the next newline, which is taken too.
  std::string_view line();

  // What comes next, at most `bytes` of it, without taking it.
  std::string_view peek(size_t bytes);

  // Throws Error "FILE, byte OFFSET: PROBLEM (MEND)".
  [[noreturn]] void refuse(int64_t offset, const std::string& problem, const std::string& mend) const;

 private:
  static_assert(std::endian::native == std::endian::little);

  void load(size_t bytes);  // makes `left_` hold at least so many

  std::optional<UniqueFd> file_;
  std::filesystem::path path_;
  std::string where_;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> left_;
  int64_t size_ = 0, loaded_ = 0;  // bytes: of the whole, and up to the end of `left_`
};

}  // namespace snug
