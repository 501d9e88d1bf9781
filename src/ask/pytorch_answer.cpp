#include "ask/pytorch_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "ask/pytorch_ranks.h"
#include "ask/pytorch_setup.h"
#include "base/error.h"
#include "plan/accelerators.h"

namespace snug {

namespace {

enum class Runtime : uint8_t { snug, pytorch };

std::optional<Runtime> runtime_asked(const Arguments& arguments) {
  if (!arguments.has("runtime")) return std::nullopt;
  const std::string word = arguments.value("runtime");
  if (word == "snug") return Runtime::snug;
  if (word == "pytorch") return Runtime::pytorch;
  throw UsageError("--runtime is pytorch or snug, not '" + word + "'");
}

// "torch=2.4.1,transformers=4.48.1": what is left out is today's.
eager::StackProfile stack_of(const std::string& text) {
  std::map<std::string, std::string> versions;
  for (const char* name : {"torch", "transformers", "peft", "bitsandbytes", "trl", "litgpt", "deepspeed", "fla"})
    versions[name] = "";
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t equals = part.find('=');
    const auto library = versions.find(part.substr(0, equals));
    if (equals == std::string::npos || library == versions.end())
      throw UsageError(
          "--stack takes torch=, transformers=, peft=, bitsandbytes=, trl=, litgpt=, deepspeed= and fla= with versions, not "
          "'" +
          part + "'");
    library->second = part.substr(equals + 1);
    begin = end + 1;
  }
  return eager::stack_profile(versions["torch"], versions["transformers"], versions["peft"], versions["bitsandbytes"],
                              versions["trl"], versions["litgpt"], versions["deepspeed"], versions["fla"]);
}

// Why the eager model has no answer for a file's trainer; "" where it has.
std::string not_covered(const ForeignRecipe& file) {
  if (pytorch_trainer(file.dialect).empty())
    return fmt::format("{}'s own training loop is not modelled yet", name_of(file.dialect));
  if (file.stage != "sft" && file.stage != "pt") return fmt::format("{} is not modelled yet", file.stage);
  if (file.recipe.packing) return "packed rows are not modelled yet";
  if (!file.unmodelled.empty()) return file.unmodelled + " is not modelled yet";
  for (const ForeignKey& key : file.keys)
    if (key.fate == KeyFate::touches_memory && is_on(key) && !is_told_to_pytorch(key))
      return key.name + " is not modelled yet";
  return "";
}

// Throws Error for a card whose kernels no run of PyTorch has been held against.
eager::Target target_of(const Arguments& arguments, int64_t budget_bytes) {
  const Accelerator* card = arguments.has("gpu") ? find_accelerator(arguments.value("gpu")) : nullptr;
  eager::Target target = card != nullptr ? pytorch_target(*card) : eager::Target{};
  if (arguments.has("gpu") || arguments.recipe.memory_bytes > 0) target.memory_bytes = budget_bytes;
  return target;
}

// Fills in the plan, or why there is none.
void estimate(PyTorchAnswer& answer, const Arguments& arguments, const ModelSpec& model, int64_t budget_bytes) {
  if (arguments.foreign) answer.not_covered = not_covered(*arguments.foreign);
  if (!answer.not_covered.empty()) return;
  try {
    const eager::Setup setup = pytorch_setup(arguments, arguments.recipe, model, answer.stack);
    const eager::Target target = target_of(arguments, budget_bytes);
    answer.assumes_autocast = assumes_autocast(arguments);
    answer.setup = setup;
    answer.weights = name_of(setup.weights);
    answer.delta_rule = !model.delta_net.layers.empty();
    answer.tower_rests = model.vision_parameters > 0;
    if (setup.autocast) answer.autocast = name_of(*setup.autocast);
    answer.memory_bytes = target.memory_bytes;
    answer.plan = eager::estimate(model, setup, answer.stack, target);
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    answer.not_covered = error.problem();
  }
}

}  // namespace

std::vector<std::string> pytorch_flags() {
  return {"runtime=",
          "stack=",
          "attn-implementation=",
          "gradient-checkpointing-kwargs=",
          "use-liger-kernel",
          "fused-kernels=",
          "trainer=",
          "own-loop=",
          "row-lengths=",
          "gptq=",
          "eval-rows=",
          "eval-batch=",
          "compute-metrics",
          "eval-accumulation-steps=",
          "gpus=",
          "fsdp",
          "ddp",
          "deepspeed="};
}

std::optional<PyTorchAnswer> pytorch_answer(const Arguments& arguments, const ModelSpec& model, const Target& target,
                                            int64_t budget_bytes) {
  const auto asked = runtime_asked(arguments);
  gpus_asked(arguments);  // is checked whoever answers
  PyTorchAnswer answer;
  answer.stack = stack_of(arguments.value("stack"));
  const bool is_cuda_card = arguments.has("gpu") && target.kind == TargetKind::cuda;
  if (asked == Runtime::snug || (!asked && !arguments.foreign && !is_cuda_card)) return std::nullopt;
  answer.leads = true;
  if (arguments.recipe.quantize.any())
    answer.share = quantized_share(model, eager::version_number(answer.stack.transformers) >= eager::version_number("5.0"));
  if (arguments.foreign) answer.trainer = std::string(name_of(arguments.foreign->dialect)) + " on PyTorch";
  estimate(answer, arguments, model, budget_bytes);
  return answer;
}

std::optional<PyTorchSide> pytorch_side(const Arguments& arguments, const ModelSpec& model, const PyTorchAnswer& answer,
                                        int64_t budget_bytes) {
  if (!answer.decides()) return std::nullopt;
  return PyTorchSide{.trainer = answer.trainer,
                     .stack = answer.stack,
                     .card = target_of(arguments, budget_bytes),
                     .setup = [arguments, &model, stack = answer.stack](const Recipe& recipe) {
                       return pytorch_setup(arguments, recipe, model, stack);
                     }};
}

}  // namespace snug
