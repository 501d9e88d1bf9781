#pragma once
// Recipe: what the user asks for, under the keys of the Hugging Face world. Plain data; `keys.h` gives every key its name,
// type, default and sentence, and is the one place where a key is added. It knows nothing of models, programs or files.

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/path_pattern.h"
#include "base/rank_group.h"

namespace snug {

enum class Method : uint8_t { full, lora };
// What updates the weights. `adamw_bf16`: moments in bf16, rounded stochastically; `…_8bit`: in blocks of 8-bit codes.
enum class Optimizer : uint8_t { adamw, adamw_bf16, adamw_8bit, sgd, lion, lion_8bit, adafactor };
// How the learning rate falls, under the names of transformers.get_scheduler.
enum class Schedule : uint8_t {
  constant,
  constant_with_warmup,
  linear,
  cosine,
  cosine_with_restarts,
  cosine_with_min_lr,
  polynomial,
  inverse_sqrt,
  warmup_stable_decay
};
// When something that is done again and again in a run is done: after so many steps, or each pass over the data.
enum class Strategy : uint8_t { never, steps, epoch };
// What evaluations are compared by.
enum class BestMetric : uint8_t { loss, token_accuracy, exact };
// What the summed loss of an accumulation window is divided by. `targets`: tokens that are really predicted, as Hugging
// Face's Trainer counts them today (labels after the shift). `unshifted`: labels that are not ignored, counted before the
// shift, as Trainer did before version 5: a row whose first token is a label counts one target more than it has.
enum class LossNormalization : uint8_t { targets, unshifted };

// How the linears of a frozen base are kept, in bitsandbytes' formats.
struct Quantize {
  bool in_4bit = false, in_8bit = false;
  DType type_4bit = DType::nf4;  // or fp4
  bool double_quant = true;      // 4-bit: the blocks' scales are quantized too
  std::optional<DType> compute;  // what products round the numbers to; none: the dtype of the other weights
  bool upcast = false;           // weights that are not quantized, and what forward saves, in fp32
  bool casts_back = false;       // … then embeddings and head to bf16, as TRL does: for plans of PyTorch alone

  bool any() const { return in_4bit || in_8bit; }
};

// What of a block is made again in backward.
enum class BlockPart : uint8_t {
  norms,
  activations,  // the MLP's products of gate and up, or what its activation gives; dropout
  attention,    // what attention gives, and its sums
  projections   // all else: what linear modules give, and residual sums of it
};
constexpr int kBlockPartCount = 4;
const char* name_of(BlockPart part);

// Every dtype that a step uses.
struct Precision {
  DType weights = DType::f32;      // frozen and trained weights, those that are quantized left out
  DType master = DType::f32;       // copy that the optimizer updates; equal to `weights` means none is kept
  DType activations = DType::f32;  // what forward saves for backward
  DType gradients = DType::f32;    // flat gradient buffers
  DType optimizer = DType::f32;    // moments
};

struct Lora {
  int64_t r = 8;
  double alpha = 8.0;
  double dropout = 0.0;
  std::vector<std::string> target_modules;   // empty: q_proj, v_proj; {"all-linear"}: every linear but the head
  std::vector<std::string> modules_to_save;  // trained in full beside the adapter
  bool use_rslora = false;                   // scale by alpha / sqrt(r) instead of alpha / r
  bool use_dora = false;                     // magnitudes of rows are trained apart from their directions
  PathPatterns<int64_t> rank_pattern;        // end of a module's path -> its r
  PathPatterns<double> alpha_pattern;        // … its alpha

