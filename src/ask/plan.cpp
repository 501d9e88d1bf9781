// snug plan: will it fit?

#include <fmt/format.h>

#include "advise/levers.h"
#include "advise/recommend.h"
#include "advise/solve.h"
#include "ask/answers.h"
#include "ask/arguments.h"
#include "ask/count_data.h"
#include "ask/plan_devices.h"
#include "ask/plan_held.h"
#include "ask/plan_megatron.h"
#include "ask/plan_textbook.h"
#include "ask/pytorch_answer.h"
#include "ask/pytorch_ranks.h"
#include "ask/pytorch_setup.h"
#include "ask/target_flags.h"
#include "base/file.h"
#include "model/catalogue.h"
#include "plan/dump.h"
#include "plan/plan.h"
#include "plan/trace.h"
#include "program/dump.h"
#include "recipe/bytes.h"
#include "recipe/keys.h"
#include "report/plan_html.h"
#include "report/plan_json.h"
#include "report/plan_text.h"

namespace snug {

namespace {

// A flag of another view than the one asked for would be without effect.
void refuse_strays(const Arguments& arguments, const std::string& view, const std::vector<std::string>& flags) {
  if (arguments.has(view)) return;
  for (const std::string& flag : flags)
    if (const std::string name = flag.substr(0, flag.find('=')); arguments.has(name))
      throw UsageError("--" + name + " has a meaning only with --" + view);
}

void check_views(const Arguments& arguments) {
  if (arguments.recipe.model.empty()) throw UsageError("which model? snug plan MODEL [--method lora] [--gpu NAME]");
  refuse_strays(arguments, "textbook", textbook_flags());
  refuse_strays(arguments, "max-memory", device_flags());
  std::string first;
  for (const char* view : {"textbook", "max-memory", "solve", "dump"}) {
    if (!arguments.has(view)) continue;
    if (!first.empty()) throw UsageError("--" + first + " and --" + view + ": one at a time");
    first = view;
  }
}

// --trace and --html: each file appears whole or not at all.
void write_views(const Plan& plan, const Arguments& arguments) {
  const auto bytes_of = [](std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); };
  if (arguments.has("trace")) {
    OutputFile file(arguments.value("trace"));
    write_trace(
        plan, [&](std::string_view piece) { file.write(bytes_of(piece)); }, seconds_by(plan.target.cost));
    file.commit();
  }
  if (arguments.has("html")) {
    OutputFile file(arguments.value("html"));
    file.write(bytes_of(plan_html(plan, arguments.keys_set)));
    file.commit();
  }
}

// --solve in PyTorch: whether there is an answer.
bool print_solution(const Plan& asked, Quantity quantity, PyTorchEngine& engine, Asker& asker) {
  const auto solution = largest_that_fits(asked.model, asked.recipe, engine, quantity);
  const std::string margin = fmt::format("{} kept free", format_bytes(engine.margin_bytes()));
  if (!solution) {
    asker.print(fmt::format("{}: no {} fits {}, {}\n", engine.side().trainer, key_of(quantity),
                            format_bytes(asked.budget_bytes), margin));
    return false;
  }
  asker.print(fmt::format("{}: largest {}: {}, which needs {} of {} on the device, {} (the limit: {})\n",
                          engine.side().trainer, key_of(quantity), solution->value, format_bytes(solution->peak_bytes),
                          format_bytes(asked.budget_bytes), margin, solution->stopped_by));
  return true;
}

// --solve: whether there is an answer.
bool print_solution(const Plan& asked, const std::string& word, PyTorchEngine* pytorch, Asker& asker) {
  const auto quantity = quantity_named(word);
  if (!quantity) throw UsageError("--solve takes batch, seq or rank, not '" + word + "'");
  if (pytorch != nullptr) return print_solution(asked, *quantity, *pytorch, asker);
  const auto solution = largest_that_fits(asked.model, asked.recipe, asked.target, *quantity);
  if (solution) {
    const char* engine = asked.target.kind == TargetKind::cuda ? "snug: " : "";  // on a card most run another
    asker.print(fmt::format("{}largest {}: {}, which needs {} of {} (the limit: {})\n", engine, key_of(*quantity),
                            solution->value, format_bytes(solution->plan.peak_bytes), format_bytes(asked.budget_bytes),
                            solution->stopped_by));
  } else {
    asker.print(fmt::format("no {} fits {}\n{}\n", key_of(*quantity), format_bytes(asked.budget_bytes), change_text(asked)));
  }
  return solution.has_value();
}

// Who names a card and no precision gets what people run on it, as snug fit does.
void assume_precision(Arguments& arguments, const Target& target) {
  const bool says = sets(arguments, "bf16") || sets(arguments, "fp16");
  if (arguments.has("gpu") && !says && !arguments.foreign && arguments.recipe_file.empty())
    apply(arguments.recipe, usual_half(target), "true");
}

// A step's of PyTorch, where no other rank is waited for and the card's rates are known.
std::optional<double> seconds_alone(PyTorchEngine& engine, const Plan& plan) {
  if (!plan.target.cost.known() || engine.side().setup(plan.recipe).ranks.count > 1) return std::nullopt;
  return engine.step_seconds(plan.recipe);
}

std::optional<CountedData> data_asked(const Arguments& arguments, const Plan& plan, Asker& asker) {
  const bool asked = arguments.has("examples") || arguments.has("example-tokens") || arguments.has("count-data");
  return asked ? count_data(arguments, plan, asker) : std::nullopt;
}

std::vector<std::string> joined(std::initializer_list<std::vector<std::string>> groups) {
  std::vector<std::string> all;
  for (const std::vector<std::string>& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace

std::vector<std::string> plan_flags() {
  return joined({{"json", "dump", "gpu=", "gpus-per-node=", "levers", "solve=", "examples=", "example-tokens=", "count-data",
                  "trace=", "html="},
                 textbook_flags(),
                 device_flags(),
                 pytorch_flags(),
                 megatron_plan_flags()});
}

int answer_plan(std::span<char* const> words, Asker& asker) {
  Arguments arguments = parse_arguments(words, plan_flags(), asker, ModelNames::tell_of_their_base);
  if (arguments.has("megatron")) return plan_megatron(arguments, asker);
  check_views(arguments);
  if (arguments.has("textbook")) return plan_textbook(arguments, asker);
  if (arguments.has("max-memory")) return plan_devices(arguments, asker);
  const ModelSpec model = resolve_model(arguments.recipe.model);
  if (!model.unmodelled_step.empty()) return plan_held(arguments, model, asker);
  if (arguments.value("runtime") == "snug") arguments.recipe.parallel = shared_by(arguments);
  validate(arguments.recipe);
  const Target target = target_for(arguments);
  assume_precision(arguments, target);
  const Plan plan = make_plan(model, arguments.recipe, target);
  write_views(plan, arguments);
  auto pytorch = pytorch_answer(arguments, plan.model, plan.target, plan.budget_bytes);
  std::optional<PyTorchEngine> engine;
  if (pytorch)
    if (auto side = pytorch_side(arguments, plan.model, *pytorch, plan.budget_bytes))
      engine.emplace(plan.model, plan.target, std::move(*side));
  if (engine) pytorch->step_seconds = seconds_alone(*engine, plan);
  bool fits = pytorch && pytorch->decides() ? pytorch->plan->fits : plan.fits();
  if (arguments.has("solve")) {
    fits = print_solution(plan, arguments.value("solve"), engine ? &*engine : nullptr, asker);
  } else if (arguments.has("dump")) {
    asker.print(dump(plan.program) + dump(plan.layout, plan.program));
  } else if (arguments.has("json")) {
    PlanDetails details{
        .data = data_asked(arguments, plan, asker), .levers = arguments.has("levers"), .foreign = arguments.foreign};
    details.pytorch = pytorch;
    if (engine && details.levers) details.pytorch_levers = levers(plan, *engine);
    asker.print(plan_json(plan, details) + "\n");
  } else {
    asker.print(plan_text(plan, arguments.keys_set, data_asked(arguments, plan, asker), asker.style(), pytorch));
    if (arguments.has("levers"))
      asker.print(engine ? levers_text(levers(plan, *engine), asker.style(), engine->side().trainer)
                         : levers_text(levers(plan), asker.style()));
  }
  for (const std::string& key : arguments.passed_over) asker.tell(fmt::format("snug: {} has no effect here\n", key));
  return fits ? 0 : 3;
}

}  // namespace snug
