// snug plan: will it fit?

#include <fmt/format.h>

#include <cstdio>

#include "base/file.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/count_data.h"
#include "cli/plan_devices.h"
#include "cli/plan_html.h"
#include "cli/plan_json.h"
#include "cli/plan_text.h"
#include "cli/plan_textbook.h"
#include "cli/target_flags.h"
#include "cli/terminal.h"
#include "model/catalogue.h"
#include "plan/dump.h"
#include "plan/plan.h"
#include "plan/solve.h"
#include "plan/trace.h"
#include "program/dump.h"
#include "recipe/bytes.h"
#include "recipe/keys.h"

namespace snug::cli {

namespace {

// A flag of another view than the one asked for would be without effect.
void refuse_strays(const Arguments& arguments, const std::string& view, const std::vector<std::string>& flags) {
  if (arguments.has(view)) return;
  for (const std::string& flag : flags)
    if (const std::string name = flag.substr(0, flag.find('=')); arguments.has(name))
      throw UsageError("--" + name + " has a meaning only with --" + view);
}

std::string solution_text(const Plan& asked, Quantity quantity) {
  const auto solution = largest_that_fits(asked.model, asked.recipe, asked.target, quantity);
  if (!solution)
    return fmt::format("no {} fits {}\n{}\n", key_of(quantity), format_bytes(asked.budget_bytes), change_text(asked));
  return fmt::format("largest {}: {}, which needs {} of {} (the limit: {})\n", key_of(quantity), solution->value,
                     format_bytes(solution->plan.peak_bytes), format_bytes(asked.budget_bytes), solution->stopped_by);
}

Quantity quantity_asked(const std::string& word) {
  if (const auto quantity = quantity_named(word)) return *quantity;
  throw UsageError("--solve takes batch, seq or rank, not '" + word + "'");
}

// --trace and --html: each file appears whole or not at all.
void write_views(const Plan& plan, const Arguments& arguments) {
  const auto bytes_of = [](std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); };
  if (arguments.has("trace")) {
    OutputFile file(arguments.flags.at("trace"));
    write_trace(plan, [&](std::string_view piece) { file.write(bytes_of(piece)); });
    file.commit();
  }
  if (arguments.has("html")) {
    OutputFile file(arguments.flags.at("html"));
    file.write(bytes_of(plan_html(plan, arguments.keys_set)));
    file.commit();
  }
}

}  // namespace

int plan_command(std::span<char* const> words) {
  std::vector<std::string> own = textbook_flags();
  own.insert(own.end(),
             {"json", "dump", "gpu=", "levers", "solve=", "examples=", "example-tokens=", "count-data", "trace=", "html="});
  for (std::string& flag : device_flags()) own.push_back(std::move(flag));
  const Arguments arguments = parse_arguments(words, own);
  if (arguments.recipe.model.empty()) throw UsageError("which model? snug plan MODEL [--method lora] [--gpu NAME]");
  refuse_strays(arguments, "textbook", textbook_flags());
  refuse_strays(arguments, "max-memory", device_flags());
  if (arguments.has("textbook") && arguments.has("max-memory"))
    throw UsageError("--textbook and --max-memory: one at a time");
  if (arguments.has("textbook")) return plan_textbook(arguments);
  if (arguments.has("max-memory")) return plan_devices(arguments);
  validate(arguments.recipe);
  const Plan plan = make_plan(resolve_model(arguments.recipe.model), arguments.recipe, target_for(arguments));
  write_views(plan, arguments);
  std::optional<CountedData> data;
  if (arguments.has("examples") || arguments.has("example-tokens") || arguments.has("count-data"))
    data = count_data(arguments, plan);
  std::string text;
  bool fits = plan.fits();
  if (arguments.has("json")) {
    text = plan_json(plan, data) + "\n";
  } else if (arguments.has("dump")) {
    text = dump(plan.program) + dump(plan.layout, plan.program);
  } else if (arguments.has("solve")) {
    const Quantity quantity = quantity_asked(arguments.flags.at("solve"));
    text = solution_text(plan, quantity);
    fits = text.starts_with("largest");
  } else {
    text = plan_text(plan, arguments.keys_set, data, style_of(stdout));
    if (arguments.has("levers")) text += levers_text(plan, style_of(stdout));
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  for (const std::string& key : arguments.passed_over) fmt::print(stderr, "snug: {} has no effect here\n", key);
  return fits ? 0 : 3;
}

}  // namespace snug::cli
