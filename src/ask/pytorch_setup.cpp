#include "ask/pytorch_setup.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "ask/pytorch_evaluation.h"
#include "ask/pytorch_kernels.h"
#include "ask/pytorch_ranks.h"
#include "eager/from_recipe.h"

namespace snug {

namespace {

eager::Attention attention_of(const std::string& word) {
  if (word == "eager") return eager::Attention::eager;
  if (word == "sdpa") return eager::Attention::sdpa;
  if (word == "flash_attention_2" || word == "fa2") return eager::Attention::flash;
  throw UsageError("--attn-implementation is sdpa, flash_attention_2 or eager, not '" + word + "'");
}

// "norm,rope,lora,loss": fms-acceleration's.
eager::FusedKernels fused_kernels_of(const std::string& words) {
  eager::FusedKernels fused;
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find(',', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    bool* const known = word == "norm"          ? &fused.norm
                        : word == "rope"        ? &fused.rope
                        : word == "lora"        ? &fused.adapters
                        : word == "loss"        ? &fused.loss
                        : word == "linear-loss" ? &fused.linear_loss
                                                : nullptr;
    if (known == nullptr)
      throw UsageError("--fused-kernels takes norm, rope, lora, loss and linear-loss, not '" + word + "'");
    *known = true;
    begin = end + 1;
  }
  return fused;
}

std::vector<int64_t> lengths_of(const std::string& text) {
  std::vector<int64_t> lengths;
  for (const char* at = text.data(); at < text.data() + text.size();) {
    int64_t length = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), length);
    if (error != std::errc() || length <= 0) throw UsageError("--row-lengths takes numbers of tokens, such as 512,768");
    lengths.push_back(length);
    at = end + 1;
  }
  return lengths;
}

// A loop of one's own: it gives the model labels, or makes the loss from its logits.
void apply_own_loop(const std::string& word, eager::Setup& setup) {
  if (word != "labels" && word != "logits") throw UsageError("--own-loop is labels or logits, not '" + word + "'");
  setup.own_loop = true;
  setup.own_loss = word == "logits";
  setup.cache = setup.checkpointing == eager::Checkpointing::none;
}

// The checkpoint's linears are GPTQ's, in groups of so many weights.
void apply_gptq(const std::string& word, eager::Setup& setup) {
  int64_t group = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), group);
  if (word != "none" && (error != std::errc() || end != word.data() + word.size() || group <= 0))
    throw UsageError("--gptq is a number of weights that share a scale, such as 128, or none, not '" + word + "'");
  setup.quantization = eager::Quantization::gptq;
  setup.gptq_group = group;
  setup.preparation = eager::Preparation::none;
}

void apply_flags(const Arguments& arguments, eager::Setup& setup) {
  if (sets(arguments, "prepare_model_for_kbit_training") && !arguments.recipe.quantize.upcast)
    setup.preparation = eager::Preparation::none;
  setup.fused = fused_kernels_of(arguments.value("fused-kernels"));
  setup.lengths = lengths_of(arguments.value("row-lengths"));
  if (arguments.has("own-loop")) apply_own_loop(arguments.value("own-loop"), setup);
  if (arguments.has("gptq")) apply_gptq(arguments.value("gptq"), setup);
  if (arguments.has("attn-implementation")) setup.attention = attention_of(arguments.value("attn-implementation"));
  if (!arguments.has("gradient-checkpointing-kwargs") || setup.checkpointing == eager::Checkpointing::none) return;
  const std::string word = arguments.value("gradient-checkpointing-kwargs");
  if (word != "use_reentrant=true" && word != "use_reentrant=false")
    throw UsageError("--gradient-checkpointing-kwargs is use_reentrant=true or use_reentrant=false, not '" + word + "'");
  setup.checkpointing = word == "use_reentrant=true" ? eager::Checkpointing::reentrant : eager::Checkpointing::non_reentrant;
}

std::string leaf_of(const ForeignKey& key) { return key.name.substr(key.name.rfind('.') + 1); }

// The attention that a key of another trainer's file names.
std::optional<eager::Attention> attention_of(const ForeignKey& key) {
  const std::string name = leaf_of(key);
  if (name == "flash_attention" || name == "use_flash_attn")
    return is_on(key) ? std::optional(eager::Attention::flash) : std::nullopt;
  if (name != "flash_attn" && name != "attn_implementation" && name != "attn_impl") return std::nullopt;
  if (key.value == "fa2" || key.value == "flash_attention_2" || key.value == "flash_attn") return eager::Attention::flash;
  if (key.value == "eager" || key.value == "disabled") return eager::Attention::eager;
  return key.value == "sdpa" ? std::optional(eager::Attention::sdpa) : std::nullopt;
}

