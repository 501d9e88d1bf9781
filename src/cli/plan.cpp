// snug plan: will it fit?

#include <fmt/format.h>

#include <cstdio>

#include "base/file.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/plan_html.h"
#include "cli/plan_json.h"
#include "cli/plan_text.h"
#include "cli/terminal.h"
#include "model/catalogue.h"
#include "plan/dump.h"
#include "plan/plan.h"
#include "plan/trace.h"
#include "program/dump.h"
#include "recipe/keys.h"

namespace snug::cli {

namespace {

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
  const Arguments arguments = parse_arguments(words, {"json", "dump", "trace=", "html="});
  if (arguments.recipe.model.empty()) throw UsageError("which model? snug plan MODEL [--method lora] [--memory 16GiB]");
  validate(arguments.recipe);
  const Plan plan = make_plan(resolve_model(arguments.recipe.model), arguments.recipe, this_cpu(arguments.recipe.threads));
  write_views(plan, arguments);
  std::string text;
  if (arguments.has("json")) {
    text = plan_json(plan) + "\n";
  } else if (arguments.has("dump")) {
    text = dump(plan.program) + dump(plan.layout, plan.program);
  } else {
    text = plan_text(plan, arguments.keys_set, style_of(stdout));
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  for (const std::string& key : arguments.passed_over) fmt::print(stderr, "snug: {} has no effect here\n", key);
  return plan.fits() ? 0 : 3;
}

}  // namespace snug::cli
