#pragma once
// How several GPUs share a PyTorch run: --gpus, --fsdp, --ddp and --deepspeed, what another trainer's file, its launcher and
// its DeepSpeed configuration say, and the trainers' habits.

#include <optional>

#include "ask/arguments.h"
#include "eager/setup.h"
#include "eager/stack.h"
#include "model/model_spec.h"

namespace snug {

// How many GPUs flag or file speak of; 0: neither. Throws UsageError for what is no number.
int64_t gpus_asked(const Arguments& arguments);

// Another trainer's file that shares a run for GPUs out, where neither it nor a flag says among how many: eight, and told.
void assume_gpus(Arguments& arguments);

// `setup`: all else of the run. Throws Error for what the eager model does not cover, UsageError for flags that contradict.
eager::Ranks pytorch_ranks(const Arguments& arguments, const eager::Setup& setup, const ModelSpec& model,
                           const eager::StackProfile& stack);

// Whether a key of another trainer's file is about this alone.
bool is_about_ranks(const ForeignKey& key);

// How the words that share a run of PyTorch's share one of snug's own: --gpus and --fsdp, --deepspeed or what another
// trainer's recipe says; num_processes and zero_stage win.
Parallel shared_by(const Arguments& arguments);

// Whether DeepSpeed's configuration has Adam by one kernel; none where it does not name Adam.
std::optional<bool> deepspeed_fuses_adam(const Arguments& arguments);

}  // namespace snug
