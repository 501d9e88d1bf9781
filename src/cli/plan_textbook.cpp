#include "cli/plan_textbook.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "advise/textbook.h"
#include "base/error.h"
#include "base/quote.h"
#include "cli/plan_json.h"
#include "cli/target_flags.h"
#include "model/catalogue.h"
#include "recipe/bytes.h"
#include "recipe/keys.h"

namespace snug::cli {

namespace {

using Json = nlohmann::ordered_json;

std::optional<int64_t> count_flag(const Arguments& arguments, const std::string& name) {
  const auto found = arguments.flags.find(name);
  if (found == arguments.flags.end()) return std::nullopt;
  const std::optional<int64_t> count = parse_count(found->second);
  if (!count) throw Error(quote(found->second) + " is not a count", "--" + name, "write 7B, 20M, 350k or a whole number");
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
  if (const auto found = arguments.flags.find("activations"); found != arguments.flags.end())
    q.given_activations = parse_bytes(found->second, "--activations");
}

// One row for people: figures, the rule, and why the plan differs.
std::string row_text(const std::string& name, std::optional<int64_t> by_rule, const std::string& rule, const ExactRow* exact,
                     const std::string& sign = "") {
  std::string text = fmt::format("  {:<12} {:>9}", name, by_rule ? sign + decimal_gigabytes(*by_rule) : "?");
  if (exact != nullptr) text += fmt::format(" {:>9}", decimal_gigabytes(exact->bytes));
  text += (rule.empty() ? "" : "   " + rule) + "\n";
  if (exact != nullptr && !exact->why.empty()) text += "               " + exact->why + "\n";
  return text;
}

std::string activations_text(const TextbookAnswer& answer) {
  std::string text;
  const auto line = [&](const char* name, std::optional<int64_t> bytes, const char* more) {
    if (bytes) text += fmt::format("  {:<34} {:>9}{}\n", name, binary_unit(*bytes), more);
  };
  line("a token and layer", answer.per_token_and_layer, "");
  line("a sequence and layer", answer.per_sequence_and_layer, "");
  line("a sequence", answer.per_sequence, "");
  if (answer.per_sequence) line("the batch", answer.of(TextbookRow::activations), "");
  line("attention scores, sequence and layer", answer.scores, "   only without FlashAttention; snug never holds them");
  return text.empty() ? text : "\nactivations by the rule (binary units, as in 004)\n" + text;
}

std::string text_of(const std::string& name, const TextbookQuestion& q, const Plan* plan) {
  const TextbookAnswer answer = by_the_textbook(q);
  std::array<ExactRow, kTextbookRows> exact;
  if (plan != nullptr) exact = beside_the_textbook(*plan, q);
  std::string text = fmt::format("{} by the textbook, decimal GB\n\n  {:<12} {:>9}", name, "", "rule");
  text += plan != nullptr ? fmt::format(" {:>9}\n", "snug") : "\n";
  for (int i = 0; i < kTextbookRows; ++i) {
    const auto row = static_cast<TextbookRow>(i);
    const auto at = static_cast<size_t>(i);
    if (row == TextbookRow::overhead) text += row_text("static total", answer.static_total, "", nullptr);
    text += row_text(name_of(row), answer.rows[at], answer.rules[at], plan != nullptr ? &exact[at] : nullptr,
                     row == TextbookRow::overhead ? "+" : "");
  }
  const ExactRow whole{plan != nullptr ? plan->peak_bytes + plan->layout.disk_bytes : 0, ""};
  text += row_text("total", answer.total, "without the overhead", plan != nullptr ? &whole : nullptr);
  text += activations_text(answer);
  text += "\nwhere the documents disagree\n";
  for (const std::string& note : contradictions(q)) text += "  " + note + "\n";
  return text;
}

Json json_of(const TextbookQuestion& q, const Plan* plan) {
  const TextbookAnswer answer = by_the_textbook(q);
  const auto number = [](std::optional<int64_t> bytes) { return bytes ? Json(*bytes) : Json(); };
  Json rows = Json::object();
  for (size_t i = 0; i < static_cast<size_t>(kTextbookRows); ++i) {
    Json row{{"bytes", number(answer.rows[i])}, {"rule", answer.rules[i]}};
    if (plan != nullptr) {
      const ExactRow exact = beside_the_textbook(*plan, q)[i];
      row["snug_bytes"] = exact.bytes;
      row["why"] = exact.why;
    }
    rows[name_of(static_cast<TextbookRow>(i))] = std::move(row);
  }
  return {{"parameters", q.parameters},
          {"trained", number(q.trained)},
          {"rows", std::move(rows)},
          {"static_total_bytes", number(answer.static_total)},
          {"total_bytes", number(answer.total)},
          {"activations",
           {{"token_and_layer", number(answer.per_token_and_layer)},
            {"sequence_and_layer", number(answer.per_sequence_and_layer)},
            {"sequence", number(answer.per_sequence)}}},
          {"attention_scores_bytes", number(answer.scores)},
          {"contradictions", contradictions(q)}};
}

}  // namespace

std::vector<std::string> textbook_flags() {
  return {"textbook", "parameters=", "trained=", "hidden=", "layers=", "heads=", "activations="};
}

int plan_textbook(const Arguments& arguments) {
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
  std::string text;
  if (arguments.has("json")) {
    Json json = exact != nullptr ? Json::parse(plan_json(*exact)) : Json{{"schema", 1}};
    json["textbook"] = json_of(q, exact);
    text = json.dump(2) + "\n";
  } else {
    text = text_of(name, q, exact);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace snug::cli
