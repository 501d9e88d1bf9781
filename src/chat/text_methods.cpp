// Methods of str.

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "chat/attributes.h"
#include "chat/characters.h"
#include "chat/format.h"
#include "chat/markup.h"
#include "chat/python_text.h"
#include "chat/search.h"
#include "chat/text_operations.h"

namespace snug::chat {
namespace {

Value texts(const TextRef& self, const std::vector<TextRef>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const TextRef& part : parts) items.push_back(Value::text(with_markup(part, self->markup())));
  return Value::list(std::move(items));
}

template <bool left, bool right>
Value strip(Interpreter&, const Value& self, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "strip", "/?chars");
  return Value::text(snug::chat::strip(self.text(), bound.given(0) ? bound.text(0) : nullptr, left, right));
}

template <bool from_right>
Value split(Interpreter&, const Value& self, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "split", "?sep ?maxsplit");
  const int64_t most = bound.integer(1, -1);
  if (!bound.given(0)) return texts(self.text(), split_space(self.text(), most, from_right));
  return texts(self.text(), snug::chat::split(self.text(), bound.text(0)->view(), most, from_right));
}

Value splitlines(Interpreter&, const Value& self, CallArguments& arguments) {
  return texts(self.text(), split_lines(self.text(), match_arguments(arguments, "splitlines", "?keepends").flag(0, false)));
}

template <bool last>
Value partition(Interpreter&, const Value& self, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "partition", "/sep");
  const TextRef& text = self.text();
  const TextRef& separator = bound.text(0);
  if (separator->size() == 0) throw Error("empty separator");
  const int64_t at =
      last ? find_last_bytes(text->view(), separator->view()) : find_bytes(text->view(), separator->view(), 0);
  const Value nothing = Value::text(std::string());
  if (at < 0)
    return Value::tuple(last ? std::vector<Value>{nothing, nothing, self} : std::vector<Value>{self, nothing, nothing});
  return Value::tuple(
      {Value::text(text->piece(0, at)), bound.at(0), Value::text(text->piece(at + separator->size(), text->size()))});
}

// The part of the text that optional arguments `from` and `from + 1` choose, in bytes.
std::pair<int64_t, int64_t> chosen(const Text& text, const Bound& bound, size_t from) {
  const int64_t length = text.length();
  const auto place = [&](size_t i, int64_t otherwise) {
    const int64_t at = bound.given(i) ? bound.integer(i, otherwise) : otherwise;
    return at < 0 ? std::max<int64_t>(at + length, 0) : at;
  };
  const int64_t begin = place(from, 0);
  const int64_t end = std::min(place(from + 1, length), length);
  return begin > end ? std::pair<int64_t, int64_t>{-1, -1} : std::pair{text.offset_of(begin), text.offset_of(end)};
}

template <bool at_end>
Value has_affix(Interpreter&, const Value& self, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, at_end ? "endswith" : "startswith", "/affix ?start ?end");
  const auto [begin, end] = chosen(*self.text(), bound, 1);
  if (begin < 0) return Value::boolean(false);
  const std::string_view text = self.view().substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  const auto matches = [&text](const Value& affix) {
    if (!affix.is_string())
      throw Error(fmt::format("startswith and endswith need str or a tuple of str, not {}", type_name(affix)));
    spend_bytes(affix.text()->size());
    return at_end ? text.ends_with(affix.view()) : text.starts_with(affix.view());
  };
  if (bound.at(0).is_undefined()) refuse_undefined(bound.at(0));
  if (!bound.at(0).is(Flavor::tuple)) return Value::boolean(matches(bound.at(0)));
  return Value::boolean(std::ranges::any_of(bound.at(0).sequence()->items, matches));
}

