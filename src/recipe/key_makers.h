#pragma once
// Makers of rows of the key table, one for each type of value (see key_table.cpp).

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "recipe/keys.h"
#include "recipe/values.h"

namespace snug::keys {

inline constexpr int64_t kMostSteps = int64_t{1} << 53;
inline constexpr double kUnbounded = std::numeric_limits<double>::max();

inline constexpr std::string_view kAuto = "auto";  // written for "let snug decide"

using Names = std::vector<std::string_view>;

// Each of the following makes a row from the place in Recipe where the value lives: a pointer to a member, or a function
// that returns a reference to it.

template <class Field>
Key boolean(std::string_view name, Names aliases, std::string_view help, Field field) {
  return {name,
          std::move(aliases),
          KeyType::boolean,
          help,
          "true|false",
          [=](Recipe& recipe, KeyValues values) {
            std::invoke(field, recipe) = parse_boolean(name, single_value(name, values));
          },
          [=](const Recipe& recipe) { return std::string(std::invoke(field, recipe) ? "true" : "false"); }};
}

struct Integers {
  int64_t low, high;
  std::string_view values;
  bool zero_is_auto = false;
};

template <class Field>
Key integer(std::string_view name, Names aliases, std::string_view help, Integers range, Field field) {
  return {name,
          std::move(aliases),
          KeyType::integer,
          help,
          range.values,
          [=](Recipe& recipe, KeyValues values) {
            const std::string& text = single_value(name, values);
            const bool decide = range.zero_is_auto && text == kAuto;
            std::invoke(field, recipe) = decide ? 0 : parse_integer(name, text, range.low, range.high);
          },
          [=](const Recipe& recipe) {
            return range.zero_is_auto && std::invoke(field, recipe) == 0 ? std::string(kAuto)
                                                                         : fmt::format("{}", std::invoke(field, recipe));
          }};
}

struct Numbers {
  double low, high;
  std::string_view values;
  bool zero_is_auto = false;
};

template <class Field>
Key number(std::string_view name, Names aliases, std::string_view help, Numbers range, Field field) {
  return {name,
          std::move(aliases),
          KeyType::number,
          help,
          range.values,
          [=](Recipe& recipe, KeyValues values) {
            const std::string& text = single_value(name, values);
            const bool decide = range.zero_is_auto && text == kAuto;
            std::invoke(field, recipe) = decide ? 0.0 : parse_number(name, text, range.low, range.high);
          },
          [=](const Recipe& recipe) {
            return range.zero_is_auto && std::invoke(field, recipe) == 0.0 ? std::string(kAuto)
                                                                           : fmt::format("{}", std::invoke(field, recipe));
          }};
}

template <class Field>
Key text(std::string_view name, Names aliases, std::string_view help, std::string_view values, Field field) {
  return {name,
          std::move(aliases),
          KeyType::text,
          help,
          values,
          [=](Recipe& recipe, KeyValues given) { std::invoke(field, recipe) = single_value(name, given); },
          [=](const Recipe& recipe) { return std::invoke(field, recipe); }};
}

// A text, or several that are kept with commas between them.
template <class Field>
Key texts(std::string_view name, Names aliases, std::string_view help, std::string_view values, Field field) {
  Key key = text(name, std::move(aliases), help, values, field);
  key.set = [=](Recipe& recipe, KeyValues given) {
    std::invoke(field, recipe) = given.size() > 1 ? fmt::format("{}", fmt::join(given, ",")) : single_value(name, given);
  };
  return key;
}

template <class Field>
Key list(std::string_view name, Names aliases, std::string_view help, std::string_view values, Field field) {
  return {name,
          std::move(aliases),
          KeyType::list,
          help,
          values,
          [=](Recipe& recipe, KeyValues given) { std::invoke(field, recipe) = parse_list(name, given); },
          [=](const Recipe& recipe) { return fmt::format("{}", fmt::join(std::invoke(field, recipe), ",")); }};
}

// A value for each of several paths: "q_proj=16,layers.0.mlp=4", in YAML a mapping. parse: a value's text -> value.
template <class Parse, class Field>
Key patterns(std::string_view name, Names aliases, std::string_view help, std::string_view values, Parse parse,
             Field field) {
  return {name,
          std::move(aliases),
          KeyType::map,
          help,
          values,
          [=](Recipe& recipe, KeyValues given) {
            std::decay_t<decltype(std::invoke(field, recipe))> made;
            constexpr size_t kMost = 4096;
            const std::vector<std::string> items = parse_list(name, given);
            if (items.size() > kMost) throw Error(fmt::format("{} has more than {} pairs", name, kMost));
            for (const std::string& item : items) {
              const size_t at = item.find('=');
              if (at == std::string::npos)
                throw Error(fmt::format("{} must be pairs such as q_proj=16, not '{}'", name, item));
              const std::string key = item.substr(0, at);
              check_path_pattern(name, key, "");
              for (const auto& [earlier, value] : made)
                if (earlier == key) throw Error(fmt::format("{} names '{}' twice", name, key));
              made.emplace_back(key, parse(item.substr(at + 1)));
            }
            std::invoke(field, recipe) = std::move(made);
          },
          [=](const Recipe& recipe) {
            std::string text;
            for (const auto& [key, value] : std::invoke(field, recipe))
              text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
            return text;
          }};
}

// Blocks by number; empty: all of them.
inline Key layers(std::string_view name, std::string_view help, std::vector<int64_t> Recipe::*field) {
  return {name,
          {},
          KeyType::list,
          help,
          "all|0,2,4,…",
          [=](Recipe& recipe, KeyValues values) {
            constexpr int64_t kMostLayers = std::numeric_limits<int32_t>::max();
            std::vector<int64_t> numbers;
            std::vector<std::string> items = parse_list(name, values);
            if (items == std::vector<std::string>{"all"}) items.clear();
            for (const std::string& item : items) {
              numbers.push_back(parse_integer(name, item, 0, kMostLayers));
              if (numbers.size() > 1 && numbers.back() <= numbers[numbers.size() - 2])
                throw Error(fmt::format("{} must be in rising order, each once", name));
            }
            recipe.*field = std::move(numbers);
          },
          [=](const Recipe& recipe) { return fmt::format("{}", fmt::join(recipe.*field, ",")); }};
}

template <class Value>
struct Choice {
  std::string_view word;
  Value value;
  std::string_view refusal;  // known elsewhere, but not supported
};

template <class Value, class Field>
Key choice(std::string_view name, Names aliases, std::string_view help, std::string_view values,
           std::vector<Choice<Value>> choices, Field field) {
  Names words;
  for (const auto& known : choices)
    if (known.refusal.empty()) words.push_back(known.word);
  return {name,
          std::move(aliases),
          KeyType::choice,
          help,
          values,
          [=](Recipe& recipe, KeyValues given) {
            const std::string& word = single_value(name, given);
            for (const auto& known : choices) {
              if (known.word != word) continue;
              if (!known.refusal.empty())
                throw Error(fmt::format("{} '{}': {}", name, word, known.refusal), "", fmt::format("choose {}", values));
              std::invoke(field, recipe) = known.value;
              return;
            }
            throw Error(fmt::format("{} '{}' is not known", name, word), "", fmt::format("choose {}", values));
          },
          [=](const Recipe& recipe) {
            for (const auto& known : choices) {
              if (known.refusal.empty() && known.value == std::invoke(field, recipe)) return std::string(known.word);
            }
            return std::string();
          },
          {},
          std::move(words)};
}

}  // namespace snug::keys
