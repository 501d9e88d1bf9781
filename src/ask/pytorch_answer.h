#pragma once
// Which engine a plan answers for, and PyTorch's answer: --runtime, --stack and the words that only PyTorch's trainers know.

#include <optional>
#include <string>
#include <vector>

#include "advise/pytorch_engine.h"
#include "ask/arguments.h"
#include "model/model_spec.h"
#include "plan/target.h"
#include "report/pytorch_report.h"

namespace snug {

// The command's own flags for it.
std::vector<std::string> pytorch_flags();

// PyTorch's answer for the arguments' recipe: another trainer's recipe, a model with --gpu, or --runtime pytorch; nothing
// otherwise and with --runtime snug. Where the eager model does not cover it, the answer says so and does not lead. Throws
// UsageError for words that mean nothing.
std::optional<PyTorchAnswer> pytorch_answer(const Arguments& arguments, const ModelSpec& model, const Target& target,
                                            int64_t budget_bytes);

// PyTorch's side of searches around a recipe of which it has a verdict; none where snug's own decides. `model` must outlive
// it.
std::optional<PyTorchSide> pytorch_side(const Arguments& arguments, const ModelSpec& model, const PyTorchAnswer& answer,
                                        int64_t budget_bytes);

}  // namespace snug
