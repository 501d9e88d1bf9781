#include "report/fit_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "recipe/bytes.h"
#include "recipe/keys.h"
#include "report/plan_text.h"
#include "report/units.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

int64_t recomputed_blocks(const Recipe& recipe, int64_t layers) {
  if (!recipe.gradient_checkpointing) return 0;
  return recipe.checkpoint_layers.empty() ? layers : static_cast<int64_t>(recipe.checkpoint_layers.size());
}

// "2 x 8, recompute 20/32, NF4, paged_adamw_8bit".
std::string describe(const FitChoice& choice, int64_t layers) {
  const Recipe& recipe = choice.recipe;
  std::string text = fmt::format("{} x {}", recipe.batch, recipe.accumulation);
  if (recipe.checkpoint_to_budget) {
    text += recipe.offload_activations ? ", recompute or disk to fit" : ", recompute to fit";
  } else if (const int64_t blocks = recomputed_blocks(recipe, layers); blocks > 0) {
    text += fmt::format(", recompute {}/{}", blocks, layers);
  }
  if (recipe.quantize.any()) text += recipe.quantize.in_8bit ? ", int8" : ", 4-bit";
  text += choice.fuses_adam ? ", adamw_torch_fused" : ", " + find_key("optim")->get(recipe);
  if (recipe.master_weights && !*recipe.master_weights) text += ", no master weights";
  if (recipe.optimizer_in_bwd) text += ", optimizer in backward";
  std::vector<std::string> away;
  if (recipe.offload_activations && !recipe.checkpoint_to_budget) away.emplace_back("activations");
  if (recipe.offload_weights) away.emplace_back("weights");
  if (recipe.offload_gradients) away.emplace_back("gradients");
  if (away.empty()) return text;
  const std::string last = away.back();
  away.pop_back();
  return text + ", " + (away.empty() ? "" : fmt::format("{} and ", fmt::join(away, ", "))) + last + " on disk";
}

std::optional<double> step_seconds(const FitAnswer& answer, const FitChoice& choice) {
  return answer.target.cost.known() ? std::optional(choice.step_seconds) : std::nullopt;
}

// On a card most run another engine than snug's.
std::string engine_words(const FitAnswer& answer) {
  if (answer.pytorch) return " in " + answer.pytorch->trainer;
  return answer.target.kind == TargetKind::cuda ? " in snug's engine" : "";
}

std::string headline(const FitAnswer& answer) {
  const std::string room =
      fmt::format("{} of {}{}", format_bytes(answer.budget_bytes), answer.target.name, engine_words(answer));
  if (!answer.fits()) {
    const auto& least = answer.report().least;
    return fmt::format(
        "nothing fits {}{}", room,
        least ? fmt::format(": {} needs {} at least", answer.methods[answer.chosen].name, format_bytes(least->peak_bytes))
              : "");
  }
  const FitChoice& best = answer.report().front.front();
  return fmt::format("best for {}: {}, {}", room, answer.methods[answer.chosen].name, describe(best, answer.model.layers));
}

std::string margin_words(const PyTorchFit& fit) {
  return fmt::format("{} of the card are kept free: {:.0f} % of what PyTorch may reserve", format_bytes(fit.margin_bytes),
                     100 * kReservedMargin);
}

// The three figures of the best recipe in PyTorch, and what is kept free beside them.
std::string pytorch_lines(const PyTorchFit& fit) {
  if (!fit.plan) return "";
  return fmt::format("needs {} allocated, {} reserved, {} – {} on the device; {}\n", format_bytes(fit.plan->allocated_bytes),
                     format_bytes(fit.plan->reserved_bytes), format_bytes(fit.plan->device_low_bytes),
                     format_bytes(fit.plan->device_high_bytes), margin_words(fit));
}

// Where nothing fits: what would take what needs least.
std::string card_line(const PyTorchFit& fit) {
  if (fit.smallest_card.empty()) return fmt::format("{}; no card of the catalogue would take it\n", margin_words(fit));
  return fmt::format("{}; the smallest card that would take it: {}, {}\n", margin_words(fit), fit.smallest_card,
                     format_bytes(fit.smallest_card_bytes));
}

