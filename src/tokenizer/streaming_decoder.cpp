#include "tokenizer/streaming_decoder.h"

#include <utility>

namespace snug {
namespace {

constexpr size_t kMostWaiting = 64;  // ids; no character takes as many

}  // namespace

std::string StreamingDecoder::push(int32_t id) {
  window_.push_back(id);
  const std::string text = tokenizer_->decode(window_, skip_special_tokens_);
  const bool complete = text.size() > released_.size() && !text.ends_with("\xEF\xBF\xBD");
  return complete || window_.size() - released_ids_ > kMostWaiting ? release() : std::string();
}

std::string StreamingDecoder::finish() {
  std::string rest = release();
  window_.clear();
  released_.clear();
  released_ids_ = 0;
  return rest;
}

std::string StreamingDecoder::release() {
  const std::string text = tokenizer_->decode(window_, skip_special_tokens_);
  std::string fresh = text.size() > released_.size() ? text.substr(released_.size()) : std::string();
  // Keep only the ids of the last text, as what follows may depend on the one before (a leading space may go, at the start).
  std::vector<int32_t> last(window_.begin() + static_cast<std::ptrdiff_t>(released_ids_), window_.end());
  std::string last_text = tokenizer_->decode(last, skip_special_tokens_);
  if (last_text.empty()) {
    released_ = text;
  } else {
    window_ = std::move(last);
    released_ = std::move(last_text);
  }
  released_ids_ = window_.size();
  return fresh;
}

}  // namespace snug