int64_t find_index(const Value& self, const Bound& bound, bool last) {
  const Text& text = *self.text();
  const auto [begin, end] = chosen(text, bound, 1);
  if (begin < 0) return -1;
  const std::string_view part = text.view().substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  const std::string_view wanted = bound.text(0)->view();
  const int64_t at = last ? find_last_bytes(part, wanted) : find_bytes(part, wanted, 0);
  return at < 0 ? -1 : text.index_at(begin + at);
}

template <bool last, bool must>
Value find(Interpreter&, const Value& self, CallArguments& arguments) {
  const int64_t at = find_index(self, match_arguments(arguments, "find", "/sub ?start ?end"), last);
  if (must && at < 0) throw Error("substring not found");
  return Value::integer(at);
}

Value count_method(Interpreter&, const Value& self, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "count", "/sub ?start ?end");
  const auto [begin, end] = chosen(*self.text(), bound, 1);
  if (begin < 0) return Value::integer(0);
  return Value::integer(
      count_of(self.view().substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), bound.text(0)->view()));
}

Value replace_method(Interpreter&, const Value& self, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "replace", "/old new ?count");
  TextRef by = bound.text(1);
  if (self.text()->markup()) by = escape_markup(by);
  return Value::text(snug::chat::replace(self.text(), bound.text(0)->view(), by, bound.integer(2, -1)));
}

Value upper(Interpreter&, const Value& self, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "upper", ""));
  return Value::text(map_characters(self.text(), [](std::string& out, char32_t c) { append_cased(out, c, Case::upper); }));
}

Value lower(Interpreter&, const Value& self, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "lower", ""));
  return Value::text(snug::chat::lower(self.text()));
}

Value capitalize(Interpreter&, const Value& self, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "capitalize", ""));
  return Value::text(map_characters(self.text(), [first = true](std::string& out, char32_t c) mutable {
    append_cased(out, c, std::exchange(first, false) ? Case::title : Case::lower);
  }));
}

Value title_method(Interpreter&, const Value& self, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "title", ""));
  return Value::text(map_characters(self.text(), [inside = false](std::string& out, char32_t c) mutable {
    append_cased(out, c, inside ? Case::lower : Case::title);
    inside = is_upper(c) || is_lower(c) || is_title(c);
  }));
}

Value swapcase(Interpreter&, const Value& self, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "swapcase", ""));
  return Value::text(map_characters(
      self.text(), [](std::string& out, char32_t c) { append_cased(out, c, is_lower(c) ? Case::upper : Case::lower); }));
}

template <bool at_end>
Value remove_affix(Interpreter&, const Value& self, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "removeprefix", "/affix");
  const TextRef& text = self.text();
  const TextRef& affix = bound.text(0);
  spend_bytes(affix->size());
  if (at_end ? !text->view().ends_with(affix->view()) : !text->view().starts_with(affix->view())) return self;
  return Value::text(at_end ? text->piece(0, text->size() - affix->size()) : text->piece(affix->size(), text->size()));
}

Value join_method(Interpreter&, const Value& self, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "join", "/iterable");
  const SequenceRef items = iterate(bound.at(0));
  TextBuilder builder;
  for (size_t i = 0; i < items->items.size(); ++i) {
    const Value& item = items->items[i];
    if (!item.is_string()) throw Error(fmt::format("sequence item {}: expected str instance, {} found", i, type_name(item)));
    if (i > 0) builder.add(*self.text());
    builder.add(self.text()->markup() ? *escape_markup(item.text()) : *item.text());
  }
  return Value::text(builder.take(self.text()->markup()));
}

Value format_method(Interpreter&, const Value& self, CallArguments& arguments) {
  return Value::text(format_braces(self.text(), arguments));
}

template <Align align>
Value justify(Interpreter&, const Value& self, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "center", "/width ?fill");
  const TextRef fill = bound.has(1) ? bound.text(1) : make_text(" ");
  if (fill->length() != 1) throw Error("the fill must be one character");
  return Value::text(pad(self.text(), bound.integer(0, 0), fill->view(), align));
}

