#pragma once
// A plan as the JSON object that scripts read (`snug plan --json`).

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "advise/levers.h"
#include "advise/workload.h"
#include "plan/plan.h"
#include "recipe/dialects/dialect.h"
#include "report/pytorch_report.h"

namespace snug {

struct PlanDetails {
  std::optional<CountedData> data;                   // what there is to train on
  bool levers = false;                               // each single change too
  std::optional<std::vector<Lever>> pytorch_levers;  // likewise of PyTorch's plan
  std::optional<ForeignRecipe> foreign;              // the file that was planned, if it is another trainer's
  std::optional<PyTorchAnswer> pytorch;              // what PyTorch needs for it; where it decides, "fits" is its
};

// Its "model".
nlohmann::ordered_json model_object(const ModelSpec& model);
// Every key with the value that it has, as a text.
nlohmann::ordered_json recipe_object(const Recipe& recipe);
// Its "file": what became of each key of another trainer's.
nlohmann::ordered_json file_object(const ForeignRecipe& recipe);

std::string plan_json(const Plan& plan, const PlanDetails& details = {});

}  // namespace snug
