#include "cli/pytorch_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "eager/from_recipe.h"
#include "plan/accelerators.h"

namespace snug::cli {

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
  std::map<std::string, std::string> versions{
      {"torch", ""}, {"transformers", ""}, {"peft", ""}, {"bitsandbytes", ""}, {"trl", ""}};
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t equals = part.find('=');
    const auto library = versions.find(part.substr(0, equals));
    if (equals == std::string::npos || library == versions.end())
      throw UsageError("--stack takes torch=, transformers=, peft=, bitsandbytes= and trl= with versions, not '" + part +
                       "'");
    library->second = part.substr(equals + 1);
    begin = end + 1;
  }
  return eager::stack_profile(versions["torch"], versions["transformers"], versions["peft"], versions["bitsandbytes"],
                              versions["trl"]);
}

eager::Attention attention_of(const std::string& word) {
  if (word == "eager") return eager::Attention::eager;
  if (word == "sdpa") return eager::Attention::sdpa;
  if (word == "flash_attention_2" || word == "fa2") return eager::Attention::flash;
  throw UsageError("--attn-implementation is sdpa, flash_attention_2 or eager, not '" + word + "'");
}

bool sets(const Arguments& arguments, const char* key) {
  return std::find(arguments.keys_set.begin(), arguments.keys_set.end(), key) != arguments.keys_set.end();
}

void apply_flags(const Arguments& arguments, eager::Setup& setup) {
  if (sets(arguments, "prepare_model_for_kbit_training") && !arguments.recipe.quantize.upcast)
    setup.preparation = eager::Preparation::none;
  if (arguments.has("attn-implementation")) setup.attention = attention_of(arguments.value("attn-implementation"));
  if (!arguments.has("gradient-checkpointing-kwargs") || setup.checkpointing == eager::Checkpointing::none) return;
  const std::string word = arguments.value("gradient-checkpointing-kwargs");
  if (word != "use_reentrant=true" && word != "use_reentrant=false")
    throw UsageError("--gradient-checkpointing-kwargs is use_reentrant=true or use_reentrant=false, not '" + word + "'");
  setup.checkpointing = word == "use_reentrant=true" ? eager::Checkpointing::reentrant : eager::Checkpointing::non_reentrant;
}

bool is_on(const ForeignKey& key) {
  return key.value != "false" && key.value != "False" && key.value != "null" && key.value != "0";
}

// Words of another trainer's file that change what PyTorch allocates and that no key of ours says.
void apply_file(const ForeignRecipe& file, eager::Setup& setup) {
  for (const ForeignKey& key : file.keys) {
    const std::string name = key.name.substr(key.name.rfind('.') + 1);
    if ((name == "flash_attention" || name == "use_flash_attn") && is_on(key)) setup.attention = eager::Attention::flash;
    if (name == "flash_attn" || name == "attn_implementation")
      setup.attention = key.value == "fa2" || key.value == "flash_attention_2" ? eager::Attention::flash
                        : key.value == "eager" || key.value == "disabled"      ? eager::Attention::eager
                                                                               : eager::Attention::sdpa;
  }
}

bool names_liger(const ForeignRecipe& file) {
  return std::any_of(file.keys.begin(), file.keys.end(),
                     [](const ForeignKey& key) { return key.name.find("liger") != std::string::npos && is_on(key); });
}

// The dtype that a trainer loads weights in where its file does not say: axolotl (normalize_config) and LLaMA-Factory
// (model_args.compute_dtype) take that of autocast; the others follow the checkpoint's.
void load_weights_as(const ForeignRecipe& file, eager::Setup& setup) {
  // LLaMA-Factory's own prepare_model_for_training casts nothing but norms, and those only if asked.
  if (file.dialect == Dialect::llama_factory) setup.preparation = eager::Preparation::none;
  const bool as_autocast = file.dialect == Dialect::axolotl || file.dialect == Dialect::llama_factory;
  if (as_autocast && setup.autocast) setup.weights = *setup.autocast;
  for (const ForeignKey& key : file.keys) {
    const std::string name = key.name.substr(key.name.rfind('.') + 1);
    if (name != "torch_dtype" && name != "dtype") continue;
    if (key.value == "bfloat16") setup.weights = DType::bf16;
    if (key.value == "float16") setup.weights = DType::f16;
    if (key.value == "float32") setup.weights = DType::f32;
  }
}

