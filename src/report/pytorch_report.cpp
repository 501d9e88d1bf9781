#include "report/pytorch_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "recipe/bytes.h"

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

std::string pytorch_text(const PyTorchAnswer& answer) {
  if (!answer.plan) return "";
  const eager::Plan& plan = *answer.plan;
  std::string text = fmt::format("\nin PyTorch, at the peak in {} ({} = {} bytes allocated)\n",
                                 eager::kPhaseNames[static_cast<size_t>(plan.phase)], format_bytes(plan.allocated_bytes),
                                 plan.allocated_bytes);
  for (size_t role = 0; role < eager::kRoles; ++role)
    if (plan.breakdown[role] > 0)
      text += fmt::format("  {:<12} {:>10}\n", eager::kRoleNames[role], format_bytes(plan.breakdown[role]));
  text += fmt::format("  between steps {} stay allocated\n", format_bytes(plan.steady_bytes));
  text += fmt::format("  assumed: {}; weights in {}, {}; rows of full length\n", stack_text(answer.stack), answer.weights,
                      answer.autocast ? "autocast to " + *answer.autocast : "no autocast");
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
