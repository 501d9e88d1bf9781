#include "eager/estimate.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "eager/litgpt_loop.h"
#include "eager/torchtune.h"
#include "eager/trainer.h"

namespace snug::eager {
namespace {

void refuse(const std::string& what) {
  throw Error("the model of PyTorch's memory does not cover " + what + " yet", "",
              "plan with --runtime snug, or run the trainer under snug measure");
}

// Families whose older code computes losses in a way of its own, which is not followed.
void check_version(const ModelSpec& spec, const StackProfile& stack) {
  if (version_number(stack.transformers) >= version_number("5.0")) return;
  for (const char* family : {"opt", "stablelm", "nemotron"})
    if (spec.family == family) refuse("family " + spec.family + " before transformers 5");
  if (!spec.tower.empty()) refuse("vision towers before transformers 5");  // losses of the rows' masks, made by hand
}

bool is_target(const Setup& setup, const char* name) {
  return std::find(setup.targets.begin(), setup.targets.end(), name) != setup.targets.end();
}

// Whether an adapter's targets are, by what transformers 4 called them, experts or their router (peft's
// utils/transformers_weight_conversion.py; Granite's have no names there).
bool adapts_experts(const ModelSpec& spec, const Setup& setup) {
  if (setup.method != Method::lora || spec.naming == TensorNaming::granite_moe) return false;
  if (setup.targets == std::vector<std::string>{"all-linear"}) return true;
  for (const char* name : {"gate", "gate_proj", "up_proj", "down_proj", "w1", "w2", "w3"})
    if (is_target(setup, name)) return true;
  return false;
}

void check_expert_adapters(const Setup& setup, const StackProfile& stack) {
  const char* instead = "adapters of attention alone: q_proj,k_proj,v_proj,o_proj";
  if (setup.dropout > 0) throw Error("peft has no dropout in adapters of experts", "lora_dropout", instead);
  if (is_target(setup, "gate_proj") != is_target(setup, "up_proj") || is_target(setup, "w1") != is_target(setup, "w3"))
    throw Error("peft adapts gate and up of experts together", "lora_target_modules", instead);
  if (setup.dora) throw Error("peft has no DoRA of experts", "use_dora", instead);
  if (!stack.expert_adapters_are_folded) refuse("adapters of experts before peft 0.21");
  if (setup.ranks.sharding != Sharding::none) refuse("adapters of experts on several GPUs");
}

void check_experts(const ModelSpec& spec, const Setup& setup, const StackProfile& stack) {
  const auto& of = {"mixtral", "qwen3_moe", "olmoe", "granitemoe"};
  if (std::find(of.begin(), of.end(), spec.family) == of.end()) refuse("mixtures of experts of family " + spec.family);
  if (setup.ranks.sharding == Sharding::zero3) refuse("mixtures of experts under DeepSpeed's third stage");
  // else experts are a loop whose sizes are what the router sends to each
  if (!stack.experts_are_grouped) refuse("mixtures of experts before transformers 5 and torch 2.9");
  if (setup.method == Method::full && setup.optimizer == Optimizer::adafactor) refuse("Adafactor of experts");
  if (adapts_experts(spec, setup)) check_expert_adapters(setup, stack);
}

void check_sharding(const ModelSpec& spec, const Setup& setup) {
  const Sharding sharding = setup.ranks.sharding;
  const bool of_torch =
      setup.optimizer == Optimizer::adamw || setup.optimizer == Optimizer::adamw_fused || setup.optimizer == Optimizer::sgd;
  if (sharding != Sharding::none && sharding != Sharding::ddp && !of_torch) refuse("this optimizer on shares of parameters");
  const bool zero = sharding == Sharding::zero1 || sharding == Sharding::zero2 || sharding == Sharding::zero3;
  if (sharding == Sharding::zero3 && spec.learned_positions) refuse("learned positions under DeepSpeed's third stage");
  if (zero && !setup.autocast) refuse("DeepSpeed in one precision");
  const bool four_bit = setup.quantization == Quantization::four_bit;
  if (sharding != Sharding::none && sharding != Sharding::ddp && setup.quantization != Quantization::none) {
    if (!four_bit) refuse("eight-bit and GPTQ weights that are shared out");
    if (sharding == Sharding::zero3) refuse("quantized weights under DeepSpeed's third stage");
    if (sharding == Sharding::fsdp1 && setup.packed == DType::u8) refuse("codes that lie as integers under FSDP 1");
    if (setup.autocast && *setup.autocast != setup.weights)
      refuse("quantized weights of another type than mixed precision's");
  }
  const bool fsdp = sharding == Sharding::fsdp1 || sharding == Sharding::fsdp2;
  if (fsdp && spec.learned_positions) refuse("learned positions under FSDP");
  if (fsdp && setup.chunked_loss) refuse("TRL's fused head under FSDP");
  if (sharding == Sharding::fsdp2 && setup.fused.linear_loss) refuse("a fused head under FSDP 2");
  if (sharding == Sharding::fsdp1 && setup.dora) refuse("DoRA under FSDP 1");
}

// Rows of text alone, whose tower rests.
void check_tower(const ModelSpec& spec, const Setup& setup) {
  if (spec.tower.empty()) refuse("vision towers of family " + spec.family);
  if (setup.ranks.sharding != Sharding::none) refuse("vision towers on several GPUs");
}

// Qwen 3.5's: layers with a gated delta rule, by PyTorch's own ops.
void check_hybrid(const ModelSpec& spec, const Setup& setup, const StackProfile& stack) {
  if (spec.family != "qwen3_5") refuse(spec.unmodelled_step);
  if (version_number(stack.transformers) < version_number("5.20")) refuse("gated delta rules before transformers 5.20");
  // accelerate looks for Qwen3_5VisionBlock too, which the text model lacks
  if (setup.ranks.sharding == Sharding::fsdp1 || setup.ranks.sharding == Sharding::fsdp2)
    refuse("gated delta rules under FSDP (which needs fsdp_transformer_layer_cls_to_wrap: Qwen3_5DecoderLayer)");
  if (setup.method == Method::full && setup.optimizer == Optimizer::adafactor) refuse("Adafactor of convolutions");
  // whose convolutions are cuDNN's
  if (setup.autocast.value_or(setup.weights) == DType::f16) refuse("gated delta rules in fp16");
}

void check_covered(const ModelSpec& spec, const Setup& setup, const StackProfile& stack) {
  if (!spec.unmodelled_step.empty()) check_hybrid(spec, setup, stack);
  if (spec.has_latent_attention()) refuse("latent attention");
  if (spec.alibi) refuse("ALiBi");
  for (const char* family : {"falcon", "baichuan", "chatglm"})
    if (spec.family == family) refuse("blocks of family " + spec.family);
  if (spec.family == "qwen" && setup.attention != Attention::flash) refuse("blocks of family qwen without flash attention");
  if (spec.vision_parameters > 0) check_tower(spec, setup);
  if (setup.padded && setup.attention == Attention::flash) refuse("padded batches with flash attention");
  if (setup.quantization != Quantization::none && spec.naming == TensorNaming::gpt2) refuse("quantized GPT-2");
  if (setup.evaluation.keeps_outputs && setup.chunked_loss) refuse("compute_metrics under TRL's fused head");
  check_sharding(spec, setup);
  if (setup.quantization == Quantization::gptq && setup.dora) refuse("DoRA on GPTQ's linears");
  if (setup.quantization != Quantization::none && setup.method == Method::full) refuse("full training of quantized weights");
  if (!setup.saves_embedding && !setup.saves_head) return;
  if (setup.ranks.sharding != Sharding::none) refuse("modules that are trained whole beside an adapter, shared out");
  if (setup.quantization != Quantization::none) refuse("modules that are trained whole beside quantized weights");
}

void check_liger(const ModelSpec& spec, const Setup& setup) {
  if (!setup.liger.any()) return;
  const auto& of = {"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2"};
  if (std::find(of.begin(), of.end(), spec.family) == of.end()) refuse("Liger's kernels in family " + spec.family);
  const Sharding sharding = setup.ranks.sharding;
  if (setup.liger.linear_loss && (sharding == Sharding::fsdp2 || sharding == Sharding::zero3))
    refuse("Liger's head under FSDP 2 and DeepSpeed's third stage");
}

void check_litgpt_covers(const ModelSpec& spec, const Setup& setup) {
  if (!spec.unmodelled_step.empty()) refuse(spec.unmodelled_step);
  if (spec.experts.count > 0) refuse("mixtures of experts");
  if (spec.has_latent_attention()) refuse("latent attention");
  if (spec.alibi) refuse("ALiBi");
  if (spec.learned_positions || spec.query_key_norms || !spec.pre_norms) refuse("this family in LitGPT");
  if (spec.vision_parameters > 0) refuse("vision towers");
  if (setup.ranks.sharding != Sharding::none) refuse("LitGPT on several GPUs");
  if (setup.autocast) refuse("LitGPT in mixed precision");
  if (setup.dora) refuse("DoRA in LitGPT");
  if (setup.quantization != Quantization::none && setup.quantization != Quantization::four_bit)
    refuse("this quantization in LitGPT");
  if (setup.quantization != Quantization::none && setup.method == Method::full) refuse("full training of quantized weights");
}

void check_torchtune_covers(const ModelSpec& spec, const Setup& setup) {
  const bool of_llamas_shape = spec.family == "llama" || spec.family == "mistral" || spec.family == "qwen2";
  if (!of_llamas_shape) refuse("family " + spec.family + " in torchtune");
  if (setup.ranks.sharding != Sharding::none) refuse("torchtune on several GPUs");
  if (setup.quantization != Quantization::none) refuse("torchtune's own four-bit weights");
  if (setup.dora) refuse("DoRA in torchtune");
  if (!setup.lengths.empty()) refuse("rows of several lengths in torchtune");
}

// What the model sees of it: the mixed precision of FSDP 2 is the dtype of what it gathers, DeepSpeed's that of the whole
// model; neither is autocast. FSDP 1 has both.
Setup inside_wrapper(Setup setup) {
  const Sharding sharding = setup.ranks.sharding;
  if (sharding == Sharding::zero1 || sharding == Sharding::zero2 || sharding == Sharding::zero3)
    setup.weights = *setup.autocast;
  if (sharding != Sharding::none && sharding != Sharding::ddp && sharding != Sharding::fsdp1) setup.autocast.reset();
  return setup;
}

// Throws Error where nothing would be trained.
void check_trains(const std::vector<Trained>& trained) {
  if (trained.empty())
    throw Error("no module of this model has the name of a LoRA target: nothing would be trained", "lora_target_modules",
                "all-linear");
}

// What is there before training.
void note_loading(Device& device, Plan& plan) {
  device.release_cached();
  plan.static_bytes = device.totals().allocated_bytes;
  plan.loading_bytes = device.peak(Phase::load).allocated_bytes;
  device.reset_peaks();
}

// Of so many rows of different lengths each is seen.
int64_t steps_of(const Setup& setup) {
  const auto rows = static_cast<int64_t>(setup.lengths.size());
  return std::max(setup.steps, (rows + setup.accumulation - 1) / setup.accumulation);
}

void follow_trainer(Torch& torch, const ModelSpec& spec, const Setup& setup, Plan& plan) {
  const Setup inside = inside_wrapper(setup);
  std::optional<FullySharded> sharded;
  if (setup.ranks.sharding == Sharding::fsdp2) sharded.emplace(torch, setup);
  std::optional<FlatSharded> flat;
  if (setup.ranks.sharding == Sharding::fsdp1) flat.emplace(torch, setup);
  std::optional<PartitionedModel> partitioned;
  if (setup.ranks.sharding == Sharding::zero3) partitioned.emplace(torch, inside);
  Decoder decoder(torch, spec, inside);
  decoder.load();
  if (partitioned && setup.ranks.loads_in_parts) partitioned->load(decoder.parameters(), decoder.made_as());
  decoder.prepare();
  decoder.adapt();
  check_trains(decoder.trained());
  note_loading(torch.device(), plan);
  Trainer trainer(torch, decoder, inside,
                  {sharded ? &*sharded : nullptr, flat ? &*flat : nullptr, partitioned ? &*partitioned : nullptr});
  trainer.train(steps_of(setup));
  plan.steady_bytes = torch.device().totals().allocated_bytes;
}

void follow_torchtune(Torch& torch, const ModelSpec& spec, const Setup& setup, Plan& plan) {
  TorchTune run(torch, spec, setup);
  run.load();
  check_trains(run.trained());
  note_loading(torch.device(), plan);
  run.train(setup.steps);
  plan.steady_bytes = torch.device().totals().allocated_bytes;
}

void follow_litgpt(Torch& torch, const ModelSpec& spec, const Setup& setup, Plan& plan) {
  LitGpt model(torch, spec, setup);
  model.load();
  check_trains(model.trained());
  note_loading(torch.device(), plan);
  LitGptLoop loop(torch, model, setup);
  loop.train(steps_of(setup));
  plan.steady_bytes = torch.device().totals().allocated_bytes;
}

// What the device may show beside PyTorch's allocator, at most. All kernels at once: transformers' guide to training on one
// GPU (model_memory_anatomy.md) reads 1,343 MiB after the first tensor. Several ranks: NCCL's buffers are not PyTorch's; an
// out-of-memory message of a rank of four (wbfwonderful/Vad-R1#11) tells 1.43 GiB beside what was reserved; it is worded as
// torch 2.5 and later word it, where kernels are loaded when they are first used.
int64_t context_most(const Setup& setup, const StackProfile& stack, const Target& target) {
  constexpr int64_t kAllKernels = int64_t{1343} << 20U, kWithNccl = int64_t{1464} << 20U;
  int64_t most = target.context_most_bytes;
  if (stack.kernels_may_load_at_once) most = std::max(most, kAllKernels);
  if (setup.ranks.count == 1) return most;
  return std::max(most + (stack.kernels_may_load_at_once ? kWithNccl - target.context_least_bytes : 0), kWithNccl);
}

// One run on a device that gives at most `limit` bytes. Throws Error where that is too little.
Plan follow(const ModelSpec& spec, const Setup& setup, const StackProfile& stack, const Target& target, int64_t limit,
            const std::function<void(const Event&)>& listener) {
  AllocatorSettings settings;
  settings.limit_bytes = limit;
  settings.prefers_older_segments = stack.older_segments_first;
  Device device(settings);
  device.listener = listener;
  Plan plan;
  {
    Torch torch(device, stack, target.compute_capability);
    torch.multiprocessors = target.multiprocessors;
    switch (setup.program) {
      case Program::transformers: follow_trainer(torch, spec, setup, plan); break;
      case Program::litgpt: follow_litgpt(torch, spec, setup, plan); break;
      case Program::torchtune: follow_torchtune(torch, spec, setup, plan); break;
    }
  }
  plan.phase = device.peak_phase();
  plan.breakdown = device.bytes_at_peak();
  for (size_t i = 0; i < kPhases; ++i) {
    plan.phases[i] = device.peak(static_cast<Phase>(i));
    plan.work[i] = device.work(static_cast<Phase>(i));
    plan.allocated_bytes = std::max(plan.allocated_bytes, plan.phases[i].allocated_bytes);
    plan.reserved_bytes = std::max(plan.reserved_bytes, plan.phases[i].reserved_bytes);
  }
  plan.device_low_bytes = plan.reserved_bytes + target.context_least_bytes;
  plan.device_high_bytes = plan.reserved_bytes + context_most(setup, stack, target);
  return plan;
}

// What the device may show at most where it lags behind the host: partitioned_param_coordinator.py lets two gathers be under
// way (__max_ongoing_fetch_events) and then waits for the one before.
void follow_behind(const ModelSpec& spec, Setup setup, const StackProfile& stack, const Target& target, Plan& plan) {
  if (setup.ranks.sharding != Sharding::zero3 || setup.ranks.count == 1 || !plan.fits) return;
  setup.ranks.gathers_behind = 3;
  const Plan behind = follow(spec, setup, stack, target, AllocatorSettings{}.limit_bytes, {});
  plan.device_high_bytes = std::max(plan.device_high_bytes, behind.device_high_bytes);
  if (target.memory_bytes > 0) plan.device_high_bytes = std::min(plan.device_high_bytes, target.memory_bytes);
}

}  // namespace

// Where the cache would grow beyond the card, PyTorch gives cached memory back: the run is followed once more within its
// bounds.
Plan estimate(const ModelSpec& spec, const Setup& setup, const StackProfile& stack, const Target& target,
              const std::function<void(const Event&)>& listener) {
  switch (setup.program) {
    case Program::transformers:
      check_covered(spec, setup, stack);
      if (spec.experts.count > 0) check_experts(spec, setup, stack);
      check_version(spec, stack);
      check_liger(spec, setup);
      break;
    case Program::litgpt: check_litgpt_covers(spec, setup); break;
    case Program::torchtune: check_torchtune_covers(spec, setup); break;
  }
  Plan plan = follow(spec, setup, stack, target, AllocatorSettings{}.limit_bytes, listener);
  if (target.memory_bytes == 0 || plan.device_high_bytes <= target.memory_bytes) {
    follow_behind(spec, setup, stack, target, plan);
    return plan;
  }
  plan.fits = false;
  const int64_t beside = context_most(setup, stack, target);
  if (plan.allocated_bytes + beside > target.memory_bytes) return plan;
  try {
    plan = follow(spec, setup, stack, target, target.memory_bytes - beside, {});
    plan.device_high_bytes = target.memory_bytes;  // where less is beside it, the cache grows until the card is full
  } catch (const Error&) {                         // too scattered
  }
  return plan;
}

}  // namespace snug::eager
