#pragma once
// Files as tokenizers and data need them: exact reads at an offset without mapping, and files that appear whole or not at
// all.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace snug {

// A file open for reading. Closed when it goes.
class InputFile {
 public:
  // Throws Error if it cannot be opened; `mend` says what to do then and when it turns out too short.
  InputFile(std::filesystem::path path, std::string mend);
  InputFile(InputFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)), mend_(std::move(other.mend_)) {}
  InputFile& operator=(InputFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(path_, other.path_);
    std::swap(mend_, other.mend_);
    return *this;
  }
  ~InputFile();

  int64_t size() const;

  // Fills `bytes` from `offset`; interrupted and short reads are continued. Throws Error if the file ends before.
  void read_at(std::span<std::byte> bytes, int64_t offset) const;

  // Fills the front of `bytes` with what comes next; 0 at the end.
  size_t read_some(std::span<std::byte> bytes);

  [[noreturn]] void refuse(const std::string& what) const;

 private:
  int descriptor_ = -1;
  std::filesystem::path path_;
  std::string mend_;
};

// False only if there is nothing of that name. Throws Error if that cannot be told.
bool file_exists(const std::filesystem::path& path);
// Likewise of a directory.
bool directory_exists(const std::filesystem::path& path);

// The whole of a regular file, with room for `spare` more bytes. Throws Error, also for more than `most_bytes`.
std::string read_text(const std::filesystem::path& path, int64_t most_bytes, size_t spare, const std::string& mend);

// A file that is written beside its name and takes it when `commit` is called; without that it leaves nothing behind.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  // Appends, through a buffer of 1 MiB. Throws Error (disk full, …).
  void write(std::span<const std::byte> bytes);

  // Overwrites from the start of the file: a header whose counts are known last.
  void write_front(std::span<const std::byte> bytes);

  void commit();

 private:
  void flush();
  void write_at(std::span<const std::byte> bytes, int64_t offset);
  [[noreturn]] void fail(const char* doing) const;

  int descriptor_ = -1;
  std::filesystem::path path_, draft_;
  std::vector<std::byte> buffer_;
  int64_t written_ = 0;  // bytes, without the buffer
};

}  // namespace snug
