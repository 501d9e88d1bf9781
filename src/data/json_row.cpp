#include "data/json_row.h"

#include <simdjson.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/quote.h"
#include "base/utf8.h"

namespace snug {
namespace {

namespace dom = simdjson::dom;

constexpr int kDeepest = 100;

[[noreturn]] void refuse_line(const std::string& what, const std::string& mend) { throw Error(what, {}, mend); }

// The four hex digits after a "\u" at `at`; none if they are not.
std::optional<unsigned> code_unit(std::string_view text, size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(at + 2, 4)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(digit);
  }
  return value;
}

// Where half of a surrogate pair stands without the other, which no Unicode text can hold.
std::optional<size_t> lone_surrogate(std::string_view text) {
  for (size_t at = text.find('\\'); at != std::string_view::npos; at = text.find('\\', at)) {
    const auto unit = code_unit(text, at);
    if (!unit) {
      at += 2;
    } else if (*unit >= 0xDC00 && *unit <= 0xDFFF) {
      return at;
    } else if (*unit >= 0xD800 && *unit <= 0xDBFF) {
      const auto low = code_unit(text, at + 6);
      if (!low || *low < 0xDC00 || *low > 0xDFFF) return at;
      at += 12;
    } else {
      at += 6;
    }
  }
  return std::nullopt;
}

// Bytes of `text` before the first that belongs to no character.
size_t valid_prefix(std::string_view text) {
  size_t low = 0;
  while (low < text.size()) {
    const size_t length = utf8_length(text[low]);
    if (low + length > text.size() || !is_utf8(text.substr(low, length))) break;
    low += length;
  }
  return low;
}

JsonValue tree(dom::element element, int depth) {
  if (depth > kDeepest) refuse_line("the row is nested deeper than 100 levels", "make it flatter");
  switch (element.type()) {
    case dom::element_type::NULL_VALUE: return {};
    case dom::element_type::BOOL: return JsonValue(bool(element));
    case dom::element_type::INT64: return JsonValue(int64_t(element));
    case dom::element_type::UINT64: return JsonValue(static_cast<double>(uint64_t(element)));
    case dom::element_type::DOUBLE: return JsonValue(double(element));
    case dom::element_type::STRING: return JsonValue(std::string_view(element));
    case dom::element_type::ARRAY: {
      JsonValue::List items;
      for (const dom::element item : dom::array(element)) items.push_back(tree(item, depth + 1));
      return JsonValue(std::move(items));
    }
    case dom::element_type::OBJECT: {
      JsonValue::Object members;
      for (const auto field : dom::object(element))
        members.push_back({std::string(field.key), tree(field.value, depth + 1)});
      return JsonValue(std::move(members));
    }
  }
  return {};
}

}  // namespace

struct JsonRowParser::State {
  dom::parser parser;
  std::string text;  // with room for simdjson to read beyond the end
};

JsonRowParser::JsonRowParser() : state_(std::make_unique<State>()) {}
JsonRowParser::~JsonRowParser() = default;

namespace {

dom::element parse_text(dom::parser& parser, std::string& padded, std::string_view text) {
  padded.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  padded.assign(text);
  dom::element element;
  const auto error = parser.parse(padded.data(), padded.size(), false).get(element);
  if (error == simdjson::SUCCESS && !lone_surrogate(text)) return element;
  if (error == simdjson::UTF8_ERROR)
    refuse_line("not UTF-8 from byte " + std::to_string(valid_prefix(text)) + " of the row on", "save the file as UTF-8");
  if (const auto at = lone_surrogate(text)) {
    refuse_line(
        "half a surrogate pair (" + std::string(text.substr(*at, 6)) + ") at byte " + std::to_string(*at) + " of the row",
        "repair the text or remove the row");
  }
  refuse_line(std::string("not valid JSON: ") + simdjson::error_message(error), "write one JSON object on each line");
}

}  // namespace

JsonValue JsonRowParser::parse(std::string_view text, const std::vector<std::string>& wanted) {
  const dom::element element = parse_text(state_->parser, state_->text, text);
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) refuse_line("not a JSON object", "write {…} for each row");
  JsonValue::Object members;
  for (const auto field : object) {
    if (!wanted.empty() && std::ranges::find(wanted, field.key) == wanted.end()) continue;
    if (std::ranges::find(members, field.key, &JsonMember::name) != members.end())
      refuse_line(quote(field.key) + " stands twice", "keep one");
    members.push_back({std::string(field.key), tree(field.value, 1)});
  }
  return JsonValue(std::move(members));
}

JsonValue JsonRowParser::parse_value(std::string_view text) {
  return tree(parse_text(state_->parser, state_->text, text), 1);
}

}  // namespace snug
