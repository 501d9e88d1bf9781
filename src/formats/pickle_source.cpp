#include "formats/pickle_source.h"

#include <algorithm>

#include "base/error.h"

namespace snug {
namespace {

constexpr size_t kBuffer = size_t{1} << 20U;
constexpr int64_t kLongestLine = 4096;

}  // namespace

PickleSource::PickleSource(const std::filesystem::path& path)
    : file_(open_to_read(path)), path_(path), where_(path.string()), size_(file_bytes(file_->get(), path)) {}

PickleSource::PickleSource(std::span<const std::byte> bytes, std::string where)
    : where_(std::move(where)),
      left_(bytes),
      size_(static_cast<int64_t>(bytes.size())),
      loaded_(static_cast<int64_t>(bytes.size())) {}

std::string_view PickleSource::take(int64_t bytes) {
  const auto count = static_cast<size_t>(bytes);
  if (left_.size() < count) load(count);
  const std::string_view taken(reinterpret_cast<const char*>(left_.data()), count);
  left_ = left_.subspan(count);
  return taken;
}

std::string_view PickleSource::line() {
  const int64_t start = offset();
  const std::string_view ahead = peek(static_cast<size_t>(kLongestLine));
  const size_t end = ahead.find('\n');
  if (end == std::string_view::npos) refuse(start, "a line without an end", "write the file again");
  const std::string_view text = take(static_cast<int64_t>(end) + 1);
  return text.substr(0, end);
}

std::string_view PickleSource::peek(size_t bytes) {
  const size_t count = std::min(bytes, static_cast<size_t>(remaining()));
  if (left_.size() < count) load(count);
  return {reinterpret_cast<const char*>(left_.data()), count};
}

void PickleSource::refuse(int64_t offset, const std::string& problem, const std::string& mend) const {
  throw Error(problem, where_ + ", byte " + std::to_string(offset), mend);
}

void PickleSource::load(size_t bytes) {
  const int64_t unread = size_ - loaded_;
  if (static_cast<int64_t>(bytes - left_.size()) > unread || !file_)
    refuse(offset(),
           "the file ends in the middle of a value (" + std::to_string(bytes) + " bytes are announced, " +
               std::to_string(remaining()) + " are left)",
           "it was not written or copied to its end; write or copy it again");
  std::vector<std::byte> larger;
  std::vector<std::byte>& target = bytes > buffer_.size() ? larger : buffer_;
  if (bytes > buffer_.size()) larger.resize(std::max(bytes, std::min(kBuffer, static_cast<size_t>(size_))));
  std::copy(left_.begin(), left_.end(), target.begin());
  const size_t kept = left_.size();
  const auto count = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(target.size() - kept), unread));
  read_at(file_->get(), loaded_, std::span(target).subspan(kept, count), path_);
  if (!larger.empty()) buffer_ = std::move(larger);
  left_ = std::span<const std::byte>(buffer_).first(kept + count);
  loaded_ += static_cast<int64_t>(count);
}

}  // namespace snug
