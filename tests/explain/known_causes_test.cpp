// Runs whose end is known: for each what was written to the log, the cause, the stage and the user's line. The logs are made
// as PyTorch, the trainers and the kernel print them; snapshots of known causes stand in snapshot_explanation_test.cpp.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "explain/explanation.h"

namespace snug::explain_tests {

namespace {

struct Known {
  const char* name;
  Cause cause;
  TorchStage stage;
  const char* own;  // the user's file; empty: no frame of theirs is there
  std::string log;
};

std::string frame(const char* file, int line, const char* function, const char* code) {
  return std::string("  File \"") + file + "\", line " + std::to_string(line) + ", in " + function + "\n    " + code + "\n";
}

const std::string kBegin = "Traceback (most recent call last):\n";
const std::string kMain = frame("/home/me/train.py", 88, "<module>", "trainer.train()");
const std::string kTrainer =
    frame("/env/lib/python3.11/site-packages/transformers/trainer.py", 2241, "train", "return inner_training_loop(");
const std::string kStep = frame("/env/lib/python3.11/site-packages/transformers/trainer.py", 3700, "training_step",
                                "loss = self.compute_loss(model, inputs)");
const std::string kModule =
    frame("/env/lib/python3.11/site-packages/torch/nn/modules/module.py", 1751, "_call_impl", "return forward_call(*args)");
const std::string kMlp = frame("/env/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py", 176,
                               "forward", "return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))");
const std::string kCross = frame("/env/lib/python3.11/site-packages/transformers/loss/loss_utils.py", 47, "ForCausalLMLoss",
                                 "logits = logits.float()") +
                           frame("/env/lib/python3.11/site-packages/torch/nn/functional.py", 3479, "cross_entropy",
                                 "return torch._C._nn.cross_entropy_loss(");
const std::string kBackward =
    frame("/env/lib/python3.11/site-packages/accelerate/accelerator.py", 2553, "backward", "loss.backward(**kwargs)") +
    frame("/env/lib/python3.11/site-packages/torch/_tensor.py", 648, "backward", "torch.autograd.backward(") +
    frame("/env/lib/python3.11/site-packages/torch/autograd/graph.py", 823, "_engine_run_backward",
          "return Variable._execution_engine.run_backward(");
const std::string kOptimizer =
    frame("/env/lib/python3.11/site-packages/torch/optim/adamw.py", 209, "step", "has_complex = self._init_group(") +
    frame("/env/lib/python3.11/site-packages/torch/optim/adamw.py", 152, "_init_group",
          "state[\"exp_avg\"] = torch.zeros_like(");
const std::string kEvaluate =
    frame("/env/lib/python3.11/site-packages/transformers/trainer.py", 4235, "evaluation_loop", "all_preds.add(logits)") +
    frame("/env/lib/python3.11/site-packages/transformers/trainer_pt_utils.py", 123, "nested_concat",
          "return torch_pad_and_concatenate(tensors, new_tensors)");
const std::string kLoad = frame("/home/me/train.py", 20, "<module>", "model = AutoModelForCausalLM.from_pretrained(name)") +
                          frame("/env/lib/python3.11/site-packages/transformers/modeling_utils.py", 4342, "from_pretrained",
                                "model = model.to(device)");
const std::string kSave = frame("/env/lib/python3.11/site-packages/transformers/trainer.py", 3310, "_save_checkpoint",
                                "self.save_model(output_dir)") +
                          frame("/env/lib/python3.11/site-packages/accelerate/accelerator.py", 3500, "get_state_dict",
                                "state_dict = model.state_dict()");
const std::string kGenerate =
    frame("/home/me/chat.py", 7, "<module>", "out = model.generate(ids, max_new_tokens=9000)") +
    frame("/env/lib/python3.11/site-packages/transformers/generation/utils.py", 2252, "generate", "result = self._sample(") +
    kModule;

// The sentence of PyTorch 2.5 and later.
std::string oom(const char* tried, const char* capacity, const char* free, const char* process, const char* allocated,
                const char* unallocated, const std::string& others = "", const std::string& allowed = "") {
  return std::string("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ") + tried +
         ". GPU 0 has a total capacity of " + capacity + " of which " + free + " is free. " + others +
         "Including non-PyTorch memory, this process has " + process + " memory in use. " + allowed +
         "Of the allocated memory " + allocated + " is allocated by PyTorch, and " + unallocated +
         " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n";
}

const std::string kFullCard = oom("1.50 GiB", "23.64 GiB", "410.00 MiB", "23.23 GiB", "22.31 GiB", "401.20 MiB");

const std::vector<Known> kKnown = {
    {"batch_too_large", Cause::shortage, TorchStage::forward, "/home/me/train.py",
     kBegin + kMain + kTrainer + kStep + kModule + kMlp + kFullCard},
    {"logits_too_large", Cause::shortage, TorchStage::loss, "/home/me/train.py",
     kBegin + kMain + kTrainer + kStep + kModule + kCross + kFullCard},
    {"gradients_do_not_fit", Cause::shortage, TorchStage::backward, "/home/me/train.py",
     kBegin + kMain + kTrainer + kBackward + kFullCard},
    {"states_at_the_first_step", Cause::shortage, TorchStage::optimizer, "/home/me/train.py",
     kBegin + kMain + kTrainer + kOptimizer + kFullCard},
    {"logits_gathered_in_evaluation", Cause::shortage, TorchStage::evaluation, "/home/me/train.py",
     kBegin + kMain + kTrainer + kEvaluate + kFullCard},
    {"weights_do_not_fit", Cause::shortage, TorchStage::load, "/home/me/train.py",
     kBegin + kLoad + oom("112.00 MiB", "7.79 GiB", "60.00 MiB", "7.72 GiB", "7.40 GiB", "12.11 MiB")},
    {"gathered_to_save", Cause::shortage, TorchStage::save, "/home/me/train.py",
     kBegin + kMain + kTrainer + kSave + kFullCard},
    {"cache_of_keys", Cause::shortage, TorchStage::generate, "/home/me/chat.py", kBegin + kGenerate + kFullCard},
    {"fragmented", Cause::fragmentation, TorchStage::forward, "/home/me/train.py",
     kBegin + kMain + kTrainer + kStep + kModule + kMlp +
         oom("512.00 MiB", "23.64 GiB", "210.00 MiB", "23.43 GiB", "17.12 GiB", "5.80 GiB")},
    {"somebody_elses_process", Cause::other_process, TorchStage::forward, "/home/me/train.py",
     kBegin + kMain + kTrainer + kStep + kModule + kMlp +
         oom("512.00 MiB", "23.64 GiB", "210.00 MiB", "6.10 GiB", "5.31 GiB", "210.20 MiB",
             "Process 4711 has 17.30 GiB memory in use. ")},
    {"scores_of_a_long_row", Cause::impossible_request, TorchStage::forward, "/home/me/train.py",
     kBegin + kMain + kTrainer + kStep + kModule + kMlp +
         oom("96.00 GiB", "79.10 GiB", "60.20 GiB", "18.90 GiB", "17.80 GiB", "512.00 MiB")},
    {"fraction_that_was_set", Cause::memory_limit, TorchStage::forward, "/home/me/train.py",
     kBegin + kMain + kTrainer + kStep + kModule + kMlp +
         oom("512.00 MiB", "79.10 GiB", "58.50 GiB", "20.40 GiB", "19.40 GiB", "310.00 MiB", "", "20.00 GiB allowed; ")},
    {"lent_by_windows", Cause::overcommit, TorchStage::unknown, "",
     "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 8.00 GiB "
     "of "
     "which 0 bytes is free. Of the allocated memory 13.40 GiB is allocated by PyTorch, and 210.00 MiB is reserved by "
     "PyTorch "
     "but unallocated.\n"},
    {"no_room_for_a_handle", Cause::driver, TorchStage::backward, "/home/me/train.py",
     kBegin + kMain + kTrainer + kBackward +
         "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n"},
    {"ram_while_loading", Cause::host_memory, TorchStage::load, "/home/me/train.py",
     kBegin + kLoad +
         "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried "
         "to "
         "allocate 117440512 bytes. Error code 12 (Cannot allocate memory)\n"},
    {"killed_by_the_kernel", Cause::host_memory, TorchStage::unknown, "",
     "[12345.678901] Out of memory: Killed process 4711 (python3) total-vm:91234567kB, anon-rss:62345678kB, file-rss:0kB, "
     "shmem-rss:0kB, UID:1000 pgtables:123456kB oom_score_adj:0\n"},
    {"shared_memory_of_a_container", Cause::host_memory, TorchStage::data, "",
     "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"},
    {"mps_high_water_mark", Cause::memory_limit, TorchStage::forward, "/home/me/train.py",
     kBegin + kMain + kTrainer + kStep + kModule + kMlp +
         "RuntimeError: MPS backend out of memory (MPS allocated: 17.20 GB, other allocations: 380.20 MB, max allowed: "
         "18.13 GB). "
         "Tried to allocate 1.17 GB on private pool. Use PYTORCH_MPS_HIGH_WATER_MARK_RATIO=0.0 to disable upper limit for "
         "memory "
         "allocations (may cause system failure).\n"},
};

class KnownCause : public ::testing::TestWithParam<Known> {};

TEST_P(KnownCause, is_found_with_its_stage) {
  const Known& known = GetParam();
  const auto e = explain_log(read_oom_log("Epoch 1:  12%|#2   | 120/1000\n" + known.log + "bye\n"));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->diagnosis.cause, known.cause) << name_of(e->diagnosis.cause) << ": " << e->diagnosis.answer;
  EXPECT_EQ(e->stage.stage, known.stage) << name_of(e->stage.stage) << " by " << e->stage.by;
  EXPECT_EQ(e->own ? e->own->file : "", known.own);
  EXPECT_FALSE(e->advice.empty());
}

INSTANTIATE_TEST_SUITE_P(of_logs, KnownCause, ::testing::ValuesIn(kKnown),
                         [](const auto& known) { return known.param.name; });

}  // namespace

}  // namespace snug::explain_tests
