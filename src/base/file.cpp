#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace snug {
namespace {

constexpr size_t kBuffer = size_t{1} << 20;

std::string reason() { return std::strerror(errno); }

}  // namespace

InputFile::InputFile(std::filesystem::path path, std::string mend) : path_(std::move(path)), mend_(std::move(mend)) {
  do {
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) refuse("cannot be opened: " + reason());
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::refuse(const std::string& what) const { throw Error(what, path_.string(), mend_); }

int64_t InputFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) refuse("cannot be examined: " + reason());
  if (!S_ISREG(status.st_mode)) refuse("is not a regular file");
  return status.st_size;
}

void InputFile::read_at(std::span<std::byte> bytes, int64_t offset) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(descriptor_, bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse("cannot be read: " + reason());
    if (got == 0) refuse("is truncated: it ends at byte " + std::to_string(offset));
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += got;
  }
}

size_t InputFile::read_some(std::span<std::byte> bytes) {
  for (;;) {
    const ssize_t got = ::read(descriptor_, bytes.data(), bytes.size());
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) refuse("cannot be read: " + reason());
  }
}

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)), draft_(path_) {
  draft_ += ".tmp-" + std::to_string(::getpid());
  do {
    descriptor_ = ::open(draft_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) fail("cannot be created");
  buffer_.reserve(kBuffer);
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(draft_.c_str());
}

void OutputFile::fail(const char* doing) const {
  throw Error(std::string(doing) + ": " + reason(), path_.string(), "check the directory's permissions and free space");
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kBuffer) flush();
  if (bytes.size() > kBuffer) {
    write_at(bytes, written_);
    written_ += static_cast<int64_t>(bytes.size());
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void OutputFile::flush() {
  write_at(buffer_, written_);
  written_ += static_cast<int64_t>(buffer_.size());
  buffer_.clear();
}

void OutputFile::write_at(std::span<const std::byte> bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = EIO;
    if (put <= 0) fail("cannot be written");
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += put;
  }
}

void OutputFile::write_front(std::span<const std::byte> bytes) {
  flush();
  write_at(bytes, 0);
}

void OutputFile::commit() {
  flush();
  while (::fsync(descriptor_) != 0)
    if (errno != EINTR) fail("cannot be written");
  // Closing has nothing more to tell after fsync; until the name is taken the destructor removes the draft.
  if (::rename(draft_.c_str(), path_.c_str()) != 0) fail("cannot be put in place");
  ::close(std::exchange(descriptor_, -1));
}

static std::filesystem::file_status status_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::none)
    throw Error("cannot be examined: " + error.message(), path.string(), "check the disk and the permissions");
  return status;
}

bool file_exists(const std::filesystem::path& path) { return std::filesystem::exists(status_of(path)); }

bool directory_exists(const std::filesystem::path& path) { return std::filesystem::is_directory(status_of(path)); }

std::string read_text(const std::filesystem::path& path, int64_t most_bytes, size_t spare, const std::string& mend) {
  const InputFile file(path, mend);
  const int64_t bytes = file.size();
  if (bytes > most_bytes) file.refuse("has " + std::to_string(bytes) + " bytes, more than any such file needs");
  std::string text;
  text.reserve(static_cast<size_t>(bytes) + spare);
  text.resize(static_cast<size_t>(bytes));
  file.read_at(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

}  // namespace snug
