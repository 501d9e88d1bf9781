#include "explain/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "explain/host_advice.h"
#include "explain/remedies.h"
#include "explain/serving.h"
#include "explain/size_text.h"
#include "explain/stage_advice.h"
#include "torch/words.h"

namespace snug {

namespace {

bool starts_with_any(const std::string& text, std::initializer_list<std::string_view> starts) {
  return std::ranges::any_of(starts, [&](std::string_view start) { return text.starts_with(start); });
}

void cure_fragmentation(std::vector<Advice>& all, const OomMessage& m, const Diagnosis& d) {
  const std::string& era = m.era;
  if (starts_with_any(era, {"1.0", "1.4", "up to"})) {
    all.push_back({"update PyTorch", "this release has no setting against fragmentation", d.unused_bytes});
  } else if (starts_with_any(era, {"1."})) {
    all.push_back({"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128",
                   "large segments are no longer cut up; from 2.1 on "
                   "expandable_segments:True does better",
                   d.unused_bytes});
  } else {
    const std::string_view name = m.source == OomSource::torch_hip ? "PYTORCH_HIP_ALLOC_CONF"
                                  : era == "2.9 or later"          ? "PYTORCH_ALLOC_CONF"
                                                                   : "PYTORCH_CUDA_ALLOC_CONF";
    all.push_back({fmt::format("{}=expandable_segments:True", name),
                   "segments grow instead of being cut up; no cost (Linux; if it is set already, it cannot help)",
                   d.unused_bytes, "expandable_segments"});
  }
  all.push_back(advice_of(Remedy::fixed_lengths));
  all.push_back(advice_of(Remedy::empty_cache));
}

// Where the driver tells 0 bytes of each: several that began one after the other.
bool are_ranks_by_number(const std::vector<OomProcess>& others) {
  constexpr int64_t kNear = 32;
  if (others.size() < 2 || std::ranges::any_of(others, [](const OomProcess& one) { return *one.bytes > 0; })) return false;
  const auto [first, last] = std::ranges::minmax_element(others, {}, &OomProcess::pid);
  return last->pid - first->pid <= kNear;
}

// Processes that began beside this one and hold about as much are ranks of the same job.
bool are_ranks(const OomMessage& m, const Diagnosis& d, const std::vector<OomProcess>& others) {
  constexpr int64_t kNear = 32;
  const int64_t own = m.process_bytes.value_or(m.reserved_bytes.value_or(0));
  const int64_t held = own > 0 ? own : m.allocated_bytes.value_or(0);
  if (are_ranks_by_number(others)) return true;
  return !others.empty() && held > 0 && std::ranges::any_of(others, [&](const OomProcess& other) {
    const bool near = !d.own_pid || std::abs(other.pid - *d.own_pid) <= kNear;
    return near && std::abs(*other.bytes - held) <= held / 8;
  });
}

void cure_others(std::vector<Advice>& all, const OomMessage& m, const Diagnosis& d) {
  std::vector<OomProcess> others;
  for (const OomProcess& process : m.processes)
    if (process.bytes && process.pid != d.own_pid) others.push_back(process);
  std::ranges::sort(others, [](const OomProcess& a, const OomProcess& b) { return *a.bytes > *b.bytes; });
  if (are_ranks(m, d, others))
    all.push_back({"torch.cuda.set_device(local_rank) before any tensor: several ranks share this GPU",
                   "they hold as much as this process, and began with it; launchers set LOCAL_RANK",
                   std::max(others.front().bytes, d.others_bytes)});
  for (size_t i = 0; i < others.size() && i < 4; ++i)
    all.push_back({fmt::format("end process {}, or wait for it", others[i].pid),
                   "`nvidia-smi` and `ps -p PID` tell whose it is", others[i].bytes, "end_other_process"});
  if (others.empty()) all.push_back(advice_of(Remedy::end_other_process, d.others_bytes));
  all.push_back({"CUDA_VISIBLE_DEVICES=N, with a GPU that is free",
                 "several ranks: torch.cuda.set_device(local_rank) before any tensor",
                 {}});
}

void cure_impossible(std::vector<Advice>& all, const StageFound& stage) {
  const bool evaluates = stage.stage == TorchStage::evaluation;
  if (evaluates && !stage.logits) all.push_back(advice_of(Remedy::right_shape));
  if (evaluates || stage.stage == TorchStage::loss || stage.logits) {
    add_stage_advice(all, stage);
    return;
  }
  all.push_back(advice_of(Remedy::right_shape));
  all.push_back(advice_of(Remedy::flash_attention));
  all.back().effect = "no tensor of sequence x sequence";
  all.push_back(advice_of(Remedy::fused_loss));
  all.back().change = "use_liger_kernel: true";
  all.push_back(advice_of(Remedy::smaller_micro_batch));
  all.back().change = "per_device_train_batch_size: 1, with gradient_accumulation_steps";
  all.back().effect = "the effective batch stays";
}

Advice relaxed_limits() {
  return {"UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1", "Level Zero then grants larger blocks, where the driver can", {}};
}

// What an Intel GPU may refuse whatever is free: a block of 4 GiB.
bool is_large_block(const OomMessage& m) {
  return m.source == OomSource::torch_xpu && m.tried_bytes && *m.tried_bytes >= int64_t{4} << 30;
}

void cure_limit(std::vector<Advice>& all, const OomMessage& m, const StageFound& stage) {
  std::optional<int64_t> more;
  if (m.capacity_bytes && m.allowed_bytes) more = std::max<int64_t>(*m.capacity_bytes - *m.allowed_bytes, 0);
  if (m.source == OomSource::torch_mps) {
    all.push_back(advice_of(Remedy::smaller_micro_batch));
    all.back().change = "a smaller batch, input or model";
    all.back().effect = "the limit is more already than the machine has to spare";
    all.push_back({"PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts the limit, which is 1.7 of what Metal recommends",
                   "then macOS swaps: slow, and it may stop the whole machine; close other programs first",
                   {}});
    all.push_back({"torch.mps.empty_cache() between stages", "returns what is cached and unused", {}});
  } else if (m.source == OomSource::torch_xpu) {
    all.push_back(relaxed_limits());
    all.push_back(advice_of(Remedy::right_shape));
  } else {
    all.push_back(advice_of(Remedy::raise_fraction, more));
  }
  add_stage_advice(all, stage);
}

void cure_overcommit(std::vector<Advice>& all, const StageFound& stage) {
  all.push_back({"NVIDIA control panel: CUDA - Sysmem Fallback Policy: Prefer No Sysmem Fallback",
                 "it then stops at the device's size instead of running ten times slower beyond it",
                 {}});
  add_stage_advice(all, stage);
}

void cure_driver(std::vector<Advice>& all, const OomMessage& m, const Diagnosis& d, const StageFound& stage) {
  if (m.has_figures()) {
    all.push_back({"Windows: let the system manage the page file, or make it larger", "device memory is backed by it", {}});
    all.push_back({"look at `nvidia-smi` while it starts", "another process may take and give back memory in between",
                   d.others_bytes});
    all.push_back({"a MIG slice, a vGPU or a container may have less than the card shows", "", {}});
    all.push_back({"sysctl -w vm.max_map_count=1048576 (Linux)", "thousands of segments are as many mappings", {}});
    return;
  }
  if (contains(m.text, "nable to find"))
    all.push_back(advice_of(Remedy::smaller_micro_batch));  // each algorithm needs a workspace beside the activations
  all.push_back(
      {"look at `nvidia-smi`: which processes hold the device?", "a context needs 0.3 to 1 GiB before any tensor", {}});
  all.push_back({"torch.cuda.set_per_process_memory_fraction(0.95)", "PyTorch leaves room for libraries", {}});
  if (m.source == OomSource::cublas)
    all.push_back({"CUBLAS_WORKSPACE_CONFIG=:4096:2", "a smaller workspace for each handle", {}});
  if (m.source == OomSource::nccl)
    all.push_back({"NCCL_BUFFSIZE=1048576, NCCL_MAX_NCHANNELS=4", "smaller buffers; somewhat slower", {}});
  if (m.source == OomSource::bitsandbytes)
    all.push_back(
        {"torch.optim.AdamW instead of a paged optimizer", "unified memory is refused on some systems, as WSL", {}});
  if (m.source == OomSource::cublas || m.source == OomSource::cudnn)
    all.push_back({"if memory is free: CUDA_LAUNCH_BLOCKING=1", "a label or token id out of range shows as this too", {}});
  add_stage_advice(all, stage);
}

void cure_other_framework(std::vector<Advice>& all, const OomMessage& m, const Diagnosis& d) {
  const Advice smaller{
      "a smaller batch, or rematerialization (jax.checkpoint, recompute)", "fewer activations are kept", {}};
  if (m.source == OomSource::jax) {
    const bool counted = d.cause == Cause::shortage;  // a limit on what JAX takes would change nothing
    if (counted) all.push_back(smaller);
    all.push_back({"XLA_PYTHON_CLIENT_MEM_FRACTION=0.95", "JAX takes 0.75 of the device at its start unless told", {}});
    all.push_back({"XLA_PYTHON_CLIENT_PREALLOCATE=false", "if other programs share the device", {}});
    if (!counted) all.push_back(smaller);
    if (counted) all.push_back({"arrays sharded over more devices", "each holds a part", {}});
    return;
  }
  all.push_back({"a smaller batch", "fewer activations are kept", {}});
  if (m.source == OomSource::paddle) {
    all.push_back({"look at `nvidia-smi`: which processes hold the device?", "others may hold what is missing", {}});
    all.push_back(
        {"FLAGS_fraction_of_gpu_memory_to_use=0.95", "Paddle takes 0.92 of the device at its start unless told", {}});
  } else {
    all.push_back({"TF_FORCE_GPU_ALLOW_GROWTH=true", "if other programs share the device", {}});
  }
  all.push_back({"smaller inputs", "activations grow with them", {}});
}

// Where the figures do not decide and little of the device is this program's as far as is known: others may hold it.
bool is_untold_holder(const OomMessage& m, const Diagnosis& d, const StageFound& stage) {
  if (d.cause != Cause::unknown) return false;
  if (m.source == OomSource::torch_async) return m.has_figures();
  if (m.has_figures() && !m.free_bytes && m.capacity_bytes && *m.allocated_bytes < *m.capacity_bytes / 4) return true;
  return m.source == OomSource::caffe2 && (stage.stage == TorchStage::load || stage.stage == TorchStage::unknown);
}

// A single tensor of so much is seldom meant, whatever the device, which the text does not tell.
bool is_odd_request(const OomMessage& m, const Diagnosis& d) {
  constexpr int64_t kOdd = int64_t{32} << 30;
  return d.cause == Cause::unknown && !m.capacity_bytes && m.tried_bytes && *m.tried_bytes >= kOdd;
}

// What a release has not learnt yet cannot help in it.
void drop_too_new(std::vector<Advice>& all, const std::string& era) {
  if (!starts_with_any(era, {"up to", "1.0-", "1.4-", "1.10-1.12"})) return;
  const auto too_new = [](const Advice& one) {
    return starts_with_any(one.change, {"attn_implementation", "use_liger_kernel", "load_in_4bit", "cache_implementation"});
  };
  if (std::erase_if(all, too_new) > 0)
    all.push_back(
        {"update PyTorch to 2.x", "attention without a tensor of length x length, 4-bit weights, fused losses", {}});
}

}  // namespace

std::vector<Advice> advise(const OomMessage& m, const Diagnosis& d, const StageFound& stage) {
  std::vector<Advice> all;
  if (is_of_server(m.source) && d.cause != Cause::other_process) {
    cure_server(all, m);
    return all;
  }
  switch (d.cause) {
    case Cause::fragmentation:
      cure_fragmentation(all, m, d);
      if (d.nearly_full) add_stage_advice(all, stage);
      break;
    case Cause::other_process: cure_others(all, m, d); break;
    case Cause::impossible_request: cure_impossible(all, stage); break;
    case Cause::memory_limit: cure_limit(all, m, stage); break;
    case Cause::overcommit: cure_overcommit(all, stage); break;
    case Cause::host_memory: cure_host(all, m, stage); break;
    case Cause::driver: cure_driver(all, m, d, stage); break;
    case Cause::unknown:
    case Cause::shortage:
      if (m.source == OomSource::jax || m.source == OomSource::tensorflow || m.source == OomSource::paddle) {
        cure_other_framework(all, m, d);
      } else if (m.source == OomSource::device_map) {
        add_stage_advice(all, {TorchStage::load, {}, false, false});
      } else {
        if (is_large_block(m)) all.push_back(relaxed_limits());
        if (is_odd_request(m, d)) {
          all.push_back(advice_of(Remedy::right_shape));
          all.push_back(advice_of(Remedy::flash_attention));
        }
        if (is_untold_holder(m, d, stage)) all.push_back(advice_of(Remedy::end_other_process));
        add_stage_advice(all, stage);
      }
  }
  if (d.or_cause == Cause::fragmentation) cure_fragmentation(all, m, d);
  if (m.private_pool_bytes && *m.private_pool_bytes > 0 && d.cause != Cause::host_memory)
    all.push_back({"no CUDA graphs: enforce_eager=True, or torch.compile without mode=\"reduce-overhead\"",
                   "steps get slower", m.private_pool_bytes});
  drop_too_new(all, m.era);
  return all;
}

}  // namespace snug
