#include "tokenizer/normal_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "tokenizer/unicode_tables.h"

namespace snug {
namespace {

constexpr uint32_t kTableEnd = 0x30000;  // no character from here on decomposes or combines
constexpr unsigned kComposed = 1U << static_cast<unsigned>(NormalForm::nfc) | 1U << static_cast<unsigned>(NormalForm::nfkc);
constexpr uint32_t kHangul = 0xAC00, kHangulEnd = kHangul + 11172;

struct Item {
  uint32_t character;
  int32_t change;  // 1: added; 0: in place of one character; -n: in place of that and the n after it
  uint8_t rank;    // canonical combining class
};

bool is_composed(NormalForm form) { return form == NormalForm::nfc || form == NormalForm::nfkc; }
bool is_compatible(NormalForm form) { return form == NormalForm::nfkc || form == NormalForm::nfkd; }

// What utf8proc knows, less what is younger than Unicode 9; made once.
class Data {
 public:
  static const Data& get() {
    static const Data data;
    return data;
  }

  uint8_t rank(uint32_t c) const { return c < kTableEnd ? ranks_[c] : uint8_t{0}; }

  // True if `c` stays as it is whatever stands around it, but that it may take following characters into it.
  bool stays(uint32_t c, NormalForm form) const { return c >= kTableEnd || (moves_[c] & bit(form)) == 0; }

  template <typename F>
  void decompose(uint32_t c, bool compatible, const F& emit) const {
    if (c < 0x80 || c >= kTableEnd || inert_[c]) return emit(c);
    std::array<utf8proc_int32_t, 32> parts{};
    int last_class = 0;
    const auto options =
        static_cast<utf8proc_option_t>(compatible ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE);
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(c), parts.data(), static_cast<utf8proc_ssize_t>(parts.size()), options, &last_class);
    if (count <= 0 || count > static_cast<utf8proc_ssize_t>(parts.size())) return emit(c);
    for (utf8proc_ssize_t i = 0; i < count; ++i) emit(static_cast<uint32_t>(parts[static_cast<size_t>(i)]));
  }