std::string best_lines(const FitAnswer& answer) {
  const FitChoice& best = answer.report().front.front();
  const RunCost cost = run_cost(answer, best);
  const auto seconds = step_seconds(answer, best);
  std::string text =
      answer.pytorch ? pytorch_lines(*answer.pytorch) : fmt::format("needs {}", format_bytes(best.peak_bytes));
  if (seconds) text += (answer.pytorch ? "" : ", ") + seconds_text(seconds) + " a step";
  if (cost.steps) text += fmt::format(", {}", counted(*cost.steps, "step"));
  if (cost.seconds) text += ": " + seconds_text(cost.seconds);
  if (cost.dollars) text += ", " + dollars_text(cost.dollars);
  if (!text.ends_with('\n')) text += "\n";
  for (const std::string& note : best.given_up) text += "gives up: " + note + "\n";
  return text;
}

// A line for each recipe of the front: memory, time, price, what it is; what it gives up below.
std::string front_table(const FitAnswer& answer, const TextStyle& style) {
  constexpr int kIndent = 43;
  std::string text =
      fmt::format("\n{:>12} {:>8} {:>11} {:>7}  {}\n", "memory", "step", "run", "price", "micro-batch x accumulation, …");
  int number = 0;
  for (const FitChoice& choice : answer.report().front) {
    const RunCost cost = run_cost(answer, choice);
    text += fmt::format("{:>2} {:>9} {:>8} {:>11} {:>7}  {}\n", ++number, format_bytes(choice.peak_bytes),
                        seconds_text(step_seconds(answer, choice)), seconds_text(cost.seconds), dollars_text(cost.dollars),
                        wrapped(describe(choice, answer.model.layers), style.width, kIndent));
    for (const std::string& note : choice.given_up)
      text += std::string(kIndent, ' ') + wrapped("gives up: " + note, style.width, kIndent) + "\n";
  }
  return text;
}

std::string methods_table(const FitAnswer& answer) {
  std::string text = "\nby method\n";
  for (const MethodReport& method : answer.methods) {
    text += fmt::format("  {:<14}", method.name);
    if (method.report.front.empty()) {
      const auto& least = method.report.least;
      text += least ? fmt::format("does not fit: needs {} at least\n", format_bytes(least->peak_bytes))
                    : std::string("makes no sense here\n");
      continue;
    }
    const FitChoice& best = method.report.front.front();
    const RunCost cost = run_cost(answer, best);
    text += fmt::format("fits: {:>9}", format_bytes(best.peak_bytes));
    if (const auto seconds = step_seconds(answer, best)) text += fmt::format("  {:>8} a step", seconds_text(seconds));
    if (cost.seconds) text += fmt::format("  {:>11}", seconds_text(cost.seconds));
    if (cost.dollars) text += fmt::format("  {:>7}", dollars_text(cost.dollars));
    text += "\n" + std::string(16, ' ') + describe(best, answer.model.layers) + "\n";
  }
  return text;
}

std::string assumptions(const FitAnswer& answer, const TextStyle& style) {
  std::string text = "\n";
  if (!answer.data.empty()) text += "data       " + answer.data + "\n";
  std::string list;
  for (const std::string& line : answer.assumed) list += (list.empty() ? "" : ", ") + line;
  if (!list.empty()) text += "assumed    " + wrapped(list, style.width, 11) + "\n";
  text += "time       ";
  text += answer.target.cost.known() ? "from " + answer.target.cost.source
                                     : std::string("unknown: snug probe measures this machine; ranked by usual rates");
  int64_t candidates = 0, compiled = 0, laid_out = 0;
  for (const MethodReport& method : answer.methods) {
    candidates += method.report.candidates;
    compiled += method.report.compiled;
    laid_out += method.report.laid_out;
  }
  text += fmt::format("\nsearched   {} recipes in {}: ", candidates, seconds_text(answer.seconds));
  if (answer.pytorch) return text + fmt::format("{} judged, {} followed as a whole\n", compiled, laid_out);
  return text + fmt::format("{} compiled, {} laid out in full\n", compiled, laid_out);
}

std::string way_out_line(const WayOut& out) {
  if (!out.fits) return fmt::format("nor would any change: the least is {}\n", format_bytes(out.peak_bytes));
  std::string flags, notes;
  for (const Setting& setting : out.settings) flags += " " + flag_of(setting);
  for (const std::string& note : out.given_up) notes += (notes.empty() ? "" : "; ") + note;
  return fmt::format("the cheapest that would:{} needs {} ({})\n", flags, format_bytes(out.peak_bytes), notes);
}

Json settings_json(const std::vector<Setting>& settings) {
  Json json = Json::object();
  for (const Setting& setting : settings) json[setting.key] = setting.value;
  return json;
}

