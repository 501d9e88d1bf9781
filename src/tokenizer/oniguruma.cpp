// Oniguruma's dialect (Ruby syntax, UTF-8), rewritten for PCRE2 (UTF, UCP, MULTILINE).

#include <array>
#include <cstdio>

#include "base/error.h"
#include "tokenizer/regex.h"
#include "tokenizer/unicode_tables.h"

namespace snug {
namespace {

// Unicode's White_Space; PCRE2's \s also has U+180E.
constexpr std::string_view kSpaces =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
// Unicode's Alphabetic beside letters, marks and numbers.
constexpr std::string_view kAlphabeticSigns =
    "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";
constexpr std::array<std::array<std::string_view, 2>, 6> kLongNames = {
    {{"letter", "L"}, {"mark", "M"}, {"number", "N"}, {"punctuation", "P"}, {"symbol", "S"}, {"separator", "Z"}}};
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
        class_begin_ = out_.size();
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
    if (rest_.starts_with("&&")) return difference();
    if (rest_[0] == '[') return inner_class();
    if (rest_[0] != ']') return copy(1);
    if (!minuend_.empty()) return end_difference();
    if (inner_classes_ > 0) {
      --inner_classes_;
      rest_.remove_prefix(1);
      if (rest_.starts_with('-') && !rest_.starts_with("-]")) refuse("- after a set within a set");
      return;
    }
    in_class_ = false;
    copy(1);
  }

  // A set within a set adds to it: its brackets may go.
  void inner_class() {
    for (const std::string_view known : {"[^", "[:", "[]", "[-"}) {
      if (rest_.starts_with(known)) refuse(std::string(known) + " within a set");
    }
    if (out_.ends_with('-') || !minuend_.empty()) refuse("a set within a set here");
    ++inner_classes_;
    rest_.remove_prefix(1);
  }

  // [A&&[^B]] is (?:(?![B])[A]).
  void difference() {
    if (!rest_.starts_with("&&[^") || inner_classes_ > 0 || !minuend_.empty() || out_.substr(class_begin_).starts_with("[^"))
      refuse("&& in a set");
    minuend_ = out_.substr(class_begin_) + "]";
    out_.resize(class_begin_);
    replace(4, "(?:(?![");
  }

  void end_difference() {
    if (!rest_.starts_with("]]")) refuse("&& in a set");
    replace(2, "])" + minuend_ + ")");
    minuend_.clear();
    in_class_ = false;
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
      case 'D': return set(2, "\\p{Nd}" + younger("nd"), c == 'D');
      case 'w':
      case 'W': return set(2, word_members(), c == 'W');
      case 'h':
      case 'H': return set(2, "0-9a-fA-F", c == 'H');
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

  std::string word_members() const {
    std::string members = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}";
    for (const char* name : {"l", "m", "nd", "nl", "pc"}) members += younger(name);
    // Oniguruma's quirk: alone, but not in a set, \w also takes the numbers of Latin-1.
    if (!in_class_) members += "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";
    return members.append(kAlphabeticSigns);
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

  // General categories are the same, less what is younger than PCRE2. Longer names are scripts, which PCRE2 would widen by
  // Script_Extensions.
  void property() {
    const size_t end = rest_.find('}');
    if (!rest_.substr(2).starts_with("{") || end == std::string_view::npos || end > 40) refuse("\\p without {}");
    std::string_view name = rest_.substr(3, end - 3);
    bool negated = rest_[1] == 'P';
    if (name.starts_with("^")) {
      negated = !negated;
      name.remove_prefix(1);
    }
    if (name.empty() || name.find_first_of("&:=\\") != std::string_view::npos) refuse(rest_.substr(0, end + 1));
    const std::string plain = plain_name(name);
    for (const auto& [longer, category] : kLongNames) {
      if (plain == longer) name = category;
    }
    std::string members = "\\p{" + std::string(name.size() > 2 ? "sc:" : "") + std::string(name) + "}";
    members += younger(plain_name(name));
    set(end + 1, members, negated);
  }

  static std::string plain_name(std::string_view name) {
    std::string plain;
    for (const char c : name) {
      if (c >= 'A' && c <= 'Z') plain += static_cast<char>(c + 32);
      if (!(c >= 'A' && c <= 'Z') && c != '_' && c != ' ' && c != '-') plain += c;
    }
    return plain;
  }

  // What stands in a set for the characters of a category or script that PCRE2 does not know.
  static std::string younger(std::string_view name) {
    std::string members;
    for (const NamedRange& range : younger_ranges()) {
      const std::string plain = plain_name(range.name);
      if (plain != name && !(name.size() == 1 && plain.size() == 2 && plain[0] == name[0])) continue;
      std::array<char, 40> text{};
      std::snprintf(text.data(), text.size(), "\\x{%x}-\\x{%x}", range.first, range.last);
      members += text.data();
    }
    return members;
  }

  // In place of the next `characters`: one character of the set of these members, or not of it.
  void set(size_t characters, const std::string& members, bool negated) {
    if (!in_class_) return replace(characters, (negated ? "[^" : "[") + members + "]");
    if (negated) refuse(std::string(rest_.substr(0, characters)) + " in a set");
    replace(characters, members);
  }

  std::string_view rest_, pattern_;
  const std::string& where_;
  std::string out_;
  bool in_class_ = false;
  int inner_classes_ = 0;
  size_t class_begin_ = 0;
  std::string minuend_;  // the set before &&, when within what follows
};

}  // namespace

std::string translate_oniguruma(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).translate();
}

}  // namespace snug