  std::optional<uint32_t> compose(uint32_t a, uint32_t b) const {
    if (a >= 0x1100 && a < 0x1113 && b >= 0x1161 && b < 0x1176) return kHangul + ((a - 0x1100) * 21 + (b - 0x1161)) * 28;
    if (a >= kHangul && a < kHangulEnd && (a - kHangul) % 28 == 0 && b > 0x11A7 && b < 0x11C3) return a + (b - 0x11A7);
    const auto found = pairs_.find(uint64_t{a} << 32 | b);
    return found == pairs_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  Data() : ranks_(kTableEnd), moves_(kTableEnd), inert_(kTableEnd) {
    for (const CodeRange range : inert_ranges())
      std::fill(inert_.begin() + range.first, inert_.begin() + range.last + 1, true);
    for (uint32_t c = 0x80; c < kTableEnd; ++c) {
      if (!inert_[c])
        ranks_[c] = static_cast<uint8_t>(utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class);
    }
    for (size_t length = 2; length <= 4; ++length) read_pairs(length);
    for (const auto& [pair, composite] : pairs_) mark(static_cast<uint32_t>(pair), kComposed);
    for (uint32_t c = 0x1161; c < 0x1176; ++c) mark(c, kComposed);
    for (uint32_t c = 0x11A8; c < 0x11C3; ++c) mark(c, kComposed);
    for (uint32_t c = 0x80; c < kTableEnd; ++c) read_moves(c);
  }

  void mark(uint32_t c, unsigned bits) { moves_[c] = static_cast<uint8_t>(moves_[c] | bits); }
  static constexpr uint8_t bit(NormalForm form) { return static_cast<uint8_t>(1U << static_cast<unsigned>(form)); }

  // Pairs that compose to characters whose full decomposition has `length` characters; shorter ones are known.
  void read_pairs(size_t length) {
    std::vector<uint32_t> parts;
    for (uint32_t c = 0xC0; c < kTableEnd; ++c) {
      if (inert_[c] || ranks_[c] != 0 || (c >= kHangul && c < kHangulEnd)) continue;
      parts.clear();
      decompose(c, false, [&](uint32_t part) { parts.push_back(part); });
      if (parts.size() != length || ranks_[parts[0]] != 0) continue;
      if (utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->comp_exclusion != 0) continue;
      std::optional<uint32_t> first = parts[0];
      for (size_t i = 1; i + 1 < length && first; ++i) first = compose(*first, parts[i]);
      if (first) pairs_.emplace(uint64_t{*first} << 32 | parts.back(), c);
    }
  }

  void read_moves(uint32_t c) {
    if (ranks_[c] != 0) mark(c, 0xFF);
    for (const NormalForm form : {NormalForm::nfc, NormalForm::nfd, NormalForm::nfkc, NormalForm::nfkd}) {
      std::optional<uint32_t> whole;
      size_t count = 0;
      decompose(c, is_compatible(form), [&](uint32_t part) {
        whole = count++ == 0 ? part : whole ? compose(*whole, part) : whole;
      });
      if (is_composed(form) ? whole != c : count != 1 || whole != c) mark(c, bit(form));
    }
  }

  std::vector<uint8_t> ranks_, moves_;
  std::vector<bool> inert_;
  std::unordered_map<uint64_t, uint32_t> pairs_;
};

// The items composed in place: the algorithm of UAX #15 on items in canonical order.
void compose(std::vector<Item>& items, const Data& data) {
  size_t kept = 0;
  size_t starter = 0;
  bool has_starter = false;
  int last_rank = -1;  // of what stands between the starter and here; -1: nothing
  for (const Item item : items) {
    if (has_starter && last_rank < item.rank) {
      if (const auto whole = data.compose(items[starter].character, item.character)) {
        items[starter].character = *whole;
        items[starter].change += item.change - 1;
        continue;
      }
    }
    if (item.rank == 0) {
      starter = kept;
      has_starter = true;
      last_rank = -1;
    } else {
      last_rank = item.rank;
    }
    items[kept++] = item;
  }
  items.resize(kept);
}

// Writes items in place of the bytes of `from` from `at` on.
void write(const std::vector<Item>& items, const TextPiece& from, size_t at, AlignedText& to) {
  const auto skip = [&] {
    at = std::min(from.text.size(), at + utf8_length(from.text[std::min(at, from.text.size() - 1)]));
  };
  for (const Item& item : items) {
    TextOrigin origin{from.shift, from.shift};
    if (to.tracked && item.change > 0 && at > 0) origin = from.origin(at - 1);
    if (to.tracked && item.change <= 0) origin = from.origin(std::min(at, from.text.size() - 1));
    for (int32_t i = item.change; i <= 0; ++i) skip();
    std::string character;
    append_utf8(character, item.character);
    to.append(character, origin);
  }
}

}  // namespace

bool is_plainly_normal(std::string_view text, NormalForm form) {
  size_t i = 0;
  while (i < text.size() && static_cast<unsigned char>(text[i]) < (form == NormalForm::nfc ? 0xCC : 0x80)) ++i;
  if (i == text.size()) return true;
  const Data& data = Data::get();
  while (i < text.size()) {
    const CodePoint c = code_point_at(text, i);
    if (!data.stays(c.value, form)) return false;
    i += c.bytes;
  }
  return true;
}

void append_normal_form(const TextPiece& from, NormalForm form, AlignedText& to) {
  const Data& data = Data::get();
  const std::string_view text = from.text;
  std::vector<Item> items;
  size_t done = 0;      // up to here everything is written
  size_t previous = 0;  // the character before `at`, or `at`
  for (size_t at = 0; at < text.size();) {
    CodePoint c = code_point_at(text, at);
    if (data.stays(c.value, form)) {
      previous = at;
      at += c.bytes;
      continue;
    }
    // The characters from the last one that stays (it may take others into it) to the next one that does.
    const size_t begin = std::max(done, previous);
    to.copy(from, done, begin);
    items.clear();
    size_t end = begin;
    while (end < text.size()) {
      c = code_point_at(text, end);
      if (end > at && data.stays(c.value, form)) break;
      int32_t change = 0;
      data.decompose(c.value, is_compatible(form), [&](uint32_t part) {
        items.push_back({part, change, data.rank(part)});
        change = 1;
      });
      end += c.bytes;
    }
    for (auto block = items.begin(); block != items.end();) {  // canonical order
      const auto next = std::find_if(block + 1, items.end(), [](const Item& item) { return item.rank == 0; });
      std::stable_sort(block->rank == 0 ? block + 1 : block, next,
                       [](const Item& a, const Item& b) { return a.rank < b.rank; });
      block = next;
    }
    if (is_composed(form)) compose(items, data);
    write(items, from, begin, to);
    done = previous = at = end;
  }
  to.copy(from, done, text.size());
}

}  // namespace snug
