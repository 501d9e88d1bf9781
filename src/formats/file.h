#pragma once
// POSIX files with errors that carry the path: whole reads and writes, and what makes them last (fsync). Everything in this
// room touches the disk through it.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

// A file descriptor that closes itself; -1 holds none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

// Throws Error "WHAT: No such file or directory" for errno `code`.
[[noreturn]] void throw_errno(const std::string& what, const std::filesystem::path& path, int code);

// Each throws Error with the path and the system's words.

UniqueFd open_to_read(const std::filesystem::path& path);    // regular files only
UniqueFd open_to_write(const std::filesystem::path& path);   // creates, or empties what is there
UniqueFd open_to_update(const std::filesystem::path& path);  // a file that is there, as it is
UniqueFd open_to_append(const std::filesystem::path& path);
bool is_there(const std::filesystem::path& path);                                       // an error is not an absence
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory);  // none if it is not there
int64_t file_bytes(int fd, const std::filesystem::path& path);

// Fills `out` from `offset`; a file that ends before is an error.
void read_at(int fd, int64_t offset, std::span<std::byte> out, const std::filesystem::path& path);
void write_at(int fd, int64_t offset, std::span<const std::byte> bytes, const std::filesystem::path& path);
void write_all(int fd, std::span<const std::byte> bytes, const std::filesystem::path& path);
void sync_file(int fd, const std::filesystem::path& path);
void sync_path(const std::filesystem::path& path);  // a file or a directory, by name

// The whole of a small text file; throws if it is larger than `most_bytes`.
std::string read_text_file(const std::filesystem::path& path, int64_t most_bytes = int64_t{64} << 20);

void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);

// Replaces `path` with `bytes`: readers see the old file or the new one, also after a power cut.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// "NAME.tmp-PID", the name under which this process prepares `path`.
std::filesystem::path temporary_name(const std::filesystem::path& path);

// The directory that holds `path`; "." for a bare name.
std::filesystem::path parent_of(const std::filesystem::path& path);

}  // namespace snug