Json way_out_json(const WayOut& out) {
  return {{"fits", out.fits},
          {"settings", settings_json(out.settings)},
          {"given_up", out.given_up},
          {"peak_bytes", out.peak_bytes}};
}

// `bytes`: what its memory is called.
Json choice_json(const FitAnswer& answer, const FitChoice& choice, const char* bytes = "peak_bytes") {
  const RunCost cost = run_cost(answer, choice);
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
  return {{"settings", settings_json(choice.settings)},
          {bytes, choice.peak_bytes},
          {"effect", name_of(choice.effect)},
          {"given_up", choice.given_up},
          {"step_seconds", or_null(step_seconds(answer, choice))},
          {"cost",
           {{"steps", or_null(cost.steps)},
            {"tokens", or_null(cost.tokens)},
            {"flops", or_null(cost.flops)},
            {"seconds", or_null(cost.seconds)},
            {"dollars", or_null(cost.dollars)}}}};
}

Json methods_json(const FitAnswer& answer, const char* bytes = "peak_bytes") {
  Json methods = Json::array();
  for (const MethodReport& method : answer.methods) {
    Json front = Json::array();
    for (const FitChoice& choice : method.report.front) front.push_back(choice_json(answer, choice, bytes));
    methods.push_back({{"name", method.name},
                       {"fits", !method.report.front.empty()},
                       {"front", front},
                       {"least_bytes", method.report.least ? Json(method.report.least->peak_bytes) : Json()},
                       {"candidates", method.report.candidates},
                       {"compiled", method.report.compiled},
                       {"laid_out", method.report.laid_out}});
  }
  return methods;
}

Json fit_object(const FitAnswer& answer) {
  return {{"schema", 1},
          {"model", {{"name", answer.model.name}, {"layers", answer.model.layers}}},
          {"device", {{"name", answer.target.name}, {"memory_bytes", answer.target.memory_bytes}}},
          {"budget_bytes", answer.budget_bytes},
          {"fits", answer.fits()},
          {"method", answer.methods[answer.chosen].name},
          {"methods", methods_json(answer)},
          {"way_out", answer.way_out ? way_out_json(*answer.way_out) : Json()},
          {"assumed", answer.assumed},
          {"seconds", answer.seconds},
          {"diff", answer.diff ? Json(*answer.diff) : Json()}};
}

}  // namespace

std::string fit_text(const FitAnswer& answer, const TextStyle& style) {
  const char* on = style.colour ? (answer.fits() ? "\033[1;32m" : "\033[1;31m") : "";
  const char* off = style.colour ? "\033[0m" : "";
  std::string text = fmt::format("{}{}{}\n", on, headline(answer), off);
  if (answer.fits()) text += best_lines(answer) + front_table(answer, style);
  if (!answer.fits() && answer.pytorch && answer.pytorch->plan) text += card_line(*answer.pytorch);
  if (answer.methods.size() > 1) text += methods_table(answer);
  text += assumptions(answer, style);
  return answer.way_out ? text + way_out_line(*answer.way_out) : text;
}

std::string fit_json(const FitAnswer& answer, const std::optional<PyTorchAnswer>& undecided) {
  Json json = fit_object(answer);
  if (undecided) json["pytorch"] = pytorch_json(*undecided);
  return json.dump(2);
}

std::string fit_json(const std::optional<FitAnswer>& of_snug, const FitAnswer& pytorch, const PyTorchAnswer& figures) {
  Json json = fit_object(of_snug ? *of_snug : pytorch);
  if (!of_snug) json["methods"] = Json::array();
  json["fits"] = pytorch.fits();
  json["diff"] = pytorch.diff ? Json(*pytorch.diff) : Json();
  Json& of = json["pytorch"] = pytorch_json(figures);
  const PyTorchFit& fit = *pytorch.pytorch;
  of["fits"] = pytorch.fits();
  of["trainer"] = fit.trainer;
  of["margin_bytes"] = fit.margin_bytes;
  of["method"] = pytorch.methods[pytorch.chosen].name;
  of["settings"] = pytorch.fits() ? settings_json(pytorch.report().front.front().settings) : Json();
  of["methods"] = methods_json(pytorch, "device_bytes");
  of["way_out"] = pytorch.way_out ? way_out_json(*pytorch.way_out) : Json();
  of["smallest_card"] = fit.smallest_card.empty() ? Json() : Json(fit.smallest_card);
  of["assumed"] = pytorch.assumed;
  of["seconds"] = pytorch.seconds;
  of["diff"] = json["diff"];
  return json.dump(2);
}

}  // namespace snug
