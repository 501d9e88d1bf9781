#include "chat/python_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "chat/characters.h"

namespace snug::chat {
namespace {

std::string escaped(char32_t character, std::string_view bytes, char quote) {
  switch (character) {
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
  }
  if (character == static_cast<unsigned char>(quote)) return std::string("\\") + quote;
  if (is_printable(character)) return std::string(bytes);
  if (character < 0x100) return fmt::format("\\x{:02x}", static_cast<uint32_t>(character));
  if (character < 0x10000) return fmt::format("\\u{:04x}", static_cast<uint32_t>(character));
  return fmt::format("\\U{:08x}", static_cast<uint32_t>(character));
}

void repr_of_text(TextBuilder& out, const Text& text) {
  const std::string_view all = text.view();
  const char quote = all.find('\'') != std::string_view::npos && all.find('"') == std::string_view::npos ? '"' : '\'';
  if (text.markup()) out.add("Markup(");
  out.add(std::string_view(&quote, 1));
  int64_t begin = 0;
  const auto write = [&](int64_t end, const Tag& tag) {
    std::string part;
    for (std::string_view rest = all.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)); !rest.empty();) {
      const std::string_view character = rest.substr(0, utf8_length(rest[0]));
      part += escaped(decode(character), character, quote);
      rest.remove_prefix(character.size());
    }
    out.add(part, tag);
    begin = end;
  };
  for (const Run& run : text.runs()) write(run.end, run.tag);
  write(text.size(), {});
  out.add(std::string_view(&quote, 1));
  if (text.markup()) out.add(")");
}

void repr_of_items(TextBuilder& out, const std::vector<Value>& items, std::string_view open, std::string_view close) {
  out.add(open);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.add(", ");
    write_repr(out, items[i]);
  }
  out.add(close);
}

void repr_of_sequence(TextBuilder& out, const Sequence& sequence) {
  const auto& items = sequence.items;
  switch (sequence.flavor) {
    case Flavor::list: return repr_of_items(out, items, "[", "]");
    case Flavor::tuple: return repr_of_items(out, items, "(", items.size() == 1 ? ",)" : ")");
    case Flavor::range: return out.add(sequence.printed);
    case Flavor::dict_keys: return repr_of_items(out, items, "dict_keys([", "])");
    case Flavor::dict_values: return repr_of_items(out, items, "dict_values([", "])");
    case Flavor::dict_items: return repr_of_items(out, items, "dict_items([", "])");
    case Flavor::generator: break;
  }
  throw Error("a generator is printed, which shows an address in memory", {},
              "the template should use the filter list or join");
}

void repr_of_dict(TextBuilder& out, const Dict& dict) {
  out.add("{");
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out.add(", ");
    first = false;
    write_repr(out, key);
    out.add(": ");
    write_repr(out, value);
  }
  out.add("}");
}

}  // namespace

std::string format_real(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string sign;
  if (text.front() == '-') {
    sign = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  int exponent = 0;
  const bool negative = text[e + 1] == '-';
  std::from_chars(text.data() + e + 2, text.data() + text.size(), exponent);
  if (negative) exponent = -exponent;
  std::string digits(text.substr(0, 1));
  if (e > 1) digits += text.substr(2, e - 2);
  const auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    if (count > 1) digits.insert(1, ".");
    return fmt::format("{}{}e{}{:02d}", sign, digits, negative ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1) return sign + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  return sign + digits.insert(static_cast<size_t>(exponent) + 1, ".");
}

void write_str(TextBuilder& out, const Value& value, const Tag& fill) {
  if (value.is_string()) return out.add(*value.text(), fill);
  if (value.is_undefined()) return;
  if (fill == Tag{}) return write_repr(out, value);
  TextBuilder inner;
  write_repr(inner, value);
  out.add(*inner.take(), fill);
}

void write_repr(TextBuilder& out, const Value& value) {
  spend(1);
  switch (value.kind()) {
    case Kind::undefined: return out.add("Undefined");
    case Kind::none: return out.add("None");
    case Kind::boolean: return out.add(value.boolean() ? "True" : "False");
    case Kind::integer: return out.add(std::to_string(value.integer()));
    case Kind::real: return out.add(format_real(value.real()));
    case Kind::string: return repr_of_text(out, *value.text());
    case Kind::sequence: return repr_of_sequence(out, *value.sequence());
    case Kind::dict: return repr_of_dict(out, *value.dict());
    case Kind::object: break;
  }
  const auto printed = value.object()->printed();
  if (!printed) {
    throw Error(fmt::format("a {} is printed, which shows an address in memory", value.object()->type_name()), {},
                "perhaps the template forgot to call it");
  }
  out.add(*printed);
}

TextRef to_str(const Value& value) {
  if (value.is_string()) return value.text();
  TextBuilder out;
  write_str(out, value);
  return out.take();
}

TextRef to_repr(const Value& value) {
  TextBuilder out;
  write_repr(out, value);
  return out.take();
}

}  // namespace snug::chat
