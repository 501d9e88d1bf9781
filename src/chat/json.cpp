#include "chat/json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "chat/characters.h"
#include "chat/python_text.h"

namespace snug::chat {
namespace {

namespace dom = simdjson::dom;

Value from_element(dom::element element) {
  switch (element.type()) {
    case dom::element_type::NULL_VALUE: return Value::none();
    case dom::element_type::BOOL: return Value::boolean(bool(element));
    case dom::element_type::INT64: return Value::integer(int64_t(element));
    case dom::element_type::UINT64:
      throw Error(fmt::format("the whole number {} does not fit in 63 bits", uint64_t(element)));
    case dom::element_type::DOUBLE: return Value::real(double(element));
    case dom::element_type::STRING: return Value::text(std::string(std::string_view(element)));
    case dom::element_type::ARRAY: {
      std::vector<Value> items;
      for (const dom::element item : dom::array(element)) items.push_back(from_element(item));
      return Value::list(std::move(items));
    }
    case dom::element_type::OBJECT: break;
  }
  Dict entries;
  for (const auto field : dom::object(element)) entries.set(std::string(field.key), from_element(field.value));
  return Value::dict(std::move(entries));
}

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  void write(const Value& value) {
    spend(1);
    switch (value.kind()) {
      case Kind::none: return out_.add("null");
      case Kind::boolean: return out_.add(value.boolean() ? "true" : "false");
      case Kind::integer: return out_.add(std::to_string(value.integer()));
      case Kind::real: return out_.add(number(value.real()));
      case Kind::string: return write_string(*value.text());
      case Kind::dict: return write_dict(*value.dict());
      case Kind::sequence:
        if (value.is(Flavor::list) || value.is(Flavor::tuple)) return write_list(value.sequence()->items);
        break;
      default: break;
    }
    if (value.is_undefined()) refuse_undefined(value);
    throw Error(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
  }

  TextRef take() { return out_.take(); }

 private:
  static std::string number(double real) {
    if (std::isnan(real)) return "NaN";
    if (std::isinf(real)) return real < 0 ? "-Infinity" : "Infinity";
    return format_real(real);
  }

  void write_string(const Text& text) {
    out_.add("\"");
    int64_t begin = 0;
    const auto write_run = [&](int64_t end, const Tag& tag) {
      out_.add(escape(text.view().substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin))), tag);
      begin = end;
    };
    for (const Run& run : text.runs()) write_run(run.end, run.tag);
    write_run(text.size(), {});
    out_.add("\"");
  }

  std::string escape(std::string_view bytes) const {
    std::string escaped;
    while (!bytes.empty()) {
      const std::string_view character = bytes.substr(0, utf8_length(bytes[0]));
      append_escaped(escaped, character);
      bytes.remove_prefix(character.size());
    }
    return escaped;
  }

  void append_escaped(std::string& escaped, std::string_view character) const {
    constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    const auto first = static_cast<unsigned char>(character[0]);
    if (const size_t at = kShort.find(character[0]); at != std::string_view::npos) {
      escaped += '\\';
      escaped += kLetters[at];
    } else if (first < 0x20) {
      escaped += fmt::format("\\u{:04x}", first);
    } else if (first < 0x7F || !style_.ensure_ascii) {
      escaped += character;
    } else if (const auto code = static_cast<uint32_t>(decode(character)); code < 0x10000) {
      escaped += code == 0x7F ? std::string(character) : fmt::format("\\u{:04x}", code);
    } else {
      escaped += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10U), 0xDC00 + ((code - 0x10000) & 0x3FFU));
    }
  }

  void line_break() {
    if (!style_.multiline) return;
    out_.add("\n");
    for (int i = 0; i < level_; ++i) out_.add(style_.indent);
  }

  void between(bool first) {
    if (!first) out_.add(style_.item_separator);
    line_break();
  }

  void write_list(const std::vector<Value>& items) {
    if (items.empty()) return out_.add("[]");
    out_.add("[");
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      between(i == 0);
      write(items[i]);
    }
    --level_;
    line_break();
    out_.add("]");
  }

  void write_key(const Value& key) {
    if (key.is_string()) return write_string(*key.text());
    if (key.is(Kind::sequence) || key.is(Kind::object) || key.is_undefined()) {
      throw Error(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
    }
    out_.add("\"");
    write(key);
    out_.add("\"");
  }

  void write_dict(const Dict& dict) {
    if (dict.size() == 0) return out_.add("{}");
    std::vector<const Dict::Entry*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::ranges::stable_sort(entries, [](const auto* a, const auto* b) { return less(a->first, b->first); });
    }
    out_.add("{");
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      between(i == 0);
      write_key(entries[i]->first);
      out_.add(style_.key_separator);
      write(entries[i]->second);
    }
    --level_;
    line_break();
    out_.add("}");
  }

  const JsonStyle& style_;
  TextBuilder out_;
  int level_ = 0;
};

}  // namespace

Value parse_json(std::string_view text, const std::string& where) {
  dom::parser parser;
  dom::element root;
  if (const auto error = parser.parse(text.data(), text.size(), true).get(root); error != simdjson::SUCCESS) {
    throw Error(fmt::format("not valid JSON: {}", simdjson::error_message(error)), where);
  }
  try {
    return from_element(root);
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(error.problem(), where, error.mend());
  }
}

TextRef to_json(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  writer.write(value);
  return writer.take();
}

}  // namespace snug::chat
