#include "eager/from_recipe.h"

#include <algorithm>

#include "base/error.h"
#include "model/module_names.h"
#include "model/parameters.h"

namespace snug::eager {
namespace {

Optimizer optimizer_of(const Recipe& recipe) {
  const bool paged = recipe.pages_states;
  switch (recipe.optim) {
    case snug::Optimizer::adamw: return paged ? Optimizer::paged_adamw_32bit : Optimizer::adamw;
    case snug::Optimizer::adamw_8bit: return paged ? Optimizer::paged_adamw_8bit : Optimizer::adamw_8bit;
    case snug::Optimizer::lion: return Optimizer::lion_32bit;
    case snug::Optimizer::lion_8bit: return Optimizer::lion_8bit;
    case snug::Optimizer::adafactor: return Optimizer::adafactor;
    case snug::Optimizer::sgd: return Optimizer::sgd;
    case snug::Optimizer::adamw_bf16: break;
  }
  throw Error("the model of PyTorch's memory does not cover this optimizer yet", "optim",
              "adamw_torch, adamw_bnb_8bit, paged_adamw_32bit, paged_adamw_8bit, lion_32bit, lion_8bit, adafactor, sgd");
}

// What a recipe asks for that would change the answer and is not followed.
void check_covered(const Recipe& recipe, Program program) {
  const auto refuse = [](const std::string& what, const char* key) {
    throw Error("the model of PyTorch's memory does not cover " + what + " yet", key,
                "plan with --runtime snug, or run the trainer under snug measure");
  };
  if (!recipe.lora.rank_pattern.empty()) refuse("ranks by module", "rank_pattern");
  for (const std::string& target : recipe.lora.target_modules)
    if (program == Program::transformers && (target == "lm_head" || target == "embed_tokens" || target == "wte"))
      refuse("adapters on the head or on embeddings", "lora_target_modules");
  if (!recipe.checkpoint_layers.empty()) refuse("checkpointing of some blocks", "checkpoint_layers");
  if (!recipe.checkpoint_parts.empty()) refuse("checkpointing of parts of blocks", "checkpoint_parts");
  if (recipe.checkpoint_inputs > 0) refuse("checkpointing of some blocks' inputs", "checkpoint_inputs");
  if (recipe.tiled_mlp) refuse("tiled MLPs", "tiled_mlp");
  if (recipe.checkpoint_to_budget) refuse("checkpointing to a budget", "gradient_checkpointing");
  if (recipe.offload_activations) refuse("activations on disk", "offload_activations");
  if (recipe.offload_weights) refuse("weights on disk", "offload_weights");
  if (recipe.offload_optimizer) refuse("an optimizer's states on disk", "offload_optimizer");
  if (recipe.optimizer_in_bwd) refuse("updates during backward", "optimizer_in_bwd");
  if (recipe.optim == snug::Optimizer::sgd && recipe.momentum > 0) refuse("SGD with momentum", "momentum");
}

// Of what is trained whole beside an adapter: the embedding and the head, where they are two.
void save_modules(const Recipe& recipe, const ModelSpec& spec, Setup& setup) {
  const ModuleNames names = module_names(spec);
  for (const std::string& name : recipe.lora.modules_to_save) {
    const bool head = names.head.ends_with(name), embedding = names.embedding.ends_with(name);
    if ((!head && !embedding) || spec.tied_embeddings || setup.program != Program::transformers)
      throw Error("the model of PyTorch's memory does not cover '" + name + "' trained whole beside an adapter yet",
                  "modules_to_save", "plan with --runtime snug, or run the trainer under snug measure");
    (head ? setup.saves_head : setup.saves_embedding) = true;
  }
}

// peft/utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING; of models that are not in it likewise: the
// one projection of queries, keys and values, where they have one.
std::vector<std::string> default_targets(const ModelSpec& spec) {
  if (spec.family == "phi") return {"q_proj", "v_proj", "fc1", "fc2"};
  const std::vector<Parameter> parameters = parameters_of(spec);
  for (const char* joined : {"c_attn", "query_key_value", "qkv_proj", "Wqkv", "wqkv", "W_pack"})
    if (std::ranges::find(parameters, joined, &Parameter::module) != parameters.end()) return {joined};
  return {"q_proj", "v_proj"};
}

}  // namespace

Setup setup_of(const Recipe& recipe, const ModelSpec& spec, const StackProfile& stack, Program program) {
  check_covered(recipe, program);
  Setup setup;
  setup.program = program;
  setup.method = recipe.method == snug::Method::full ? Method::full : Method::lora;
  setup.weights = spec.dtype;
  if (recipe.bf16) setup.autocast = DType::bf16;
  if (recipe.fp16) setup.autocast = DType::f16;
  if (setup.autocast && program != Program::transformers) {  // whose "bf16" is the dtype of the weights
    setup.weights = *setup.autocast;
    setup.autocast.reset();
  }
  if (spec.quantization) {  // as the checkpoint holds them
    setup.quantization = is_4bit(spec.quantization->type) ? Quantization::four_bit : Quantization::eight_bit;
    setup.double_quant = spec.quantization->double_quant;
  } else if (recipe.quantize.any()) {
    setup.quantization = recipe.quantize.in_4bit ? Quantization::four_bit : Quantization::eight_bit;
    setup.double_quant = recipe.quantize.double_quant;
  }
  if (setup.quantization != Quantization::none) {
    setup.preparation = recipe.quantize.casts_back ? Preparation::trl : Preparation::peft;
  }
  setup.rank = recipe.lora.r;
  setup.dropout = recipe.lora.dropout;
  setup.dora = recipe.lora.use_dora;
  setup.targets = recipe.lora.target_modules;
  save_modules(recipe, spec, setup);
  if (setup.targets.empty() && setup.method == Method::lora) setup.targets = default_targets(spec);
  setup.checkpointing = !recipe.gradient_checkpointing ? Checkpointing::none
                        : stack.reentrant_by_default   ? Checkpointing::reentrant
                                                       : Checkpointing::non_reentrant;
  setup.cache = stack.trainer_keeps_cache && setup.checkpointing == Checkpointing::none;
  if (spec.attention_softcap > 0 && stack.capped_scores_are_eager) setup.attention = Attention::eager;
  setup.optimizer = optimizer_of(recipe);
  setup.batch = recipe.batch;
  setup.seq_len = recipe.seq_len > 0 ? recipe.seq_len : std::min<int64_t>(1024, spec.max_position);
  setup.accumulation = recipe.accumulation;
  setup.max_grad_norm = recipe.max_grad_norm;
  return setup;
}

}  // namespace snug::eager
