#include "run/page_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace snug {

namespace {

constexpr int64_t kRoundBytes = int64_t{8} << 20;

UniqueFd opened(const std::filesystem::path& path, int flags) {
  UniqueFd fd;
  do {
    fd = UniqueFd(::open(path.c_str(), flags | O_RDWR | O_CLOEXEC, 0600));
  } while (!fd && errno == EINTR);
  return fd;
}

}  // namespace

PageFile::PageFile(std::filesystem::path path, int64_t bytes) : path_(std::move(path)), bytes_(bytes) {
  fd_ = opened(path_, O_CREAT | O_TRUNC);
  if (!fd_) throw_errno("the file for pages cannot be created", path_, errno);
  direct_ = opened(path_, O_DIRECT);
  if (!direct_ && errno != EINVAL && errno != EOPNOTSUPP)  // not every file system has it
    throw_errno("the file for pages cannot be opened", path_, errno);
  if (::unlink(path_.c_str()) != 0) throw_errno("the file for pages cannot be made nameless", path_, errno);
  reserve();
  if (direct_) ring_.emplace(direct_.get());
  if (ring_ && !ring_->works()) ring_.reset();
}

void PageFile::reserve() const {
  int code = 0;
  do {
    code = ::posix_fallocate(fd_.get(), 0, bytes_);
  } while (code == EINTR);
  if (code == 0) return;
  const std::string what =
      fmt::format("{} bytes for pages on disk are not to be had: {}", bytes_, std::generic_category().message(code));
  throw Error(what, path_.string(),
              "free some space, choose another output_dir, or keep more in memory: an optim that is not paged, no offload");
}

void PageFile::fail(const char* what, int code) const {
  throw Error(fmt::format("{}: {}", what, std::generic_category().message(code)), path_.string(),
              "checkpoints written before are good: when the disk is, add --resume-from-checkpoint");
}

void PageFile::read(int64_t offset, std::span<std::byte> out) const {
  const auto bytes = static_cast<int64_t>(out.size());
  for (int64_t done = 0; done < bytes;) {
    const ssize_t count = ::pread(fd_.get(), out.data() + done, static_cast<size_t>(bytes - done), offset + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail("a page cannot be read", count < 0 ? errno : EIO);
    done += count;
  }
  static_cast<void>(::posix_fadvise(fd_.get(), offset, bytes, POSIX_FADV_DONTNEED));
}

void PageFile::write(int64_t offset, std::span<const std::byte> bytes) {
  written_ = true;
  const auto size = static_cast<int64_t>(bytes.size());
  for (int64_t done = 0; done < size;) {
    const ssize_t count = ::pwrite(fd_.get(), bytes.data() + done, static_cast<size_t>(size - done), offset + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail("a page cannot be written", count < 0 ? errno : EIO);
    done += count;
  }
  round_.ranges[round_.count++] = {offset, size};
  round_.bytes += size;
  if (round_.count == round_.ranges.size() || round_.bytes >= kRoundBytes) send_round();
}

// Waits until the previous round has reached the disk, which is also when the system tells of its failure.
void PageFile::send_round() {
  constexpr unsigned kWait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  for (const auto& [offset, bytes] : std::span(previous_.ranges).first(previous_.count)) {
    int result = 0;
    do {
      result = ::sync_file_range(fd_.get(), offset, bytes, kWait);
    } while (result != 0 && errno == EINTR);
    if (result != 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT)) fail("a page cannot be written", errno);
    static_cast<void>(::posix_fadvise(fd_.get(), offset, bytes, POSIX_FADV_DONTNEED));
  }
  for (const auto& [offset, bytes] : std::span(round_.ranges).first(round_.count))
    static_cast<void>(::sync_file_range(fd_.get(), offset, bytes, SYNC_FILE_RANGE_WRITE));
  previous_ = round_;
  round_.count = 0;
  round_.bytes = 0;
}

void PageFile::clear(int64_t offset, int64_t bytes) {
  if (!written_) return;  // as it was reserved
  constexpr std::array<std::byte, 65536> kZeros{};
  for (int64_t done = 0; done < bytes; done += static_cast<int64_t>(kZeros.size()))
    write(offset + done, std::span(kZeros).first(static_cast<size_t>(std::min<int64_t>(kZeros.size(), bytes - done))));
}

PageFile::Ticket PageFile::begin_read(int64_t offset, std::span<std::byte> out) {
  if (ring_) return ring_->read(offset, out.data(), static_cast<int64_t>(out.size()));
  read(offset, out);
  return kDone;
}

PageFile::Ticket PageFile::begin_write(int64_t offset, std::span<std::byte> bytes) {
  written_ = true;
  if (ring_) return ring_->write(offset, bytes.data(), static_cast<int64_t>(bytes.size()));
  write(offset, bytes);
  return kDone;
}

void PageFile::wait(Ticket ticket, bool was_write) {
  if (ticket == kDone) return;
  if (const int code = ring_->wait(ticket); code != 0)
    fail(was_write ? "a page cannot be written" : "a page cannot be read", code);
}

}  // namespace snug
