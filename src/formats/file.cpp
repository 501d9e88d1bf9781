#include "formats/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace snug {

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int UniqueFd::release() { return std::exchange(fd_, -1); }

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(release());
}

void throw_errno(const std::string& what, const std::filesystem::path& path, int code) {
  std::string mend;
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) mend = "free some space, or choose another directory";
  if (code == EACCES || code == EPERM) mend = "check the permissions";
  if (code == EROFS) mend = "choose a directory that can be written";
  if (code == EIO) mend = "the disk or the way to it is failing: see the kernel's log";
  throw Error(fmt::format("{}: {}", what, std::generic_category().message(code)), path.string(), mend);
}

namespace {

int open_retrying(const std::filesystem::path& path, int flags, mode_t mode = 0) {
  for (;;) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EINTR) return fd;
  }
}

}  // namespace

UniqueFd open_to_read(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  UniqueFd fd(open_retrying(path, O_RDONLY | O_NONBLOCK));
  if (!fd) throw_errno("the file cannot be opened", path, errno);
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) throw_errno("the file cannot be examined", path, errno);
  if (!S_ISREG(info.st_mode)) throw Error("this is not a regular file", path.string());
  return fd;
}

UniqueFd open_to_write(const std::filesystem::path& path) {
  UniqueFd fd(open_retrying(path, O_WRONLY | O_CREAT | O_TRUNC, 0666));
  if (!fd) throw_errno("the file cannot be created", path, errno);
  return fd;
}

UniqueFd open_to_update(const std::filesystem::path& path) {
  UniqueFd fd(open_retrying(path, O_WRONLY, 0));
  if (!fd) throw_errno("the file cannot be opened", path, errno);
  return fd;
}

UniqueFd open_to_append(const std::filesystem::path& path) {
  UniqueFd fd(open_retrying(path, O_WRONLY | O_CREAT | O_APPEND, 0666));
  if (!fd) throw_errno("the file cannot be opened", path, errno);
  return fd;
}

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  const bool found = std::filesystem::exists(path, error);
  if (error) throw_errno("the file cannot be examined", path, error.value());
  return found;
}

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    paths.push_back(entry->path());
  if (error && error != std::errc::no_such_file_or_directory)
    throw_errno("the directory cannot be read", directory, error.value());
  return paths;
}

int64_t file_bytes(int fd, const std::filesystem::path& path) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) throw_errno("the file cannot be examined", path, errno);
  return info.st_size;
}

void read_at(int fd, int64_t offset, std::span<std::byte> out, const std::filesystem::path& path) {
  while (!out.empty()) {
    const ssize_t count = ::pread(fd, out.data(), out.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("reading failed", path, errno);
    if (count == 0)
      throw Error(fmt::format("the file ends at byte {}, {} too early", offset, out.size()), path.string(),
                  "it changed since it was opened");
    out = out.subspan(static_cast<size_t>(count));
    offset += count;
  }
}

void write_at(int fd, int64_t offset, std::span<const std::byte> bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_errno("writing failed", path, count < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
}

void write_all(int fd, std::span<const std::byte> bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_errno("writing failed", path, count < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void sync_file(int fd, const std::filesystem::path& path) {
  for (;;) {
    if (::fsync(fd) == 0) return;
    if (errno == EINTR) continue;
    if (errno == EINVAL || errno == ENOTSUP) return;  // a pipe or device, which has nothing to sync
    throw_errno("the file cannot be written to the disk", path, errno);
  }
}

void sync_path(const std::filesystem::path& path) {
  const UniqueFd fd(open_retrying(path, O_RDONLY | O_NONBLOCK));
  if (!fd) throw_errno("cannot be opened to sync it", path, errno);
  sync_file(fd.get(), path);
}

std::string read_text_file(const std::filesystem::path& path, int64_t most_bytes) {
  const UniqueFd fd = open_to_read(path);
  const int64_t bytes = file_bytes(fd.get(), path);
  if (bytes > most_bytes)
    throw Error(fmt::format("the file has {} bytes, more than the {} that are allowed", bytes, most_bytes), path.string());
  std::string text(static_cast<size_t>(bytes), '\0');
  read_at(fd.get(), 0, std::as_writable_bytes(std::span(text)), path);
  return text;
}

std::filesystem::path temporary_name(const std::filesystem::path& path) {
  return path.string() + fmt::format(".tmp-{}", ::getpid());
}

std::filesystem::path parent_of(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  return parent.empty() ? std::filesystem::path(".") : parent;
}

void rename_path(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_errno("what is finished cannot be put in place", to, errno);
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  const std::filesystem::path temporary = temporary_name(path);
  try {
    const UniqueFd fd = open_to_write(temporary);
    write_all(fd.get(), std::as_bytes(std::span(bytes)), temporary);
    sync_file(fd.get(), temporary);
    rename_path(temporary, path);
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_path(parent_of(path));
}

}  // namespace snug
