#pragma once
// What a rank of Megatron-LM holds between steps, from the flags alone: weights, gradients, Adam's states, and what the
// pipeline has left. PyTorch counts more, 20 to 320 MiB in 351 of 352 recorded runs: work space of libraries, most of it.

#include <cstdint>
#include <vector>

#include "recipe/megatron_flags.h"

namespace snug::eager {

// Parameters that a rank of a pipeline stage holds.
struct MegatronParameters {
  int64_t dense = 0;    // attention, norms, MLPs, routers, embedding and head
  int64_t experts = 0;  // which are shared out over a mesh of their own
};
MegatronParameters megatron_parameters(const MegatronRun& run, int64_t stage);
// Layers of a stage.
int64_t megatron_layers(const MegatronRun& run, int64_t stage);

// Bytes of a rank of the stage. bf16: 2 for a weight, 4 for its gradient, 12 for states and copy; fp16: gradients in fp16
// with an fp32 copy beside the states. The distributed optimizer (ZeRO 1) shares out what is not weight or gradient.
// Each chunk of layers keeps its last input from the stage before (transformer_block.py, set_input_tensor), and with it the
// gradient that went back; where the flags do not say how large a micro-batch is, 0.
struct MegatronBytes {
  int64_t weights = 0, gradients = 0, optimizer = 0, inputs = 0;
  int64_t total() const { return weights + gradients + optimizer + inputs; }
};
MegatronBytes megatron_bytes(const MegatronRun& run, int64_t stage);

}  // namespace snug::eager
