// Filters that make text.

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "chat/attributes.h"
#include "chat/characters.h"
#include "chat/filters.h"
#include "chat/format.h"
#include "chat/json.h"
#include "chat/markup.h"
#include "chat/python_text.h"
#include "chat/text_operations.h"

namespace snug::chat {
namespace {

Value through_method(std::string_view method, Interpreter& interpreter, const Value& input, CallArguments& arguments) {
  return find_text_method(method)(interpreter, Value::text(to_str(input)), arguments);
}

template <const char* method>
Value as_method(Interpreter& interpreter, const Value& input, CallArguments& arguments) {
  return through_method(method, interpreter, input, arguments);
}
constexpr char kUpper[] = "upper";
constexpr char kLower[] = "lower";
constexpr char kCapitalize[] = "capitalize";

Value trim(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "trim", "?chars");
  return Value::text(strip(to_str(input), bound.given(0) ? bound.text(0) : nullptr, true, true));
}

Value replace(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "replace", "old new ?count");
  const int64_t count = bound.given(2) ? bound.integer(2, -1) : -1;
  return Value::text(
      snug::chat::replace(with_markup(to_str(input), false), to_str(bound.at(0))->view(), to_str(bound.at(1)), count));
}

Value center(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "center", "?width");
  return Value::text(pad(to_str(input), bound.integer(0, 80), " ", Align::center));
}

// A capital after whitespace and - ( { [ <.
Value title(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "title", ""));
  bool begins = true;
  return Value::text(map_characters(to_str(input), [&begins](std::string& out, char32_t character) {
    append_cased(out, character, begins ? Case::upper : Case::lower);
    begins = is_space(character) || std::u32string_view(U"-({[<").find(character) != std::u32string_view::npos;
  }));
}

Value indent(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "indent", "?width ?first ?blank");
  if (input.is_undefined()) refuse_undefined(input);
  if (!input.is_string()) throw Error(fmt::format("'{}' cannot be indented", type_name(input)));
  std::string margin;
  if (bound.has(0) && bound.at(0).is_string()) {
    margin = bound.text(0)->bytes();
  } else {
    const int64_t width = std::max<int64_t>(bound.integer(0, 4), 0);
    if (width > 10'000) throw Error("an indent is wider than 10000");
    margin.assign(static_cast<size_t>(width), ' ');
  }
  TextBuilder whole;
  whole.add(*input.text());
  whole.add("\n");
  const std::vector<TextRef> lines = split_lines(whole.take(), false);
  const bool blank = bound.flag(2, false);
  TextBuilder out;
  if (bound.flag(1, false)) out.add(margin);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.add("\n");
    if (i > 0 && (blank || lines[i]->size() > 0)) out.add(margin);
    out.add(*lines[i]);
  }
  return Value::text(out.take(input.text()->markup()));
}

Value truncate(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "truncate", "?length ?killwords ?end ?leeway");
  const TextRef text = to_str(input);
  const TextRef ending = bound.has(2) ? bound.text(2) : make_text("...");
  const int64_t length = bound.integer(0, 255);
  const int64_t leeway = bound.given(3) ? bound.integer(3, 5) : 5;
  if (length < ending->length() || leeway < 0) throw Error("truncate() needs a length beyond its ending");
  if (text->length() <= length + leeway) return Value::text(text);
  TextRef kept = text->piece(0, text->offset_of(length - ending->length()));
  if (!bound.flag(1, false)) {
    const size_t space = kept->view().rfind(' ');
    if (space != std::string_view::npos) kept = kept->piece(0, static_cast<int64_t>(space));
  }
  TextBuilder out;
  out.add(*kept);
  out.add(*ending);
  return Value::text(out.take());
}

Value wordcount(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "wordcount", ""));
  const TextRef text = to_str(input);
  int64_t words = 0;
  bool inside = false;
  for (std::string_view rest = text->view(); !rest.empty(); rest.remove_prefix(utf8_length(rest[0]))) {
    const char32_t character = decode(rest);
    const bool word = character == '_' || is_alnum(character);
    words += word && !inside ? 1 : 0;
    inside = word;
  }
  spend_bytes(text->size());
  return Value::integer(words);
}