  int64_t rank_of(std::string_view module_path) const { return pattern_value(rank_pattern, module_path, r); }
  // What B·A of the module is multiplied by.
  double scale_of(std::string_view module_path) const {
    const auto rank = static_cast<double>(rank_of(module_path));
    return pattern_value(alpha_pattern, module_path, alpha) / (use_rslora ? std::sqrt(rank) : rank);
  }
};

// Without packing, rows are padded to at most so many lengths, chosen from the data; each runs a Program of its own.
inline constexpr int64_t kMostBuckets = 4;

// Processes that train together, each with a share of every batch. `zero_stage` (Rajbhandari et al., "ZeRO", 2020): what
// each holds a part of instead of all. 0 nothing (DDP), 1 the optimizer's states, 2 gradients too, 3 all weights too (FSDP).
// How the ranks that split a sequence come by each other's keys and values: all at once, or block by block in a ring.
enum class ContextComm : uint8_t { all_gather, p2p };

struct Parallel {
  static constexpr int64_t kEveryStage = -1;
  int64_t ranks = 1;
  int64_t zero_stage = 0;
  int64_t replicas = 1;  // of what is shared out: parts are cut among so many fewer ranks (hybrid sharding)
  int64_t tensor = 1;    // ranks that split each layer's products, and between them rows (sequence parallelism)
  int64_t context = 1;   // ranks that split each sequence …
  ContextComm context_comm = ContextComm::all_gather;
  int64_t expert = 1;           // ranks that split the experts of each layer
  int64_t pipeline = 1;         // stages that have some of the layers each …
  int64_t chunks = 1;           // … in so many chunks, so that a micro-batch comes round as often (interleaved 1F1B)
  int64_t stage = kEveryStage;  // … and which of them is meant: each rank has its own
  // Where nothing is shared out, each rank of the data group has all parts.
  RankMesh mesh() const {
    const int64_t data = ranks / tensor / pipeline;
    return {.ranks = ranks,
            .parts = zero_stage > 0 ? data / replicas : data,
            .tensor = tensor,
            .context = context,
            .expert = expert,
            .pipeline = pipeline,
            .chunks = chunks};
  }
  bool overlaps = true;  // a layer's weights come, and its gradients go, while another is worked on: two windows of each
};

struct Recipe {
  std::string model;           // directory, config.json or catalogue name
  std::string data;            // file, directory or pattern; empty for a plan without data
  std::string eval_data;       // likewise, empty for none
  double val_size = 0.0;       // rows of `data` held out for evaluation, or below 1 their share; 0: none
  std::string dataset_format;  // "messages", …; empty: found from the columns
  std::string text_column, prompt_column, completion_column, messages_column;  // empty: the format's own
  std::string chat_template;                                                   // a file or "chatml"; empty: the model's
  bool assistant_only_loss = true;  // conversations: loss on what the assistant says alone
  bool skip_bad_rows = false;
  std::string adapter;  // PEFT adapter directory to start from, empty for a fresh one
  std::string output_dir = "snug-out";

  Method method = Method::lora;
  Lora lora;
  Quantize quantize;
  bool bf16 = false;                   // bf16 weights and saved activations, fp32 arithmetic
  bool fp16 = false;                   // likewise in f16, with a loss that is scaled so that small gradients are not lost
  std::optional<bool> master_weights;  // full fine-tuning in bf16 or fp16: fp32 copy of the weights (default true)
  int64_t initial_scale_power = 16;    // fp16: the loss is scaled by 2 to this power at first
  int64_t loss_scale_window = 2000;    // fp16: steps without overflow after which the scale doubles

  int64_t batch = 1;         // per_device_train_batch_size, sequences
  int64_t accumulation = 1;  // gradient_accumulation_steps
  int64_t seq_len = 0;       // max_length, tokens; 0: min(1024, the model's)
  bool packing = true;       // false: rows of their own, padded to at most kMostBuckets lengths
  bool shuffle = true;
  bool completion_only_loss = true;  // prompt/completion rows: loss on the completion alone
  bool gradient_checkpointing = false;
  bool checkpoint_to_budget = false;        // with gradient_checkpointing: of each block what costs least, until it fits
  std::vector<int64_t> checkpoint_layers;   // with gradient_checkpointing: these blocks only; empty means all
  int64_t checkpoint_inputs = 0;            // with all blocks: so many of their inputs are there at once; 0: all
  std::vector<BlockPart> checkpoint_parts;  // … and of them these parts only; empty means all
  bool tiled_mlp = false;                   // MLPs are run for some tokens at a time …
  int64_t tiled_mlp_num_shards = 0;         // … in so many tiles; 0: tiles of as many tokens as the model is wide