// In a Trainer's file torch_dtype says how weights are loaded; autocast is bf16's and fp16's alone, which SFTConfig switches
// on and TrainingArguments does not.
bool has_no_autocast(const ForeignRecipe& file) {
  if (file.dialect != Dialect::trl && file.dialect != Dialect::hugging_face) return false;
  const auto says = std::ranges::find_if(file.keys, [](const ForeignKey& key) { return leaf_of(key) == "bf16"; });
  return says != file.keys.end() ? !is_on(*says) : file.dialect == Dialect::hugging_face;
}

bool chunks_loss(const ForeignRecipe& file, const eager::StackProfile& stack) {
  const auto says = std::ranges::find_if(file.keys, [](const ForeignKey& key) { return leaf_of(key) == "loss_type"; });
  if (says == file.keys.end() || stack.sft_always_chunks_loss) return stack.sft_chunks_loss;
  return says->value == "chunked_nll";
}

// The optimizer in the words of flag or file; "" where neither says.
std::string optimizer_word(const Arguments& arguments) {
  std::string word;
  if (arguments.foreign)
    for (const ForeignKey& key : arguments.foreign->keys)
      if (const std::string leaf = leaf_of(key); leaf == "optim" || leaf == "optimizer") word = key.value;
  for (const Flag& flag : arguments.others)
    if (flag.name == "optim") word = flag.value;
  return word;
}

// AdamW has one kernel where it is asked for by that name, and where it is Trainer's own choice: an optimizer that a search
// puts in the place of another will be named.
bool fuses_adam(const Arguments& arguments, const Recipe& recipe, const eager::StackProfile& stack) {
  if (const auto fuses = deepspeed_fuses_adam(arguments)) return *fuses;
  const std::string word = optimizer_word(arguments);
  if (!word.empty() || recipe.optim != arguments.recipe.optim) return word == "adamw_torch_fused";
  if (!arguments.foreign) return stack.trainer_fuses_adam && !sets(arguments, "optim");
  constexpr std::array kOfTrainer = {Dialect::hugging_face, Dialect::trl, Dialect::llama_factory};
  if (arguments.foreign->dialect == Dialect::axolotl) return true;  // its own default
  return stack.trainer_fuses_adam && std::ranges::find(kOfTrainer, arguments.foreign->dialect) != kOfTrainer.end();
}

// Words of another trainer's file that change what PyTorch allocates and that no key of ours says; axolotl and
// LLaMA-Factory switch the cache off themselves.
void apply_file(const ForeignRecipe& file, const eager::StackProfile& stack, eager::Setup& setup) {
  for (const ForeignKey& key : file.keys)
    if (const auto attention = attention_of(key)) setup.attention = *attention;
  for (const ForeignKey& key : file.keys)
    if (key.name == "optimizer.fused" && is_on(key) && setup.optimizer == eager::Optimizer::adamw)
      setup.optimizer = eager::Optimizer::adamw_fused;
  if (setup.autocast == DType::bf16 && has_no_autocast(file)) setup.autocast.reset();
  const bool of_trl = file.dialect == Dialect::trl;
  setup.chunked_loss = of_trl && chunks_loss(file, stack);
  setup.cache = setup.cache && (file.dialect == Dialect::hugging_face || (of_trl && !stack.sft_drops_cache));
}

// The dtype that a trainer loads weights in where its file does not say: axolotl (normalize_config) and LLaMA-Factory
// (model_args.compute_dtype) take that of autocast; the others follow the checkpoint's.
void load_weights_as(const ForeignRecipe& file, eager::Setup& setup) {
  // LLaMA-Factory's own prepare_model_for_training casts nothing but norms, and those only if asked; ms-swift casts nothing.
  if (file.dialect == Dialect::llama_factory || file.dialect == Dialect::swift) setup.preparation = eager::Preparation::none;
  const bool as_autocast = file.dialect == Dialect::axolotl || file.dialect == Dialect::llama_factory;
  if (as_autocast && setup.autocast) setup.weights = *setup.autocast;
  for (const ForeignKey& key : file.keys) {
    if (leaf_of(key) != "torch_dtype" && leaf_of(key) != "dtype") continue;
    if (key.value == "bfloat16") setup.weights = DType::bf16;
    if (key.value == "float16") setup.weights = DType::f16;
    if (key.value == "float32") setup.weights = DType::f32;
  }
}

// "All linears" of trainers that look for nn.Linear themselves, which experts since transformers 5 are not; peft's own
// "all-linear" takes them too (transformers_weight_conversion.py).
void find_linears(const ForeignRecipe& file, const ModelSpec& model, eager::Setup& setup) {
  const bool by_itself =
      file.dialect == Dialect::axolotl || file.dialect == Dialect::llama_factory || file.dialect == Dialect::swift;
  if (by_itself && model.experts.count > 0 && setup.targets == std::vector<std::string>{"all-linear"})
    setup.targets = {"q_proj", "k_proj", "v_proj", "o_proj"};
}

