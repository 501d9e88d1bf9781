#pragma once
// A running XXH3 checksum of 64 bits: it finds damage, not malice.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace snug {

class Checksum {
 public:
  Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;
  ~Checksum();

  void update(std::span<const std::byte> bytes);
  uint64_t value() const;  // of all bytes so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct FileSum {
  int64_t bytes = 0;
  uint64_t xxh3 = 0;
  bool operator==(const FileSum&) const = default;
};

// Reads the file through a buffer of 1 MiB. Throws Error.
FileSum checksum_file(const std::filesystem::path& path);

}  // namespace snug
