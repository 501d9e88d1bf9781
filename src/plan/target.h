#pragma once
// Target: what a Program runs on, as plain data. Any machine can plan for any target.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/arithmetic.h"
#include "plan/cost.h"

namespace snug {

enum class TargetKind : uint8_t { cpu, cuda };

struct Target {
  TargetKind kind = TargetKind::cpu;
  std::string name = "cpu";
  int32_t threads = 1;
  int64_t memory_bytes = 0;  // what the device has
  Home paged = Home::disk;   // where what is paged lies
  // Bytes that each home away from the device has; none: not known. The links to them are the cost model's.
  std::array<std::optional<int64_t>, kHomeCount> room{};
  int64_t page_bytes = 4096;
  Arithmetic products = Arithmetic::fp32;  // the most it has: bf16 for bf16 operands, bf16_pieces for f16 too
  bool multiplies_bf16 = true;             // false: f16 is the half precision to choose

  // What lives outside the arena, measured once for a kind of machine: program, libraries, heap …
  int64_t runtime_bytes = 0;
  int64_t runtime_bytes_per_thread = 0;       // … stacks and the threading library's own
  int64_t runtime_bytes_per_product = 0;      // … and each prepared product (oneDNN generates code for it)
  int64_t runtime_bytes_of_ranks = 0;         // … and what a ring of ranks takes, where there are several
  int64_t runtime_bytes_per_file_tensor = 0;  // … and each tensor that the longest of the files lists

  CostModel cost;
  std::optional<double> dollars_per_hour;
};

// This machine's CPU with so many threads (0: the cores this process may use) and the memory it can really give:
// available RAM within the cgroup's limit.
Target this_cpu(int64_t threads);

}  // namespace snug
