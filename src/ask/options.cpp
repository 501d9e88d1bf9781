#include "ask/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/edit_distance.h"

namespace snug {

namespace {

bool is_flag(std::string_view word) { return word.starts_with("--"); }

// What a flag that may stand alone takes as its value; "trl" is the one that is more than yes (see quantize_keys.cpp).
bool is_truth(std::string_view word) {
  constexpr std::string_view kWords[] = {"true", "false", "yes", "no", "1", "0", "True", "False", "auto", "trl"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::optional<Takes> takes_of_own(const std::vector<std::string>& own, const std::string& name) {
  const auto holds = [&](const std::string& text) { return std::find(own.begin(), own.end(), text) != own.end(); };
  if (holds(name)) return Takes::nothing;
  if (holds(name + "=")) return Takes::value;
  return std::nullopt;
}

std::string bare(const std::string& own) { return own.substr(0, own.find('=')); }

// The command's flag that a slip of the pen makes of `name`; "" if none is that near.
std::string meant(const std::string& name, const std::vector<std::string>& own) {
  std::string nearest;
  int64_t least = most_slips(name.size()) + 1;
  for (const std::string& flag : own) {
    const int64_t distance = edit_distance(name, bare(flag));
    if (distance >= least) continue;
    least = distance;
    nearest = bare(flag);
  }
  return nearest;
}

[[noreturn]] void refuse(const std::string& name, const std::vector<std::string>& own) {
  std::string text = fmt::format("there is no flag --{} here", name.substr(0, 200));
  if (const std::string nearest = meant(name, own); !nearest.empty())
    throw UsageError(fmt::format("{}; did you mean --{}?", text, nearest));
  for (size_t i = 0; i < own.size(); ++i)
    text += fmt::format("{}--{}", i == 0 ? "; there is " : i + 1 == own.size() ? " and " : ", ", bare(own[i]));
  throw UsageError(text);
}

Takes takes_of_other(const std::string& name, const std::vector<std::string>& own, const OtherFlags& other) {
  if (!other) refuse(with_dashes(name), own);
  try {
    return other(name);
  } catch (const UsageError&) {
    if (!meant(with_dashes(name), own).empty()) refuse(with_dashes(name), own);
    throw;
  }
}

// What follows a flag of that kind at words[at], which then stands behind it.
std::string value_behind(const std::string& name, Takes takes, std::span<char* const> words, size_t& at) {
  const bool follows = at < words.size() && !is_flag(words[at]);
  switch (takes) {
    case Takes::nothing: return "";
    case Takes::value:
      if (!follows) throw UsageError("--" + name + " needs a value");
      return words[at++];
    case Takes::truth: return follows && is_truth(words[at]) ? words[at++] : "true";
    case Takes::anything: return follows ? words[at++] : "true";
  }
  return "";
}

}  // namespace

bool Options::has(std::string_view flag) const {
  return std::any_of(flags.begin(), flags.end(), [&](const Flag& given) { return given.name == flag; });
}

std::string Options::value(std::string_view flag, const std::string& otherwise) const {
  const auto found = std::find_if(flags.rbegin(), flags.rend(), [&](const Flag& given) { return given.name == flag; });
  return found == flags.rend() ? otherwise : found->value;
}

std::vector<std::string> Options::values(std::string_view flag) const {
  std::vector<std::string> list;
  for (const Flag& given : flags)
    if (given.name == flag) list.push_back(given.value);
  return list;
}

Options parse_options(std::span<char* const> words, const std::vector<std::string>& own, const OtherFlags& other) {
  Options options;
  for (size_t at = 0; at < words.size();) {
    const std::string word = words[at++];
    if (!is_flag(word)) {
      options.positional.push_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const std::string written = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const std::optional<Takes> of_own = takes_of_own(own, with_dashes(written));
    const std::string name = of_own ? with_dashes(written) : written;
    const Takes takes = of_own ? *of_own : takes_of_other(written, own, other);
    if (takes == Takes::nothing && equals != std::string::npos) throw UsageError("--" + name + " takes no value");
    std::string value = equals != std::string::npos ? word.substr(equals + 1) : value_behind(name, takes, words, at);
    (of_own ? options.flags : options.others).push_back({name, std::move(value)});
  }
  return options;
}

}  // namespace snug
