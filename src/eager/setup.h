#pragma once
// Setup: what a PyTorch trainer is asked to do, in its own terms: "bf16" here is autocast, and the dtype of the weights is
// what they were loaded as. Plain data; where it comes from (flags, recipes) is for others to say.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace snug::eager {

// Whose model code and loop run: transformers and its Trainer, or LitGPT's and torchtune's own.
enum class Program : uint8_t { transformers, litgpt, torchtune };
enum class Method : uint8_t { full, lora };
// Four and eight bits are bitsandbytes'; gptq: a checkpoint of four bits, by kernels that train (Triton's).
enum class Quantization : uint8_t { none, four_bit, eight_bit, gptq };
enum class Attention : uint8_t { eager, sdpa, flash };
enum class Checkpointing : uint8_t { none, reentrant, non_reentrant };
// What is done to a quantized model before adapters: nothing; peft's prepare_model_for_kbit_training; and TRL's cast of
// embeddings and head to bf16 after it.
enum class Preparation : uint8_t { none, peft, trl };
enum class Optimizer : uint8_t {
  adamw,
  adamw_fused,
  adamw_8bit,
  paged_adamw_8bit,
  paged_adamw_32bit,
  lion_8bit,
  lion_32bit,
  adafactor,
  sgd
};

// How a run is shared among ranks: torch's DistributedDataParallel, FullyShardedDataParallel (FSDP 1) and fully_shard (FSDP
// 2), DeepSpeed's stages.
enum class Sharding : uint8_t { none, ddp, fsdp1, fsdp2, zero1, zero2, zero3 };

struct Ranks {
  Sharding sharding = Sharding::none;
  int64_t count = 1, number = 0;  // how many share the run; which of them this is
  // DDP find_unused_parameters: buckets stay as they were made, and forward's outputs are copied.
  bool finds_unused = false;
  bool reshards_after_forward = true;  // FSDP; off: SHARD_GRAD_OP
  // FSDP 1: use_orig_params, which the optimizer then sees pieces of in place of flat parameters; backward_prefetch:
  // BACKWARD_PRE, or none.
  bool keeps_parameters = true, gathers_ahead = false;
  bool own_adam = false;  // a DeepSpeed configuration that has an AdamW of its own: FusedAdam (ops/adam/fused_adam.py)
  // DeepSpeed's zero_optimization, in elements where it says sizes; its own defaults.
  int64_t bucket_elements = 500'000'000;  // reduce_bucket_size
  bool overlaps = false;                  // overlap_comm of stages 1 and 2: one bucket fills while the other is summed
  int64_t prefetch_elements = 50'000'000, persistent_elements = 100'000;  // stage 3: gathered ahead; never given back
  // Stage 3: so many gathers may have been asked for since a module's parameters were given back, before their memory is
  // free (record_stream); 0: the device has always done what it was asked.
  int64_t gathers_behind = 0;
  // The trainer's arguments are there before the model, as transformers' documentation asks for, so that it is built in
  // parts.
  bool loads_in_parts = false;
  int64_t most_live = 1'000'000'000, reuse_distance = 1'000'000'000, sub_group = 1'000'000'000;

  bool operator==(const Ranks&) const = default;
};

// Trainer's evaluation between steps (trainer.py, evaluation_loop).
struct Evaluation {
  int64_t rows = 0;            // of the evaluation data, as one rank has them; 0: nothing is evaluated
  int64_t batch = 8;           // per_device_eval_batch_size
  int64_t length = 0;          // tokens of a row; 0: as in training
  bool keeps_outputs = false;  // compute_metrics is given: logits and labels of all batches are joined on the device
  int64_t moved_after = 0;     // eval_accumulation_steps: batches after which what is kept goes to the host; 0: never
  bool cache = false;          // use_cache of the model, which checkpoints switch off in training only

  bool operator==(const Evaluation&) const = default;
};

// fms-acceleration's kernels, most of them Unsloth's, in the place of transformers' code (plugins/fused-ops-and-kernels):
// norms, rotations, adapters of four-bit linears of attention, the loss, and the head with its loss (Liger's).
struct FusedKernels {
  bool norm = false, rope = false, adapters = false, loss = false, linear_loss = false;
  bool operator==(const FusedKernels&) const = default;
};

// Liger's kernels in the place of transformers' code (use_liger_kernel).
struct LigerKernels {
  bool norm = false, rope = false, mlp = false, linear_loss = false;
  bool any() const { return norm || rope || mlp || linear_loss; }
  bool operator==(const LigerKernels&) const = default;
};

struct Setup {
  Program program = Program::transformers;
  Method method = Method::lora;
  DType weights = DType::bf16;    // torch_dtype
  std::optional<DType> autocast;  // bf16=True, fp16=True

  Quantization quantization = Quantization::none;
  bool double_quant = true;
  DType packed = DType::u8;  // bnb_4bit_quant_storage: as what four-bit codes lie in memory
  int64_t gptq_group = 128;  // weights that share a scale; 0: a whole column does
  Preparation preparation = Preparation::none;
  bool narrow_adapters = false, narrow_magnitudes = false;  // cast to bf16 when they are there: TRL's, of quantized weights

  int64_t rank = 16;
  double dropout = 0.0;
  bool dora = false;
  std::vector<std::string> targets;                  // module names; {"all-linear"}
  bool adapts_tower = true;                          // of a vision tower too what has a target's name
  bool saves_embedding = false, saves_head = false;  // modules_to_save: copies of them are trained whole beside the adapters

  Attention attention = Attention::sdpa;
  Checkpointing checkpointing = Checkpointing::reentrant;
  Optimizer optimizer = Optimizer::adamw;

  int64_t batch = 1, seq_len = 1024;  // sequences a micro-batch; tokens
  int64_t accumulation = 1;
  bool padded = false;        // some rows are shorter than others
  bool cache = false;         // use_cache: forward's outputs hold the keys and values of all blocks until they are gone
  bool chunked_loss = false;  // TRL's fused head: logits in tiles
  // A script's own loop calls the model: its logits stay as they are, where a Trainer's are widened (accelerate).
  bool own_loop = false;
  bool own_loss = false;  // and makes the loss from the logits itself, in their dtype
  FusedKernels fused;
  LigerKernels liger;
  double max_grad_norm = 1.0;
  double momentum = 0.0;

  Evaluation evaluation;

  Ranks ranks;
  std::vector<int64_t> lengths;  // of successive micro-batches' rows; empty: all are seq_len long

  int64_t steps = 2;  // that are followed: the second has the optimizer's states from its start

  bool operator==(const Setup&) const = default;
};

// What Trainer makes of use_liger_kernel: before it knew models of peft, these kept transformers' code.
inline LigerKernels of_trainer(LigerKernels asked, const Setup& setup, bool knows_adapters) {
  return setup.method == Method::lora && !knows_adapters ? LigerKernels{} : asked;
}

// What transformers' Trainer asks of DistributedDataParallel (trainer.py, _build_accelerator_args): unused parameters are
// looked for but where the model checkpoints; of a model of peft's it does not see that. With re-entrant checkpoints that
// fails, so who has both has switched it off.
inline bool finds_unused(const Setup& setup) {
  if (setup.checkpointing == Checkpointing::none) return true;
  return setup.method == Method::lora && setup.checkpointing == Checkpointing::non_reentrant;
}

}  // namespace snug::eager