// LLaMA-Factory (freeze_vision_tower) and ms-swift (freeze_vit) leave a vision tower alone unless told otherwise.
void leave_tower(const ForeignRecipe& file, eager::Setup& setup) {
  if (file.dialect != Dialect::llama_factory && file.dialect != Dialect::swift) return;
  setup.adapts_tower = std::ranges::any_of(file.keys, [](const ForeignKey& key) {
    return (leaf_of(key) == "freeze_vision_tower" || leaf_of(key) == "freeze_vit") && !is_on(key);
  });
}

// bnb_4bit_quant_storage: axolotl (loaders/model.py) and LLaMA-Factory (model_utils/quantization.py) name one themselves.
void pack_codes(const ForeignRecipe& file, eager::Setup& setup) {
  if (file.dialect == Dialect::axolotl) setup.packed = DType::bf16;
  if (file.dialect == Dialect::llama_factory) setup.packed = setup.weights;
  for (const ForeignKey& key : file.keys) {
    if (leaf_of(key) != "bnb_4bit_quant_storage") continue;
    if (key.value == "bfloat16") setup.packed = DType::bf16;
    if (key.value == "float16") setup.packed = DType::f16;
    if (key.value == "float32") setup.packed = DType::f32;
  }
}

// "litgpt": its own model and loop run the recipe. A file that is written for another program than transformers says so.
eager::Program program_of(const Arguments& arguments) {
  std::string word(arguments.foreign ? pytorch_trainer(arguments.foreign->dialect) : "transformers");
  if (word.empty() || word == "transformers") word = arguments.has("trainer") ? arguments.value("trainer") : "transformers";
  if (word == "transformers") return eager::Program::transformers;
  if (word == "litgpt") return eager::Program::litgpt;
  if (word == "torchtune") return eager::Program::torchtune;
  throw UsageError("--trainer is transformers, litgpt or torchtune, not '" + word + "'");
}

}  // namespace

bool sets(const Arguments& arguments, const char* key) {
  return std::find(arguments.keys_set.begin(), arguments.keys_set.end(), key) != arguments.keys_set.end();
}

bool is_told_to_pytorch(const ForeignKey& key) {
  return attention_of(key).has_value() || is_about_ranks(key) || is_about_liger(key) || is_about_evaluation(key);
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
  eager::Setup setup = eager::setup_of(recipe, model, stack, program_of(arguments));
  if (arguments.foreign) {
    apply_file(*arguments.foreign, stack, setup);
    load_weights_as(*arguments.foreign, setup);
    pack_codes(*arguments.foreign, setup);
    find_linears(*arguments.foreign, model, setup);
    leave_tower(*arguments.foreign, setup);
    const bool of_codes =
        setup.quantization == eager::Quantization::four_bit || setup.quantization == eager::Quantization::eight_bit;
    if (arguments.foreign->dialect == Dialect::trl && of_codes && stack.sft_narrows_adapters) {
      if (!sets(arguments, "prepare_model_for_kbit_training")) setup.preparation = eager::Preparation::none;
      setup.narrow_adapters = true;
      setup.narrow_magnitudes = stack.sft_narrows_magnitudes;
    }
  }
  apply_flags(arguments, setup);
  const bool is_trainer = setup.program == eager::Program::transformers;
  if (is_trainer && setup.optimizer == eager::Optimizer::adamw && fuses_adam(arguments, recipe, stack))
    setup.optimizer = eager::Optimizer::adamw_fused;
  if (is_trainer && assumes_autocast(arguments)) setup.autocast = DType::bf16;  // every card that is modelled has it
  if (is_trainer) setup.liger = liger_kernels(arguments, setup, stack);
  if (setup.liger.linear_loss) setup.chunked_loss = false;
  setup.evaluation = pytorch_evaluation(arguments, recipe, setup, stack);
  setup.ranks = pytorch_ranks(arguments, setup, model, stack);
  // axolotl's loaders/model.py (is_qlora_and_fsdp_enabled) and trl's prepare_peft_model (is_sharded_qlora) widen nothing
  // then
  const bool skips_widening =
      arguments.foreign && (arguments.foreign->dialect == Dialect::axolotl || arguments.foreign->dialect == Dialect::trl);
  const bool fsdp = setup.ranks.sharding == eager::Sharding::fsdp1 || setup.ranks.sharding == eager::Sharding::fsdp2;
  if (fsdp && !arguments.foreign) setup.packed = setup.weights;  // as peft's documentation has it; FSDP 1 takes no integers
  if (skips_widening && fsdp) setup.preparation = eager::Preparation::none;
  return setup;
}

}  // namespace snug
