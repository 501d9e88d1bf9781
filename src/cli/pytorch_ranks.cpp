#include "cli/pytorch_ranks.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "cli/pytorch_setup.h"
#include "recipe/dialects/reading.h"

namespace snug::cli {

namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(what, "", "run the trainer under snug measure"); }

int64_t count_asked(const Arguments& arguments) {
  if (!arguments.has("gpus")) return arguments.foreign ? arguments.foreign->gpus : 0;
  const int64_t count = dialects::count_of(arguments.value("gpus"));
  if (count < 1) throw UsageError("--gpus is a number of GPUs, not '" + arguments.value("gpus") + "'");
  return count;
}

snug::Sharding sharding_asked(const Arguments& arguments) {
  if (arguments.has("fsdp") && arguments.has("ddp"))
    throw UsageError("--fsdp and --ddp are two ways to share a run: one of them");
  if (arguments.has("fsdp")) return snug::Sharding::fsdp;
  if (arguments.has("ddp") || !arguments.foreign) return snug::Sharding::none;
  return arguments.foreign->sharding;
}

// FSDP 2 where the file says so, and since transformers 5 where it does not.
void check_version(const Arguments& arguments, const eager::StackProfile& stack) {
  const int64_t said = arguments.foreign ? arguments.foreign->fsdp_version : 0;
  const bool is_new = eager::version_number(stack.transformers) >= eager::version_number("5.0");
  if (said == 1 || (said == 0 && !is_new)) refuse("FSDP 1 is not modelled yet");
  if (!is_new) refuse("FSDP before transformers 5 is not modelled yet");
}

// trainer.py _build_accelerator_args; LLaMA-Factory switches it off for LoRA (hparams/parser.py).
bool finds_unused(const Arguments& arguments, const eager::Setup& setup) {
  if (!arguments.foreign) return eager::finds_unused(setup);
  for (const ForeignKey& key : arguments.foreign->keys)
    if (key.name.ends_with("ddp_find_unused_parameters")) return is_on(key);
  const bool lora = setup.method == eager::Method::lora;
  return !(lora && arguments.foreign->dialect == Dialect::llama_factory) && eager::finds_unused(setup);
}

}  // namespace

bool is_about_ranks(const ForeignKey& key) {
  constexpr std::array kKeys = {"fsdp", "fsdp_config", "fsdp_version", "deepspeed", "ddp_find_unused_parameters"};
  return std::find(kKeys.begin(), kKeys.end(), key.name) != kKeys.end();
}

eager::Ranks pytorch_ranks(const Arguments& arguments, const eager::Setup& setup, const eager::StackProfile& stack) {
  eager::Ranks ranks;
  const int64_t count = count_asked(arguments);
  const snug::Sharding sharding = sharding_asked(arguments);
  const bool zero = sharding != snug::Sharding::none && sharding != snug::Sharding::fsdp;
  if (zero) refuse("DeepSpeed is not modelled yet");
  if (arguments.foreign && arguments.foreign->offloads) refuse("FSDP's offload to the host is not modelled yet");
  if (sharding == snug::Sharding::fsdp && count == 0)
    throw Error("how many GPUs share the run by FSDP is not said", "fsdp", "--gpus 4");
  if (count <= 1) return ranks;
  ranks.count = count;
  if (sharding == snug::Sharding::fsdp) {
    check_version(arguments, stack);
    ranks.sharding = eager::Sharding::fsdp2;
    ranks.reshards_after_forward = !arguments.foreign || !arguments.foreign->keeps_gathered;
    return ranks;
  }
  ranks.sharding = eager::Sharding::ddp;
  ranks.finds_unused = finds_unused(arguments, setup);
  return ranks;
}

}  // namespace snug::cli
