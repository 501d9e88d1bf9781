#include "recipe/schedule_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "recipe/key_makers.h"

namespace snug {

using namespace keys;  // NOLINT(google-build-using-namespace): the table speaks the makers' language

namespace {

// The arguments of transformers.get_scheduler that each schedule takes, and what it cannot do without: one of `needs`.
struct Arguments {
  Schedule schedule;
  Names takes, needs;
};

const std::vector<Arguments>& argument_table() {
  static const std::vector<Arguments> table = {
      {Schedule::cosine, {"num_cycles"}, {}},
      {Schedule::cosine_with_restarts, {"num_cycles"}, {}},
      {Schedule::cosine_with_min_lr, {"num_cycles", "min_lr", "min_lr_rate"}, {"min_lr", "min_lr_rate"}},
      {Schedule::polynomial, {"power", "lr_end"}, {}},
      {Schedule::inverse_sqrt, {"timescale"}, {}},
      {Schedule::warmup_stable_decay,
       {"num_decay_steps", "num_stable_steps", "min_lr_ratio", "num_cycles"},
       {"num_decay_steps"}},
  };
  return table;
}

Key warmup_steps() {
  Key key =
      integer("warmup_steps", {}, "Steps over which the learning rate rises; a fraction below 1 is a ratio of all steps.",
              {0, kMostSteps, "at least 0"}, &Recipe::warmup_steps);
  key.set = [set = key.set](Recipe& recipe, KeyValues values) {
    const std::string& word = single_value("warmup_steps", values);
    if (word.find_first_of(".eE") == std::string::npos) return set(recipe, values);
    const double value = parse_number("warmup_steps", word, 0.0, static_cast<double>(kMostSteps));
    if (value < 1.0) {
      recipe.warmup_ratio = value;
    } else if (value == static_cast<double>(static_cast<int64_t>(value))) {
      recipe.warmup_steps = static_cast<int64_t>(value);
    } else {
      throw Error(fmt::format("warmup_steps must be a whole number or a fraction below 1, not '{}'", word));
    }
  };
  return key;
}

std::vector<std::string_view> argument_names() {
  std::vector<std::string_view> names;
  for (const Arguments& of : argument_table())
    for (const std::string_view name : of.takes)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

// {"num_cycles": 2, "min_lr": 1e-5}, as transformers takes it on a command line, in pairs name=value.
std::string without_braces(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (c == ':') {
      plain += '=';
    } else if (std::string_view("{}\"' ").find(c) == std::string_view::npos) {
      plain += c;
    }
  return plain;
}

Key lr_scheduler_kwargs() {
  return {"lr_scheduler_kwargs",
          {},
          KeyType::map,
          "What the schedule is told, as transformers names it.",
          "num_cycles=2",
          [](Recipe& recipe, KeyValues values) {
            recipe.lr_scheduler_kwargs.clear();
            if (values.empty()) return;
            const std::string& first = values.front();
            const std::vector<std::string> plain = {without_braces(first)};
            if (first.starts_with('{') && plain.front().empty()) return;
            for (const std::string& pair : parse_list("lr_scheduler_kwargs", first.starts_with('{') ? plain : values)) {
              const size_t at = pair.find('=');
              if (at == std::string::npos)
                throw Error(fmt::format("lr_scheduler_kwargs must be pairs such as num_cycles=2, not '{}'", pair));
              const std::string name = pair.substr(0, at);
              const bool known = std::ranges::any_of(argument_table(), [&](const Arguments& of) {
                return std::ranges::find(of.takes, name) != of.takes.end();
              });
              if (!known) throw Error(fmt::format("lr_scheduler_kwargs '{}' is not supported", name.substr(0, 60)));
              if (schedule_argument(recipe, name)) throw Error(fmt::format("lr_scheduler_kwargs names '{}' twice", name));
              const double value = parse_number("lr_scheduler_kwargs " + name, pair.substr(at + 1), 0.0, kUnbounded);
              recipe.lr_scheduler_kwargs.emplace_back(name, value);
            }
          },
          [](const Recipe& recipe) {
            std::string text;
            for (const auto& [name, value] : recipe.lr_scheduler_kwargs)
              text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
            return text;
          },
          {},
          argument_names()};
}

void validate_arguments(const Recipe& recipe) {
  const auto refuse = [](std::string message, std::string fix) { throw Error(std::move(message), "", std::move(fix)); };
  const auto row = std::ranges::find(argument_table(), recipe.lr_scheduler_type, &Arguments::schedule);
  const Names none;
  const Names& takes = row == argument_table().end() ? none : row->takes;
  for (const auto& [name, value] : recipe.lr_scheduler_kwargs)
    if (std::ranges::find(takes, name) == takes.end())
      refuse(fmt::format("lr_scheduler_kwargs: {} has no meaning for this lr_scheduler_type", name),
             takes.empty() ? "remove it" : fmt::format("it takes {}", fmt::join(takes, ", ")));
  if (row == argument_table().end() || row->needs.empty()) return;
  const auto given =
      std::ranges::count_if(row->needs, [&](std::string_view name) { return schedule_argument(recipe, name).has_value(); });
  if (given != 1)
    refuse(fmt::format("this lr_scheduler_type needs {} in lr_scheduler_kwargs", fmt::join(row->needs, " or ")),
           fmt::format("give lr_scheduler_kwargs: {}=…{}", row->needs.front(), given > 1 ? " alone" : ""));
}

}  // namespace

std::optional<double> schedule_argument(const Recipe& recipe, std::string_view name) {
  for (const auto& [given, value] : recipe.lr_scheduler_kwargs)
    if (given == name) return value;
  return std::nullopt;
}

std::vector<Key> schedule_keys() {
  return {
      choice<Schedule>("lr_scheduler_type", {"lr_scheduler"}, "How the learning rate falls.",
                       "constant|constant_with_warmup|linear|cosine|cosine_with_restarts|cosine_with_min_lr|polynomial|"
                       "inverse_sqrt|warmup_stable_decay",
                       {{"constant", Schedule::constant},
                        {"constant_with_warmup", Schedule::constant_with_warmup},
                        {"linear", Schedule::linear},
                        {"cosine", Schedule::cosine},
                        {"cosine_with_restarts", Schedule::cosine_with_restarts},
                        {"cosine_with_min_lr", Schedule::cosine_with_min_lr},
                        {"polynomial", Schedule::polynomial},
                        {"inverse_sqrt", Schedule::inverse_sqrt},
                        {"warmup_stable_decay", Schedule::warmup_stable_decay},
                        {"cosine_warmup_with_min_lr", Schedule::cosine, "not supported yet"},
                        {"reduce_lr_on_plateau", Schedule::constant, "not supported yet"}},
                       &Recipe::lr_scheduler_type),
      lr_scheduler_kwargs(),
      warmup_steps(),
      number("warmup_ratio", {}, "Share of all steps over which the learning rate rises.", {0.0, 1.0, "from 0 to 1"},
             &Recipe::warmup_ratio),
  };
}

void validate_schedule(const Recipe& recipe) {
  const auto refuse = [](const char* message, const char* fix) { throw Error(message, "", fix); };
  if (recipe.warmup_steps > 0 && recipe.warmup_ratio > 0.0)
    refuse("warmup_steps and warmup_ratio are both given", "keep one");
  if (recipe.lr_scheduler_type == Schedule::constant && (recipe.warmup_steps > 0 || recipe.warmup_ratio > 0.0))
    refuse("lr_scheduler_type: constant has no warm-up", "remove the warm-up, or choose constant_with_warmup");
  validate_arguments(recipe);
}

}  // namespace snug