Value zfill(Interpreter&, const Value& self, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "zfill", "/width");
  const bool sign = self.view().starts_with('-') || self.view().starts_with('+');
  const TextRef digits = self.text()->piece(sign ? 1 : 0, self.text()->size());
  TextBuilder builder;
  builder.add(*self.text(), 0, sign ? 1 : 0);
  builder.add(*pad(digits, bound.integer(0, 0) - (sign ? 1 : 0), "0", Align::right));
  return Value::text(builder.take());
}

template <bool (*accepts)(char32_t)>
Value all_are(Interpreter&, const Value& self, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "is…", ""));
  spend_bytes(self.text()->size());
  for (std::string_view rest = self.view(); !rest.empty(); rest.remove_prefix(utf8_length(rest[0])))
    if (!accepts(decode(rest))) return Value::boolean(false);
  return Value::boolean(self.text()->size() > 0);
}

template <bool (*wanted)(char32_t), bool (*other)(char32_t)>
Value all_cased(Interpreter&, const Value& self, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "isupper", ""));
  spend_bytes(self.text()->size());
  bool found = false;
  for (std::string_view rest = self.view(); !rest.empty(); rest.remove_prefix(utf8_length(rest[0]))) {
    if (other(decode(rest)) || is_title(decode(rest))) return Value::boolean(false);
    found = found || wanted(decode(rest));
  }
  return Value::boolean(found);
}

Value istitle(Interpreter&, const Value& self, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "istitle", ""));
  bool inside = false;
  bool found = false;
  for (std::string_view rest = self.view(); !rest.empty(); rest.remove_prefix(utf8_length(rest[0]))) {
    const char32_t c = decode(rest);
    const bool capital = is_upper(c) || is_title(c);
    if ((capital && inside) || (is_lower(c) && !inside)) return Value::boolean(false);
    inside = capital || is_lower(c);
    found = found || inside;
  }
  return Value::boolean(found);
}

Value isprintable(Interpreter& interpreter, const Value& self, CallArguments& arguments) {
  return self.text()->size() == 0 ? Value::boolean(true) : all_are<is_printable>(interpreter, self, arguments);
}

Value isascii(Interpreter&, const Value& self, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "isascii", ""));
  return Value::boolean(self.text()->ascii());
}

constexpr std::pair<std::string_view, Method> kMethods[] = {
    {"strip", strip<true, true>},
    {"lstrip", strip<true, false>},
    {"rstrip", strip<false, true>},
    {"split", split<false>},
    {"rsplit", split<true>},
    {"splitlines", splitlines},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"startswith", has_affix<false>},
    {"endswith", has_affix<true>},
    {"find", find<false, false>},
    {"rfind", find<true, false>},
    {"index", find<false, true>},
    {"rindex", find<true, true>},
    {"count", count_method},
    {"replace", replace_method},
    {"upper", upper},
    {"lower", lower},
    {"capitalize", capitalize},
    {"title", title_method},
    {"swapcase", swapcase},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"join", join_method},
    {"format", format_method},
    {"ljust", justify<Align::left>},
    {"rjust", justify<Align::right>},
    {"center", justify<Align::center>},
    {"zfill", zfill},
    {"isspace", all_are<is_space>},
    {"isalpha", all_are<is_alpha>},
    {"isalnum", all_are<is_alnum>},
    {"isdigit", all_are<is_digit>},
    {"isdecimal", all_are<is_decimal>},
    {"isnumeric", all_are<is_numeric>},
    {"isupper", all_cased<is_upper, is_lower>},
    {"islower", all_cased<is_lower, is_upper>},
    {"istitle", istitle},
    {"isprintable", isprintable},
    {"isascii", isascii},
};

}  // namespace

Method find_text_method(std::string_view name) {
  const auto* found = std::ranges::find(kMethods, name, [](const auto& entry) { return entry.first; });
  return found == std::end(kMethods) ? nullptr : found->second;
}

}  // namespace snug::chat
