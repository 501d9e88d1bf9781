#pragma once
// The words of `snug measure` and of `snug explain --try`: a card that one does not have, and a command to run on it.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "measure/run/program.h"
#include "plan/accelerators.h"

namespace snug::cli {

struct MeasureWords {
  std::string gpu = "A100-SXM4-80GB";
  bool gpu_told = false;
  std::optional<int64_t> memory_bytes;
  std::string json, snapshot;  // files to write; empty: none
  MeasureRequest run;          // all but its device
};

// Throws UsageError. `command`: that it is for, "measure".
MeasureWords parse_measure(std::span<char* const> words, const std::string& command);

// Throws Error for what is not in the catalogue, or no CUDA card.
const Accelerator& card_of(const std::string& name);

// That card, or that card with another memory. Throws Error for less than CUDA's own context takes.
NullDevice device_of(const MeasureWords& request, const Accelerator& card);

// The first rank that ran out, if one did; null: none.
const MeasuredRank* out_of_memory(const Measurement& measurement);

// The file appears whole or not at all. Throws Error.
void write_json(const std::string& path, const nlohmann::ordered_json& json);

}  // namespace snug::cli
