#pragma once
// What kind of program ran out, as far as its frames and the text around them show: a language model's trainer, a network
// for pictures or graphs, a program that makes pictures; on whose device; whether anything is kept for a backward at all.
// Says nothing of what to change: that is explain/failed_program_advice.h.

#include <cstdint>
#include <string_view>

#include "torch/oom_message.h"
#include "torch/stage.h"
#include "torch/traceback.h"

namespace snug {

enum class ProgramKind : uint8_t {
  any,        // a language model, or unknown
  vision,     // detection, segmentation, classification
  diffusion,  // pictures and films are made; its training is none of this kind
  graph,      // nodes and edges
  fairseq     // batches are told in tokens
};

enum class DeviceMaker : uint8_t { nvidia, amd, intel, apple };

struct FailedProgram {
  ProgramKind kind = ProgramKind::any;
  DeviceMaker maker = DeviceMaker::nvidia;
  bool inference = false;        // within torch.no_grad or inference_mode, or a program that serves, predicts, transcribes
  bool unguarded = false;        // … the latter, and no frame of such a guard is shown
  bool told = false;             // … which the text tells in words or by a command
  bool demo = false;             // … and is a demo
  bool checkpointed = false;     // gradient checkpointing is on
  bool no_bfloat16 = false;      // a card older than Ampere
  bool serves = false;           // vLLM or SGLang: cache and batch are shared out by settings of theirs
  bool full_of_weights = false;  // … and holds more than they would take for their cache
  bool batch_of_one = false;     // the text says so
  bool unix = false;             // paths of Linux or macOS are shown
  bool offloaded = false;        // parts of the model lie in host memory already
  bool moved = false;            // weights are moved to the device one by one, from host memory or from a file
  bool quantized = false;        // they are bitsandbytes' already, or are told to be
  bool of_ranks = false;         // each of several ranks does so
  bool restored = false;         // a checkpoint's tensors are read straight to the device that they were saved from
  bool zero = false;             // the optimizer is DeepSpeed's
  bool fsdp = false;             // weights are gathered by FSDP
};

// `text` is what stands around the message.
FailedProgram failed_program_of(const OomMessage& message, const StageFound& stage, const Traceback* traceback,
                                std::string_view text);

}  // namespace snug