  bool offload_activations = false;     // what blocks save lies on disk
  bool offload_weights = false;         // the matrices of blocks lie on disk: frozen ones, or with method full trained ones
  std::vector<int64_t> offload_layers;  // … frozen ones of these blocks only; empty means all
  bool offload_gradients = false;       // with method full: the gradients of blocks' matrices lie on disk
  bool offload_optimizer = false;       // the optimizer's states lie on disk

  Optimizer optim = Optimizer::adamw;
  bool pages_states = false;      // optim: paged_…: likewise
  bool optimizer_in_bwd = false;  // weights are updated during backward, each as soon as its gradient is complete
  double momentum = 0.0;          // of sgd; 0: no state
  double learning_rate = 0.0;     // 0: 5e-5 full, 2e-4 LoRA
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  double weight_decay = 0.0;
  double max_grad_norm = 1.0;  // 0: no clipping
  // Of noise on embeddings in training; 0: none.
  double neftune_noise_alpha = 0.0;
  Schedule lr_scheduler_type = Schedule::linear;
  std::vector<std::pair<std::string, double>> lr_scheduler_kwargs;  // name, value
  int64_t warmup_steps = 0;
  double warmup_ratio = 0.0;
  LossNormalization loss_normalization = LossNormalization::targets;

  int64_t max_steps = -1;  // -1: num_train_epochs decides
  double num_train_epochs = 3.0;
  Strategy save_strategy = Strategy::steps;
  int64_t save_steps = 500;      // 0: only at the end
  int64_t save_total_limit = 0;  // newest checkpoints that are kept; 0: all
  bool save_only_model = false;  // checkpoints hold weights alone, and no run goes on from them
  int64_t logging_steps = 1;
  bool tensorboard = false;  // report_to: tensorboard
  std::string logging_dir;   // of its event files; empty: output_dir/runs
  Strategy eval_strategy = Strategy::steps;
  int64_t eval_steps = 0;  // 0: after the last alone
  bool eval_on_start = false;
  bool load_best_model_at_end = false;  // the result is the checkpoint whose evaluation was the best
  BestMetric metric_for_best_model = BestMetric::loss;
  std::optional<bool> greater_is_better;
  int64_t early_stopping_patience = 0;  // evaluations that are no better; 0: the run goes on
  double early_stopping_threshold = 0;
  std::string resume_from_checkpoint;  // "", "true" or a checkpoint directory
  bool overwrite_output_dir = false;
  uint64_t seed = 42;

  Parallel parallel;

  int64_t memory_bytes = 0;  // budget; 0: what this machine can give
  int64_t threads = 0;       // 0: the cores this process may use
};

// Whether the optimizer's states lie on disk, by either key.
inline bool states_lie_far(const Recipe& recipe) { return recipe.pages_states || recipe.offload_optimizer; }

// Whether each weight has an update of its own; else all of a flat buffer have one.
inline bool updates_each_weight(const Recipe& recipe) {
  return recipe.optimizer_in_bwd || recipe.optim == Optimizer::adafactor;
}

// Whether the run evaluates.
inline bool evaluates(const Recipe& recipe) {
  return recipe.eval_strategy != Strategy::never && (!recipe.eval_data.empty() || recipe.val_size > 0);
}

// The eight dtypes that the recipe and the checkpoint's dtype imply.
Precision precision_of(const Recipe& recipe);

}  // namespace snug
