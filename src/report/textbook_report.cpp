#include "report/textbook_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "report/plan_json.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

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

std::string textbook_text(const std::string& name, const TextbookQuestion& q, const Plan* plan) {
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
  const ExactRow whole{plan != nullptr ? plan->peak_bytes + plan->away_bytes() : 0, ""};
  text += row_text("total", answer.total, "without the overhead", plan != nullptr ? &whole : nullptr);
  text += activations_text(answer);
  text += "\nwhere the documents disagree\n";
  for (const std::string& note : contradictions(q)) text += "  " + note + "\n";
  return text;
}

std::string textbook_json(const TextbookQuestion& q, const Plan* plan) {
  Json json = plan != nullptr ? Json::parse(plan_json(*plan)) : Json{{"schema", 1}};
  json["textbook"] = json_of(q, plan);
  return json.dump(2) + "\n";
}

}  // namespace snug
