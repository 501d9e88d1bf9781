#include "report/pytorch_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "recipe/bytes.h"
#include "report/units.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

std::string stack_text(const eager::StackProfile& stack) {
  return fmt::format("torch {}, transformers {}, peft {}, bitsandbytes {}", stack.torch, stack.transformers, stack.peft,
                     stack.bitsandbytes);
}

Json breakdown_of(const eager::Plan& plan) {
  Json json;
  for (size_t role = 0; role < eager::kRoles; ++role) json[eager::kRoleNames[role]] = plan.breakdown[role];
  return json;
}

}  // namespace

std::string pytorch_verdict(const PyTorchAnswer& answer) {
  if (!answer.plan) return fmt::format("{}: not known: {}", answer.trainer, answer.not_covered);
  const eager::Plan& plan = *answer.plan;
  const std::string figures = fmt::format("{} allocated, {} reserved, {} – {} on the device",
                                          format_bytes(plan.allocated_bytes), format_bytes(plan.reserved_bytes),
                                          format_bytes(plan.device_low_bytes), format_bytes(plan.device_high_bytes));
  if (answer.memory_bytes == 0) return fmt::format("{}: {}", answer.trainer, figures);
  return fmt::format("{}: {}: {} of {}", answer.trainer, plan.fits ? "fits" : "does not fit", figures,
                     format_bytes(answer.memory_bytes));
}

std::string pytorch_text(const PyTorchAnswer& answer, const TextStyle& style) {
  if (!answer.plan) return "";
  const eager::Plan& plan = *answer.plan;
  std::string text = fmt::format("\nin PyTorch, at the peak in {} ({} = {} bytes allocated)\n",
                                 eager::kPhaseNames[static_cast<size_t>(plan.phase)], format_bytes(plan.allocated_bytes),
                                 plan.allocated_bytes);
  for (size_t role = 0; role < eager::kRoles; ++role)
    if (plan.breakdown[role] > 0)
      text += fmt::format("  {:<12} {:>10}\n", eager::kRoleNames[role], format_bytes(plan.breakdown[role]));
  text += fmt::format("  between steps {} stay allocated\n", format_bytes(plan.steady_bytes));
  const std::string autocast =
      answer.autocast ? "autocast to " + *answer.autocast + (answer.assumes_autocast ? " (nothing else was said)" : "")
                      : "no autocast";
  const std::string assumed = fmt::format("{}; weights in {}, {}; rows of full length; evaluation, saving left out",
                                          stack_text(answer.stack), answer.weights, autocast);
  text += fmt::format("  assumed  {}\n", wrapped(assumed, style.width, 11));
  return text;
}

nlohmann::ordered_json pytorch_json(const PyTorchAnswer& answer) {
  const Json stack{{"torch", answer.stack.torch},
                   {"transformers", answer.stack.transformers},
                   {"peft", answer.stack.peft},
                   {"bitsandbytes", answer.stack.bitsandbytes}};
  if (!answer.plan) return {{"not_covered", answer.not_covered}, {"stack", stack}};
  const eager::Plan& plan = *answer.plan;
  Json rank{{"count", 1}, {"allocated_bytes", plan.allocated_bytes}, {"reserved_bytes", plan.reserved_bytes}};
  Json json{{"allocated_bytes", plan.allocated_bytes},
            {"reserved_bytes", plan.reserved_bytes},
            {"device_bytes", {{"low", plan.device_low_bytes}, {"high", plan.device_high_bytes}}},
            {"phase", eager::kPhaseNames[static_cast<size_t>(plan.phase)]},
            {"steady_bytes", plan.steady_bytes},
            {"breakdown", breakdown_of(plan)},
            {"fits", answer.memory_bytes > 0 ? Json(plan.fits) : Json()},
            {"stack", stack}};
  json["ranks"] = Json::array({std::move(rank)});
  return json;
}

}  // namespace snug
