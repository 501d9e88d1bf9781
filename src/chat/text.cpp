#include "chat/text.h"

#include <algorithm>

namespace snug::chat {
namespace {

constexpr int64_t kTextOverhead = 96;  // bytes of a shared Text besides its characters

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

int64_t characters_of(std::string_view bytes) { return std::ranges::count_if(bytes, starts_character); }

int64_t bytes_of(const std::string& bytes, const std::vector<Run>& runs) {
  return kTextOverhead + static_cast<int64_t>(bytes.capacity() + runs.capacity() * sizeof(Run));
}

Tag filled(Tag tag, const Tag& fill) {
  if (tag.origin < 0) tag.origin = fill.origin;
  if (tag.turn < 0) tag.turn = fill.turn;
  if (tag.generation < 0) tag.generation = fill.generation;
  return tag;
}

}  // namespace

Text::Text(std::string bytes, std::vector<Run> runs, bool markup)
    : bytes_(std::move(bytes)),
      runs_(std::move(runs)),
      length_(characters_of(bytes_)),
      markup_(markup),
      charge_(bytes_of(bytes_, runs_)) {
  spend(size() / (4 * Meter::kBytesPerStep));
}

int64_t Text::offset_of(int64_t index) const {
  if (ascii() || index == 0) return index;
  if (index >= length_) return size();
  spend_bytes(size());
  int64_t offset = 0;
  for (int64_t seen = -1; offset < size(); ++offset) {
    if (starts_character(bytes_[static_cast<size_t>(offset)]) && ++seen == index) break;
  }
  return offset;
}

int64_t Text::index_at(int64_t offset) const {
  if (ascii()) return offset;
  spend_bytes(offset);
  return characters_of(view().substr(0, static_cast<size_t>(offset)));
}

TextRef Text::piece(int64_t begin, int64_t end) const {
  TextBuilder builder;
  builder.add(*this, begin, end);
  return builder.take(markup_);
}

TextRef make_tagged(std::string bytes, const Tag& tag) {
  std::vector<Run> runs;
  if (!bytes.empty()) runs.push_back({static_cast<int64_t>(bytes.size()), tag});
  return std::make_shared<const Text>(std::move(bytes), std::move(runs));
}

TextRef with_markup(const TextRef& text, bool markup) {
  if (text->markup() == markup) return text;
  return std::make_shared<const Text>(text->bytes(), text->runs(), markup);
}

void TextBuilder::close_run(int64_t end, const Tag& tag) {
  const int64_t begin = runs_.empty() ? 0 : runs_.back().end;
  if (end == begin) return;
  if (!runs_.empty() && runs_.back().tag == tag) {
    runs_.back().end = end;
  } else {
    charge_.add(sizeof(Run));
    runs_.push_back({end, tag});
  }
}

void TextBuilder::add(std::string_view bytes, const Tag& tag) {
  if (bytes.empty()) return;
  charge_.add(static_cast<int64_t>(bytes.size()));
  spend_bytes(static_cast<int64_t>(bytes.size()));
  const int64_t before = size();
  bytes_.append(bytes);
  if (runs_.empty() && tag == Tag{}) return;  // all untagged: no runs are kept
  close_run(before, Tag{});
  close_run(size(), tag);
}

void TextBuilder::add(const Text& text, const Tag& fill) { add(text, 0, text.size(), fill); }

void TextBuilder::add(const Text& text, int64_t begin, int64_t end, const Tag& fill) {
  const std::string_view bytes = text.view();
  if (text.runs().empty()) return add(bytes.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), fill);
  auto run = std::upper_bound(text.runs().begin(), text.runs().end(), begin,
                              [](int64_t offset, const Run& candidate) { return offset < candidate.end; });
  for (; begin < end && run != text.runs().end(); ++run) {
    const int64_t stop = std::min(end, run->end);
    add(bytes.substr(static_cast<size_t>(begin), static_cast<size_t>(stop - begin)), filled(run->tag, fill));
    begin = stop;
  }
  add(bytes.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), fill);
}

TextRef TextBuilder::take(bool markup) {
  if (!runs_.empty()) close_run(size(), Tag{});
  charge_.release();
  auto text = std::make_shared<const Text>(std::move(bytes_), std::move(runs_), markup);
  bytes_.clear();
  runs_.clear();
  return text;
}

}  // namespace snug::chat
