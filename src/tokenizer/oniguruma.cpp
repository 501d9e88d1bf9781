// Oniguruma's dialect (Ruby syntax, UTF-8), rewritten for PCRE2 (UTF, UCP, MULTILINE).

#include <array>

#include "base/error.h"
#include "tokenizer/regex.h"

namespace snug {
namespace {

// Unicode's White_Space; PCRE2's \s also has U+180E.
constexpr std::string_view kSpaces =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
// Groups that both dialects read alike.
constexpr std::array<std::string_view, 7> kGroups = {"?:", "?=", "?!", "?<=", "?<!", "?>", "?i:"};

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : rest_(pattern), pattern_(pattern), where_(where) {}

  std::string translate() {
    while (!rest_.empty()) in_class_ ? class_item() : item();
    if (in_class_) refuse("[ without ]");
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view construct) const {
    throw Error(
        "the regular expression uses " + std::string(construct) + ", which snug does not read: " + std::string(pattern_),
        where_, "rewrite the expression without it, or report the model");
  }

  void copy(size_t characters) {
    out_ += rest_.substr(0, characters);
    rest_.remove_prefix(characters);
  }

  void item() {
    switch (rest_[0]) {
      case '\\': return escape();
      case '[':
        if (rest_.starts_with("[]") || rest_.starts_with("[^]")) refuse("] as the first of a set");
        in_class_ = true;
        return copy(rest_.starts_with("[^") ? 2 : 1);
      case '(': return group();
      case '{':
        if (rest_.starts_with("{,")) refuse("{,n}");
        return copy(1);
      case '}':
        if (rest_.starts_with("}+")) refuse("}+");
        return copy(1);
      default: return copy(1);
    }
  }

  void class_item() {
    if (rest_[0] == '\\') return escape();
    if (rest_[0] == '[') refuse("a set within a set");
    if (rest_.starts_with("&&")) refuse("&& in a set");
    in_class_ = rest_[0] != ']';
    copy(1);
  }

  void group() {
    if (!rest_.starts_with("(?") && !rest_.starts_with("(*")) return copy(1);
    if (pattern_.size() == rest_.size() && rest_.starts_with("(?i)")) return copy(4);
    for (const std::string_view known : kGroups) {
      if (rest_.substr(1).starts_with(known)) return copy(1 + known.size());
    }
    refuse(rest_.substr(0, 4));
  }

  void replace(size_t characters, std::string_view text) {
    out_ += text;
    rest_.remove_prefix(characters);
  }

  void escape() {
    if (rest_.size() < 2) refuse("a \\ at its end");
    const char c = rest_[1];
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    const bool digit = byte >= '0' && byte <= '9';
    if (!letter && !digit && byte < 0x80) return copy(2);  // an escaped sign
    const std::string spaces(kSpaces);
    switch (c) {
      case 's': return replace(2, in_class_ ? spaces : "[" + spaces + "]");
      case 'S': return replace(2, in_class_ ? "\\S\\x{180e}" : "[^" + spaces + "]");
      case 'v': return replace(2, "\\x{b}");
      case 'u': return code_unit();
      case 'x': return hexadecimal();
      case 'p':
      case 'P': return property();
      case 'd':
      case 'D':
      case 'n':
      case 'r':
      case 't':
      case 'f': return copy(2);
      case 'A':
      case 'z':
        if (!in_class_) return copy(2);
        [[fallthrough]];
      default: refuse(rest_.substr(0, 2));
    }
  }

  static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

  void code_unit() {  // \uHHHH
    if (rest_.size() < 6) refuse("\\u");
    for (size_t i = 2; i < 6; ++i) {
      if (!is_hex(rest_[i])) refuse("\\u");
    }
    replace(6, "\\x{" + std::string(rest_.substr(2, 4)) + "}");
  }

  void hexadecimal() {  // \x{H…}; \xHH is a byte in Oniguruma, so only ASCII is the same
    if (rest_.size() >= 4 && rest_[2] >= '0' && rest_[2] <= '7' && is_hex(rest_[3])) return copy(4);
    if (!rest_.starts_with("\\x{")) refuse("\\x");
    copy(3);
  }

  // General categories are the same. Longer names are scripts, which PCRE2 would widen by Script_Extensions.
  void property() {
    const size_t end = rest_.find('}');
    if (!rest_.substr(2).starts_with("{") || end == std::string_view::npos || end > 40) refuse("\\p without {}");
    std::string_view name = rest_.substr(3, end - 3);
    const bool negated = name.starts_with("^");
    if (negated) name.remove_prefix(1);
    if (name.empty() || name.find_first_of("&:=") != std::string_view::npos) refuse(rest_.substr(0, end + 1));
    out_ += rest_.substr(0, 3);
    if (negated) out_ += '^';
    if (name.size() > 2) out_ += "sc:";
    out_ += name;
    out_ += '}';
    rest_.remove_prefix(end + 1);
  }

  std::string_view rest_, pattern_;
  const std::string& where_;
  std::string out_;
  bool in_class_ = false;
};

}  // namespace

std::string translate_oniguruma(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).translate();
}

}  // namespace snug
