#include <fmt/format.h>

#include <charconv>

#include "base/quote.h"
#include "base/utf8.h"
#include "chat/attributes.h"
#include "chat/characters.h"
#include "chat/format.h"
#include "chat/python_text.h"

namespace snug::chat {
namespace {

int64_t take_number(std::string_view& rest) {
  int64_t value = 0;
  while (!rest.empty() && is_ascii_digit(rest[0])) {
    value = value * 10 + (rest[0] - '0');
    if (value > Meter::kMostBytes) throw Error("a width is too large");
    rest.remove_prefix(1);
  }
  return value;
}

NumberStyle parse_style(std::string_view rest) {
  constexpr std::string_view kAligns = "<>^=";
  NumberStyle style;
  const size_t first = rest.empty() ? 0 : utf8_length(rest[0]);
  if (rest.size() > first && first > 0 && kAligns.find(rest[first]) != std::string_view::npos) {
    style.fill = std::string(rest.substr(0, first));
    style.align = rest[first];
    rest.remove_prefix(first + 1);
  } else if (!rest.empty() && kAligns.find(rest[0]) != std::string_view::npos) {
    style.align = rest[0];
    rest.remove_prefix(1);
  }
  const auto skip = [&](std::string_view any) {
    if (rest.empty() || any.find(rest[0]) == std::string_view::npos) return '\0';
    const char c = rest[0];
    rest.remove_prefix(1);
    return c;
  };
  if (const char sign = skip("+- ")) style.sign = sign;
  style.alternate = skip("#") != '\0';
  if (skip("0") != '\0' && style.align == '\0') {
    style.fill = "0";
    style.align = '=';
  }
  style.width = take_number(rest);
  style.grouping = skip(",_");
  if (skip(".") != '\0') {
    if (rest.empty() || !is_ascii_digit(rest[0])) throw Error("a precision is missing");
    style.precision = take_number(rest);
  }
  if (!rest.empty()) {
    style.type = rest[0];
    rest.remove_prefix(1);
  }
  if (!rest.empty()) throw Error("invalid format specifier");
  return style;
}

TextRef apply_style(const Value& value, std::string_view text) {
  if (text.empty()) return to_str(value);
  NumberStyle style = parse_style(text);
  if (value.as_real()) {
    return lay_out(make_text(format_number(value, style)), style, style.align == '\0' ? '>' : style.align);
  }
  if (!value.is_string()) throw Error(fmt::format("a format after ':' cannot be used for {}", type_name(value)));
  if ((style.type != '\0' && style.type != 's') || style.sign != '-' || style.grouping != '\0' || style.align == '=') {
    throw Error("invalid format specifier for a string");
  }
  TextRef shown = value.text();
  if (style.precision >= 0 && style.precision < shown->length()) shown = shown->piece(0, shown->offset_of(style.precision));
  return lay_out(shown, style, style.align == '\0' ? '<' : style.align);
}

class BraceFormat {
 public:
  BraceFormat(const TextRef& format, const CallArguments& arguments) : format_(*format), arguments_(arguments) {}

  TextRef run() {
    const std::string_view all = format_.view();
    for (size_t at = 0; at < all.size();) {
      const size_t brace = std::min(all.find_first_of("{}", at), all.size());
      out_.add(format_, static_cast<int64_t>(at), static_cast<int64_t>(brace));
      if (brace == all.size()) break;
      if (brace + 1 < all.size() && all[brace + 1] == all[brace]) {
        out_.add(all.substr(brace, 1));
        at = brace + 2;
        continue;
      }
      if (all[brace] == '}') throw Error("Single '}' encountered in format string");
      const size_t end = field_end(all, brace);
      out_.add(*field(all.substr(brace + 1, end - brace - 1), 2));
      at = end + 1;
    }
    return out_.take(format_.markup());
  }

 private:
  static size_t field_end(std::string_view all, size_t brace) {
    int depth = 0;
    for (size_t at = brace; at < all.size(); ++at) {
      depth += all[at] == '{' ? 1 : all[at] == '}' ? -1 : 0;
      if (depth == 0) return at;
    }
    throw Error("expected '}' before end of string");
  }

  TextRef field(std::string_view text, int levels) {
    if (levels == 0) throw Error("a format nests too deeply");
    const size_t split = std::min(text.find_first_of(":!"), text.size());
    Value value = find(text.substr(0, split));
    text.remove_prefix(split);
    if (text.starts_with('!')) {
      const char conversion = text.size() > 1 ? text[1] : '\0';
      if (conversion != 's' && conversion != 'r') throw Error("a conversion other than !s or !r is not supported");
      value = Value::text(conversion == 'r' ? to_repr(value) : to_str(value));
      text.remove_prefix(2);
      if (!text.empty() && text[0] != ':') throw Error("expected ':' after conversion specifier");
    }
    if (text.starts_with(':')) text.remove_prefix(1);
    return apply_style(value, expand(text, levels));
  }

  // The style may hold fields itself.
  std::string expand(std::string_view text, int levels) {
    std::string style;
    while (!text.empty()) {
      const size_t brace = std::min(text.find('{'), text.size());
      style += text.substr(0, brace);
      text.remove_prefix(brace);
      if (text.empty()) break;
      const size_t end = field_end(text, 0);
      style += field(text.substr(1, end - 1), levels - 1)->view();
      text.remove_prefix(end + 1);
    }
    return style;
  }

  Value find(std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, end));
    for (std::string_view rest = name.substr(end); !rest.empty();) {
      if (rest[0] == '.') {
        const size_t stop = std::min(rest.find_first_of(".[", 1), rest.size());
        if (stop == 1) throw Error("Empty attribute in format string");
        value = get_attribute(value, std::string(rest.substr(1, stop - 1)));
        rest.remove_prefix(stop);
      } else {
        const size_t stop = rest.find(']');
        if (rest[0] != '[' || stop == std::string_view::npos || stop == 1) throw Error("Missing ']' in format string");
        const std::string key(rest.substr(1, stop - 1));
        int64_t index = 0;
        const auto [parsed, error] = std::from_chars(key.data(), key.data() + key.size(), index);
        const bool number = is_ascii_digit(key[0]) && error == std::errc{} && parsed == key.data() + key.size();
        value = get_item(value, number ? Value::integer(index) : Value::text(key));
        rest.remove_prefix(stop + 1);
      }
    }
    return value;
  }

  const Value& first(std::string_view name) {
    size_t index = 0;
    const bool number = !name.empty() && is_ascii_digit(name[0]);
    if (name.empty() || number) {
      if ((name.empty() && automatic_ < 0) || (number && automatic_ > 0)) {
        throw Error("a format mixes fields with and without numbers");
      }
      if (number) {
        automatic_ = -1;
        std::from_chars(name.data(), name.data() + name.size(), index);
      } else {
        index = static_cast<size_t>(automatic_++);
      }
      if (index >= arguments_.positional.size()) throw Error(fmt::format("the format needs {} values", index + 1));
      return arguments_.positional[index];
    }
    for (const auto& [key, value] : arguments_.named)
      if (key == name) return value;
    throw Error(fmt::format("the format names {}, which is not given", quote(name)));
  }

  const Text& format_;
  const CallArguments& arguments_;
  TextBuilder out_;
  int64_t automatic_ = 0;  // the next field without number; -1: fields have numbers
};

}  // namespace

TextRef format_braces(const TextRef& format, const CallArguments& arguments) { return BraceFormat(format, arguments).run(); }

}  // namespace snug::chat
