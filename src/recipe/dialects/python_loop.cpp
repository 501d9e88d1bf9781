#include "recipe/dialects/python_loop.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "recipe/dialects/reading.h"

namespace snug::dialects {

using Kind = PythonValue::Kind;

namespace {

// "with torch.autocast("cuda", dtype=torch.bfloat16):", on a GPU fp16 where no type is named.
void take_autocast(const PythonScript& script, Entries& entries) {
  const Call* const casts = script.first([](const Call& call) {
    const Argument* const enabled = argument_of(&call, "enabled");
    return call.name() == "autocast" && !(enabled && truth_of(enabled->value) == false);
  });
  if (!casts) return;
  const Argument* const type = argument_of(casts, "dtype", 1);
  const std::string name = type ? type->value.text : "float16";
  if (name == "bfloat16" || name == "float16") entries.say(name == "float16" ? "fp16" : "bf16", "true", {});
}

}  // namespace

void take_loop(PythonScript& script, Document& document, Entries& entries) {
  document.notes.emplace_back("it trains in a loop of its own: planned as the Trainer's, with what it loads");
  const auto of_training = [](const Call& call) {
    const std::string target = lower(call.target);
    const bool other = target.find("val") != std::string::npos || target.find("test") != std::string::npos ||
                       target.find("eval") != std::string::npos || target.find("dev") != std::string::npos;
    return makes_batches(call) && !other && argument_of(&call, "batch_size", 1);
  };
  const Call* const here = script.first(of_training);
  if (const Call* loader = here ? here : script.first_elsewhere(of_training))
    entries.add("per_device_train_batch_size", *argument_of(loader, "batch_size", 1));
  else
    document.unread.emplace_back("per_device_train_batch_size");
  for (const char* name : {"gradient_accumulation_steps", "grad_accum_steps", "accumulation_steps", "grad_accum"})
    if (const PythonValue steps = script.bound(name); steps.kind == Kind::number)
      entries.add("gradient_accumulation_steps", {name, 0, steps, steps.span});
  if (const PythonValue parts = script.parts_of_loss(); parts.known())
    entries.add("gradient_accumulation_steps", {"loss", 0, parts, parts.span});
  const Call* const accelerator = script.first([](const Call& call) { return call.name() == "Accelerator"; });
  const Argument* const precision = argument_of(accelerator, "mixed_precision");
  if (precision && (precision->value.text == "bf16" || precision->value.text == "fp16"))
    entries.say(precision->value.text, "true", precision->span);
  else
    take_autocast(script, entries);
  if (const Argument* steps = argument_of(accelerator, "gradient_accumulation_steps"))
    entries.add("gradient_accumulation_steps", *steps);
  constexpr std::array<Renamed, 5> kOptimizers = {{{"AdamW8bit", "adamw_bnb_8bit"},
                                                   {"PagedAdamW8bit", "paged_adamw_8bit"},
                                                   {"PagedAdamW32bit", "paged_adamw_32bit"},
                                                   {"Adafactor", "adafactor"},
                                                   {"SGD", "sgd"}}};
  for (const auto& [theirs, ours] : kOptimizers)
    if (script.calls(std::array<std::string_view, 1>{theirs}, PythonScript::kEnd) != false)
      return entries.say("optim", std::string(ours), {});
}

void take_own_lora(PythonScript& script, Document& document, Entries& entries) {
  document.notes.emplace_back("its LoRA is the script's own: planned as PEFT's");
  entries.say("use_peft", "true", {});
  for (const char* name : {"lora_r", "lora_rank", "rank"})  // a process' rank begins at 0
    if (const PythonValue rank = script.bound(name); rank.kind == Kind::number && number_of(rank) > 0)
      entries.add("lora_r", {name, 0, rank, rank.span});
  for (const char* key : kOfPair)
    if (!document.has(key)) document.unread.emplace_back(key);
}

}  // namespace snug::dialects