// Who names a card and no precision gets what people run on it.
bool assume_autocast(const Arguments& arguments, eager::Setup& setup) {
  if (arguments.foreign || !arguments.recipe_file.empty() || sets(arguments, "bf16") || sets(arguments, "fp16"))
    return false;
  setup.autocast = DType::bf16;  // every card that is modelled has it
  return true;
}

// Why the eager model has no answer for a file's trainer; "" where it has.
std::string not_covered(const ForeignRecipe& file) {
  constexpr std::array kOwnLoops = {Dialect::torchtune, Dialect::unsloth, Dialect::megatron_swift,
                                    Dialect::llama_factory_v1};
  if (std::find(kOwnLoops.begin(), kOwnLoops.end(), file.dialect) != kOwnLoops.end())
    return fmt::format("{}'s own training loop is not modelled yet", name_of(file.dialect));
  if (file.gpus > 1 || file.sharding != Sharding::none) return "several GPUs are not modelled yet";
  if (file.stage != "sft" && file.stage != "pt") return fmt::format("{} is not modelled yet", file.stage);
  if (names_liger(file)) return "Liger's kernels are not modelled yet";
  if (file.recipe.packing) return "packed rows are not modelled yet";
  for (const ForeignKey& key : file.keys)
    if (key.fate == KeyFate::touches_memory && is_on(key)) return key.name + " is not modelled yet";
  return "";
}

// Throws Error for a card whose kernels no run of PyTorch has been held against.
eager::Target target_of(const Arguments& arguments, int64_t budget_bytes) {
  eager::Target target;
  if (arguments.has("gpu") || arguments.recipe.memory_bytes > 0) target.memory_bytes = budget_bytes;
  const Accelerator* card = arguments.has("gpu") ? find_accelerator(arguments.value("gpu")) : nullptr;
  if (card == nullptr) return target;
  if (card->compute_capability == 0) throw Error(card->name + " is no CUDA card: PyTorch there is not modelled yet");
  if (card->compute_capability < 80) throw Error("cards before Ampere are not modelled yet, " + card->name + " is one");
  target.compute_capability = card->compute_capability;
  if (card->multiprocessors > 0) target.multiprocessors = card->multiprocessors;
  target.context_least_bytes = card->context_least_bytes;
  target.context_most_bytes = card->context_most_bytes;
  return target;
}

// Fills in the plan, or why there is none.
void estimate(PyTorchAnswer& answer, const Arguments& arguments, const ModelSpec& model, int64_t budget_bytes) {
  if (arguments.foreign) answer.not_covered = not_covered(*arguments.foreign);
  if (arguments.has("use-liger-kernel")) answer.not_covered = "Liger's kernels are not modelled yet";
  if (!answer.not_covered.empty()) return;
  try {
    eager::Setup setup = eager::setup_of(arguments.recipe, model, answer.stack);
    const eager::Target target = target_of(arguments, budget_bytes);
    if (arguments.foreign) {
      apply_file(*arguments.foreign, setup);
      load_weights_as(*arguments.foreign, setup);
    }
    apply_flags(arguments, setup);
    answer.assumes_autocast = assume_autocast(arguments, setup);
    answer.weights = name_of(setup.weights);
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
  return {"runtime=", "stack=", "attn-implementation=", "gradient-checkpointing-kwargs=", "use-liger-kernel"};
}

std::optional<PyTorchAnswer> pytorch_answer(const Arguments& arguments, const ModelSpec& model, const Target& target,
                                            int64_t budget_bytes) {
  const auto asked = runtime_asked(arguments);
  PyTorchAnswer answer;
  answer.stack = stack_of(arguments.value("stack"));
  const bool is_cuda_card = arguments.has("gpu") && target.kind == TargetKind::cuda;
  if (asked == Runtime::snug || (!asked && !arguments.foreign && !is_cuda_card)) return std::nullopt;
  answer.leads = true;
  if (arguments.foreign) answer.trainer = std::string(name_of(arguments.foreign->dialect)) + " on PyTorch";
  estimate(answer, arguments, model, budget_bytes);
  return answer;
}

}  // namespace snug::cli
