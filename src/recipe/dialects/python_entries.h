#pragma once
// Arguments of a Python script's calls as entries of a document.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "recipe/dialects/document.h"
#include "recipe/dialects/python_script.h"
#include "recipe/dialects/started_script.h"

namespace snug::dialects {

// What an argument is called among a recipe's keys.
struct Renamed {
  std::string_view theirs, ours;
};

// What decides an adapter's bytes.
inline constexpr std::array<const char*, 3> kOfPair = {"lora_r", "lora_alpha", "lora_target_modules"};

class Entries {
 public:
  // `in_place`: a literal may be replaced where it stands; `flags`: which keys are flags of the command; may be null.
  Entries(Document& document, bool in_place, FlagsOfKeys* flags) : document_(document), in_place_(in_place), flags_(flags) {}

  template <size_t N>
  void take(const Call* call, const std::array<Renamed, N>& keys) {
    if (!call) return;
    for (const Argument& argument : call->arguments)
      if (const auto key = std::ranges::find(keys, argument.name, &Renamed::theirs);
          key != keys.end() && !argument.name.empty())
        add(std::string(key->ours), argument);
  }

  // Of a dict that is handed on.
  template <size_t N>
  void take_members(const Argument* dict, const std::array<Renamed, N>& keys) {
    if (!dict) return;
    for (const auto& [name, value] : dict->value.members)
      if (std::ranges::find(keys, name, &Renamed::theirs) != keys.end()) add(name, {name, dict->at, value, dict->span});
  }

  void take_all(const Call* call);
  // Nothing where the key has a value already; among what is unread where only Python knows one that matters.
  void add(std::string path, const Argument& argument);
  // What a call says by being there.
  void say(std::string path, std::string value, const Span& span);

 private:
  Entry made(std::string path, const Span& span) const;

  Document& document_;
  bool in_place_;
  FlagsOfKeys* flags_;
};

// By name, or by its place among those without one; null where the call gives none.
const Argument* argument_of(const Call* call, std::string_view name, size_t place = PythonScript::kEnd);

}  // namespace snug::dialects