Value format(Interpreter&, const Value& input, CallArguments& arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty())
    throw Error("format takes values by position or by name, not both");
  if (arguments.named.empty())
    return Value::text(format_percent(to_str(input), Value::tuple(std::move(arguments.positional))));
  Dict names;
  for (auto& [name, value] : arguments.named) names.set(name, std::move(value));
  return Value::text(format_percent(to_str(input), Value::dict(std::move(names))));
}

Value tojson(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "tojson", "?ensure_ascii ?indent ?separators ?sort_keys");
  JsonStyle style;
  style.ensure_ascii = bound.flag(0, false);
  if (bound.given(1)) {
    style.multiline = true;
    style.item_separator = ",";
    if (bound.at(1).is_string()) {
      style.indent = bound.text(1)->bytes();
    } else {
      const int64_t width = bound.integer(1, 0);
      if (width > 1000) throw Error("an indent is wider than 1000");
      style.indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
  }
  if (bound.given(2)) {
    const SequenceRef pair = iterate(bound.at(2));
    if (pair->items.size() != 2 || !pair->items[0].is_string() || !pair->items[1].is_string()) {
      throw Error("separators must be two strings");
    }
    style.item_separator = pair->items[0].text()->bytes();
    style.key_separator = pair->items[1].text()->bytes();
  }
  style.sort_keys = bound.flag(3, false);
  return Value::text(to_json(input, style));
}

std::string quoted_for_url(std::string_view bytes, bool query) {
  std::string out;
  spend_bytes(static_cast<int64_t>(bytes.size()) * 4);
  for (const char c : bytes) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos || (c == '/' && !query);
    if (plain) {
      out += c;
    } else if (c == ' ' && query) {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Value urlencode(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "urlencode", ""));
  if (input.is_string() || !is_iterable(input)) return Value::text(quoted_for_url(to_str(input)->view(), false));
  std::string out;
  const auto add = [&](const Value& key, const Value& value) {
    if (!out.empty()) out += '&';
    out += quoted_for_url(to_str(key)->view(), true) + "=" + quoted_for_url(to_str(value)->view(), true);
  };
  if (input.is(Kind::dict)) {
    for (const auto& [key, value] : input.dict()->entries()) add(key, value);
  } else {
    const SequenceRef pairs = iterate(input);
    for (const Value& pair : pairs->items) {
      const SequenceRef two = iterate(pair);
      if (two->items.size() != 2) throw Error("urlencode needs pairs");
      add(two->items[0], two->items[1]);
    }
  }
  return Value::text(std::move(out));
}

Value string(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "string", ""));
  return Value::text(to_str(input));
}

Value safe(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "safe", ""));
  return Value::text(with_markup(to_str(input), true));
}

Value escape(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "escape", ""));
  return Value::text(escape_markup(to_str(input)));
}

Value forceescape(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "forceescape", ""));
  return Value::text(escape_markup(with_markup(to_str(input), false)));
}

constexpr std::pair<std::string_view, Filter> kTextFilters[] = {
    {"trim", trim},
    {"tojson", tojson},
    {"string", string},
    {"safe", safe},
    {"upper", as_method<kUpper>},
    {"lower", as_method<kLower>},
    {"capitalize", as_method<kCapitalize>},
    {"title", title},
    {"replace", replace},
    {"indent", indent},
    {"center", center},
    {"truncate", truncate},
    {"format", format},
    {"wordcount", wordcount},
    {"urlencode", urlencode},
    {"escape", escape},
    {"e", escape},
    {"forceescape", forceescape},
};

}  // namespace

Filter find_text_filter(std::string_view name) {
  const auto* found = std::ranges::find(kTextFilters, name, [](const auto& entry) { return entry.first; });
  return found == std::end(kTextFilters) ? nullptr : found->second;
}

}  // namespace snug::chat
