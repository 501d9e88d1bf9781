#pragma once
// What a training program was doing when it stopped, told from its frames' names: those of PyTorch, transformers, TRL, peft,
// accelerate, DeepSpeed, Lightning, torchtune and the lines of the user's own loop. A table of names; no guess beyond it.

#include <string>
#include <string_view>

#include "torch/traceback.h"

namespace snug {

enum class TorchStage {
  unknown,
  load,  // the model onto the device, quantized or not
  data,  // a batch: reading, collating, pinning
  forward,
  loss,        // the head, its logits and the cross entropy
  backward,    // with the forward that checkpointing repeats
  optimizer,   // the step and its states, made at the first
  evaluation,  // a pass over the evaluation rows, and gathering its logits
  generate,
  save,    // gathering and writing weights
  capture  // CUDA graphs, and the start of a server such as vLLM
};

std::string_view name_of(TorchStage stage);

struct StageFound {
  TorchStage stage = TorchStage::unknown;
  std::string by;          // what told it: "evaluation_loop (transformers/trainer.py:4235)"
  bool recompute = false;  // backward: in the forward that checkpointing repeats
  bool logits = false;     // evaluation, loss: logits were being computed, gathered or kept
};

// From the frames; where there are none, from `before`, the lines in front of the message.
StageFound stage_of(const Traceback* traceback, std::string_view before);

}  // namespace snug
