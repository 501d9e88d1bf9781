#include "ask/plan_textbook.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "advise/textbook.h"
#include "ask/target_flags.h"
#include "base/error.h"
#include "base/quote.h"
#include "model/catalogue.h"
#include "recipe/bytes.h"
#include "recipe/keys.h"
#include "report/textbook_report.h"

namespace snug {

namespace {

std::optional<int64_t> count_flag(const Arguments& arguments, const std::string& name) {
  if (!arguments.has(name)) return std::nullopt;
  const std::string word = arguments.value(name);
  const std::optional<int64_t> count = parse_count(word);
  if (!count) throw Error(quote(word) + " is not a count", "--" + name, "write 7B, 20M, 350k or a whole number");
  return count;
}

void read_flags(const Arguments& arguments, TextbookQuestion& q) {
  constexpr int64_t kMostHidden = 1 << 24, kMostLayers = 1 << 20;
  const auto within = [&](const std::string& name, int64_t most, int64_t& to) {
    const std::optional<int64_t> value = count_flag(arguments, name);
    if (value && *value > most)
      throw Error(fmt::format("{} is too large", *value), "--" + name, fmt::format("at most {}", most));
    to = value.value_or(to);
  };
  if (const auto trained = count_flag(arguments, "trained")) q.trained = trained;
  within("hidden", kMostHidden, q.hidden);
  within("layers", kMostLayers, q.layers);
  within("heads", kMostHidden, q.heads);
  if (arguments.has("activations")) q.given_activations = parse_bytes(arguments.value("activations"), "--activations");
}

}  // namespace

std::vector<std::string> textbook_flags() {
  return {"textbook", "parameters=", "trained=", "hidden=", "layers=", "heads=", "activations="};
}

int plan_textbook(const Arguments& arguments, Asker& asker) {
  validate(arguments.recipe);
  const std::string& name = arguments.recipe.model;
  const std::optional<int64_t> count = std::filesystem::exists(name) ? std::nullopt : parse_count(name);
  std::optional<Plan> plan;
  TextbookQuestion q;
  if (count) {
    q = textbook_question(arguments.recipe, *count);
  } else {
    plan = make_plan(resolve_model(name), arguments.recipe, target_for(arguments));
    q = textbook_question(*plan);
  }
  if (const auto round = count_flag(arguments, "parameters")) {
    q.parameters = *round;
    if (arguments.recipe.method == Method::full) q.trained = round;
  }
  read_flags(arguments, q);
  const Plan* exact = plan ? &*plan : nullptr;
  const std::string text = arguments.has("json") ? textbook_json(q, exact) : textbook_text(name, q, exact);
  asker.print(text);
  return 0;
}

}  // namespace snug
