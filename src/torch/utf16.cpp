#include "torch/utf16.h"

#include <algorithm>

#include "base/utf8.h"

namespace snug {

namespace {

constexpr size_t kBytesLookedAt = 64;  // bytes that are looked at

}  // namespace

std::string_view Utf16Reader::read(std::string_view bytes) {
  out_.clear();
  if (order_ == Order::none) return bytes;
  if (order_ == Order::unknown) {
    const size_t length = std::min(bytes.size(), kBytesLookedAt - head_.size());
    head_ += bytes.substr(0, length);
    bytes.remove_prefix(length);
    const bool marked = head_.starts_with('\xff') || head_.starts_with('\xfe');
    if (marked && head_.size() < kBytesLookedAt) return {};
    decide();
  }
  take_all(bytes);
  return out_;
}

std::string_view Utf16Reader::finish() {
  out_.clear();
  if (order_ == Order::unknown) decide();
  return out_;
}

// The mark tells the order; half of the bytes that follow are zero, since a log begins with plain letters.
void Utf16Reader::decide() {
  const std::string_view head = head_;
  order_ = head.starts_with("\xff\xfe") ? Order::little : head.starts_with("\xfe\xff") ? Order::big : Order::none;
  if (4 * std::ranges::count(head, '\0') < std::ssize(head) - 2) order_ = Order::none;
  take_all(order_ == Order::none ? head : head.substr(2));
  head_.clear();
}

void Utf16Reader::take_all(std::string_view bytes) {
  if (order_ == Order::none) {
    out_ += bytes;
  } else {
    for (const char c : bytes) take(static_cast<unsigned char>(c));
  }
}

void Utf16Reader::take(unsigned char byte) {
  if (first_ < 0) {
    first_ = byte;
    return;
  }
  const auto first = static_cast<uint32_t>(first_);
  put(order_ == Order::little ? first | uint32_t{byte} << 8 : first << 8 | byte);
  first_ = -1;
}

void Utf16Reader::put(uint32_t unit) {
  const bool low = unit >= 0xDC00 && unit < 0xE000;
  if (low && high_ != 0) {
    append_utf8(out_, 0x10000 + ((high_ - 0xD800) << 10) + (unit - 0xDC00));
  } else if (unit < 0xD800 || unit >= 0xE000) {
    append_utf8(out_, unit);
  }
  high_ = unit >= 0xD800 && unit < 0xDC00 ? unit : 0;
}

}  // namespace snug
