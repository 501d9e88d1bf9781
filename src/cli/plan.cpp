// snug plan: will it fit?

#include <fmt/format.h>

#include <cstdio>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/plan_devices.h"
#include "cli/plan_json.h"
#include "cli/plan_text.h"
#include "cli/plan_textbook.h"
#include "cli/terminal.h"
#include "model/catalogue.h"
#include "plan/dump.h"
#include "plan/plan.h"
#include "program/dump.h"
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

}  // namespace

int plan_command(std::span<char* const> words) {
  std::vector<std::string> own = textbook_flags();
  own.insert(own.end(), {"json", "dump"});
  for (std::string& flag : device_flags()) own.push_back(std::move(flag));
  const Arguments arguments = parse_arguments(words, own);
  if (arguments.recipe.model.empty()) throw UsageError("which model? snug plan MODEL [--method lora] [--memory 16GiB]");
  refuse_strays(arguments, "textbook", textbook_flags());
  refuse_strays(arguments, "max-memory", device_flags());
  if (arguments.has("textbook") && arguments.has("max-memory"))
    throw UsageError("--textbook and --max-memory: one at a time");
  if (arguments.has("textbook")) return plan_textbook(arguments);
  if (arguments.has("max-memory")) return plan_devices(arguments);
  validate(arguments.recipe);
  const Plan plan = make_plan(resolve_model(arguments.recipe.model), arguments.recipe, this_cpu(arguments.recipe.threads));
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
