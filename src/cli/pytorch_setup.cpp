#include "cli/pytorch_setup.h"

#include <algorithm>

#include "eager/from_recipe.h"

namespace snug::cli {

namespace {

eager::Attention attention_of(const std::string& word) {
  if (word == "eager") return eager::Attention::eager;
  if (word == "sdpa") return eager::Attention::sdpa;
  if (word == "flash_attention_2" || word == "fa2") return eager::Attention::flash;
  throw UsageError("--attn-implementation is sdpa, flash_attention_2 or eager, not '" + word + "'");
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

// Words of another trainer's file that change what PyTorch allocates and that no key of ours says.
void apply_file(const ForeignRecipe& file, eager::Setup& setup) {
  for (const ForeignKey& key : file.keys) {
    const std::string name = key.name.substr(key.name.rfind('.') + 1);
    if ((name == "flash_attention" || name == "use_flash_attn") && is_on(key)) setup.attention = eager::Attention::flash;
    if (name != "flash_attn" && name != "attn_implementation") continue;
    if (key.value == "fa2" || key.value == "flash_attention_2") setup.attention = eager::Attention::flash;
    if (key.value == "eager" || key.value == "disabled") setup.attention = eager::Attention::eager;
    if (key.value == "sdpa") setup.attention = eager::Attention::sdpa;
  }
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

}  // namespace

bool sets(const Arguments& arguments, const char* key) {
  return std::find(arguments.keys_set.begin(), arguments.keys_set.end(), key) != arguments.keys_set.end();
}

bool is_on(const ForeignKey& key) {
  return key.value != "false" && key.value != "False" && key.value != "null" && key.value != "0";
}

// Who names a card and no precision gets what people run on it.
bool assumes_autocast(const Arguments& arguments) {
  return !arguments.foreign && arguments.recipe_file.empty() && !sets(arguments, "bf16") && !sets(arguments, "fp16");
}

eager::Setup pytorch_setup(const Arguments& arguments, const Recipe& recipe, const ModelSpec& model,
                           const eager::StackProfile& stack) {
  eager::Setup setup = eager::setup_of(recipe, model, stack);
  if (arguments.foreign) {
    apply_file(*arguments.foreign, setup);
    load_weights_as(*arguments.foreign, setup);
  }
  apply_flags(arguments, setup);
  if (assumes_autocast(arguments)) setup.autocast = DType::bf16;  // every card that is modelled has it
  return setup;
}

}  // namespace snug::cli
