#include "ask/plan_held.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "ask/pytorch_answer.h"
#include "ask/pytorch_setup.h"
#include "ask/target_flags.h"
#include "base/error.h"
#include "eager/held.h"
#include "model/families.h"
#include "model/parameters.h"
#include "recipe/bytes.h"
#include "recipe/keys.h"
#include "report/plan_json.h"

namespace snug {

namespace {

struct Part {
  const char* name;
  int64_t bytes;
};

std::vector<Part> parts_of(const eager::Held& held) {
  return {
      {"weights", held.weights}, {"adapters", held.adapters}, {"gradients", held.gradients}, {"optimizer", held.optimizer}};
}

std::string held_text(const eager::Held& held, const PyTorchAnswer& answer, const TextStyle& style) {
  std::string text = fmt::format("{}\nheld in any case, activations left out\n", pytorch_verdict(answer));
  for (const Part& part : parts_of(held))
    if (part.bytes > 0) text += fmt::format("  {:<12} {:>10}\n", part.name, format_bytes(part.bytes));
  const std::string least = format_bytes(held.bytes());
  if (answer.memory_bytes == 0) {
    text += fmt::format("at least {}\n", least);
  } else if (held.bytes() > answer.memory_bytes) {
    text += fmt::format("does not fit: at least {} of {}\n", least, format_bytes(answer.memory_bytes));
  } else {
    text += fmt::format("at least {} of {}; whether it fits is not known\n", least, format_bytes(answer.memory_bytes));
  }
  return text + pytorch_text(answer, style);
}

// `fits`: null where it is not known.
std::string held_json(const Arguments& arguments, const ModelSpec& model, const eager::Held& held,
                      const PyTorchAnswer& answer, const nlohmann::ordered_json& fits) {
  nlohmann::ordered_json json{{"schema", 1},
                              {"model", model_object(model)},
                              {"recipe", recipe_object(arguments.recipe)},
                              {"total_parameters", total_parameters(model)},
                              {"fits", fits},
                              {"at_least_bytes", held.bytes()}};
  for (const Part& part : parts_of(held)) json["held"][part.name] = part.bytes;
  json["pytorch"] = pytorch_json(answer);
  if (arguments.foreign) json["file"] = file_object(*arguments.foreign);
  return json.dump(2) + "\n";
}

// Where PyTorch's side is known whole.
int plan_in_pytorch(const Arguments& arguments, const ModelSpec& model, const eager::Held& held, const PyTorchAnswer& answer,
                    Asker& asker) {
  nlohmann::ordered_json fits;
  if (answer.memory_bytes > 0) fits = answer.plan->fits;
  asker.print(arguments.has("json") ? held_json(arguments, model, held, answer, fits)
                                    : pytorch_verdict(answer) + "\n" + pytorch_text(answer, asker.style()));
  return answer.memory_bytes == 0 || answer.plan->fits ? 0 : 3;
}

}  // namespace

int plan_held(const Arguments& arguments, const ModelSpec& model, Asker& asker) {
  const bool for_pytorch = arguments.has("gpu") || arguments.foreign || arguments.value("runtime") == "pytorch";
  for (const char* view : {"dump", "html", "trace", "solve", "levers", "textbook", "max-memory"})
    if (arguments.has(view)) refuse_unmodelled(model);
  if (!for_pytorch || arguments.value("runtime") == "snug") refuse_unmodelled(model);
  validate(arguments.recipe);
  const Target target = target_for(arguments);
  const int64_t named = arguments.recipe.memory_bytes > 0 ? arguments.recipe.memory_bytes : target.memory_bytes;
  auto answer = pytorch_answer(arguments, model, target, named);
  if (!answer) refuse_unmodelled(model);
  answer->memory_bytes = named;
  std::optional<eager::Held> counted;
  try {
    counted = eager::held_bytes(model, pytorch_setup(arguments, arguments.recipe, model, answer->stack), answer->stack);
  } catch (const Error&) {  // of what the answer says that it does not cover, such as offload, nothing is held for sure
    asker.print(arguments.has("json") ? held_json(arguments, model, {}, *answer, nullptr) : pytorch_verdict(*answer) + "\n");
    return 1;
  }
  const eager::Held& held = *counted;
  if (answer->plan) return plan_in_pytorch(arguments, model, held, *answer, asker);
  const bool too_much = held.bytes() > named;
  const std::string text =
      arguments.has("json") ? held_json(arguments, model, held, *answer, too_much ? nlohmann::ordered_json(false) : nullptr)
                            : held_text(held, *answer, asker.style());
  asker.print(text);
  return too_much ? 3 : 1;
}

}  // namespace snug
