#pragma once
// A pretraining run of Megatron-LM as its flags say it: they hold the model too (megatron/training/arguments.py, core 0.14).

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace snug {

struct MegatronRun {
  // The model
  int64_t layers = 0, hidden = 0, ffn = 0;  // ffn: of a plain MLP
  int64_t heads = 0, kv_groups = 0, kv_channels = 0;
  int64_t vocab = 0;      // as it is padded for the tensor ranks
  int64_t positions = 0;  // learned ones; 0: rotary
  bool gated = false, biases = true, rms_norm = false, qk_norms = false, tied = true;
  int64_t experts = 0, expert_ffn = 0, shared_expert_ffn = 0;  // experts: 0: a plain MLP

  // Who shares what
  int64_t ranks = 0, tensor = 1, pipeline = 1, context = 1, expert = 1, expert_tensor = 1;
  int64_t first_layers = 0, last_layers = 0;           // of those stages where they are said; 0: even
  bool counts_embedding = false, counts_loss = false;  // as a layer, when layers are dealt out
  bool distributed_optimizer = false;
  int64_t optimizer_instances = 1;
  bool fp16 = false;
  int64_t chunks = 1;  // of a stage's layers

  // A micro-batch; 0: not said
  int64_t sequence = 0, micro_batch = 0;
  bool sequence_parallel = false;

  int64_t data() const { return ranks / (tensor * pipeline * context); }
  int64_t expert_data() const { return ranks / (expert_tensor * expert * pipeline); }
};

// `flags`: "hidden-size" -> "512", without dashes before, "true" for one that stands alone; `vocab`: of the tokenizer, where
// --vocab-size does not say. Throws Error: a flag is missing or makes no sense, or asks for what is not counted here (latent
// attention, multi-token prediction, layers that differ, fp8, other optimizers, FSDP).
MegatronRun read_megatron(const std::map<std::string, std::string>& flags, int64_t ranks, int64_t vocab,
                          const std::string& where);

// The flags of the training command in a shell script, or of a YAML or JSON mapping. Throws Error where there are none.
std::map<std::string, std::string> megatron_flags(std::string_view text, const std::string& where);

}  // namespace snug
