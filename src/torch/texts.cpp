#include "torch/texts.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/utf8.h"

namespace snug {
namespace {

constexpr size_t kMostTextBytes = size_t{256} << 20U;

}  // namespace

TextId Texts::intern(std::string_view text) {
  std::string mended;
  if (!is_utf8(text)) text = mended = utf8_lossy(text);
  const auto fresh = static_cast<TextId>(texts_.size());
  const TextId id = table_.find_or_add(hash_bytes(text), fresh, [&](TextId other) { return texts_[other] == text; });
  if (id != fresh) return id;
  bytes_ += text.size() + sizeof(std::string);
  if (bytes_ > kMostTextBytes)
    throw Error("more than 256 MiB of different texts", "", "record fewer events (max_entries=…)");
  texts_.emplace_back(text);
  return id;
}

}  // namespace snug
