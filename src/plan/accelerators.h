#pragma once
// The accelerators that snug knows by name, so that any machine can plan for any card. Data only: the rows of
// accelerators.csv, which is part of the program and says where its figures come from. Knows nothing of programs or plans.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

struct Accelerator {
  std::string name;                  // "A100-SXM4-80GB"
  std::vector<std::string> aliases;  // "a100", "a100-80gb"
  std::string vendor, generation;    // "NVIDIA", "Ampere"
  int32_t compute_capability = 0;    // 80 for sm_80; 0: not CUDA
  int32_t multiprocessors = 0;       // of CUDA cards
  int64_t memory_bytes = 0;          // as sold
  int64_t usable_bytes = 0;          // what one process can allocate on an idle device, its own context not yet taken off
  // What CUDA's context and PyTorch's kernels take of that, as drivers and versions differ.
  int64_t context_least_bytes = 250 << 20, context_most_bytes = 650 << 20;
  double bandwidth = 0;  // bytes/s
  // Dense rates, FLOP/s, with fp32 accumulation where the vendor tells the two apart; 0: not supported.
  double fp32_flops = 0, tf32_flops = 0, fp16_flops = 0, bf16_flops = 0, fp8_flops = 0, int8_ops = 0;
  double host_link = 0;                    // bytes/s, one direction; unified memory: its bandwidth
  double peer_link = 0;                    // bytes/s, one direction, to others of its kind; 0: only over the host
  std::optional<double> dollars_per_hour;  // typical on-demand rent; none: rarely rented
  std::string best_use;                    // one short clause
};

// All of them, vendor by vendor. Read once, at the first call.
const std::vector<Accelerator>& accelerators();

// By name or alias; case, blanks, dashes, underscores and vendors' words ("NVIDIA GeForce") do not count. Short names that
// fit several cards stand with the one they mean: "a100" is the 80 GB SXM card. Null: none.
const Accelerator* find_accelerator(std::string_view name);

// The name that is most like `name`, for "did you mean".
std::string nearest_accelerator(std::string_view name);

}  // namespace snug
