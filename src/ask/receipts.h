#pragma once
// Receipts of this machine: the rates that `snug probe` measured, and what finished runs took beside what was planned. They
// lie in one directory of the user's ($XDG_CACHE_HOME/snug, else ~/.cache/snug), which the probe makes; without it nothing
// is kept, and plans say that times are unknown. A receipt of another processor or version is passed over.

#include <filesystem>
#include <optional>
#include <string>

#include "plan/plan.h"

namespace snug {

std::filesystem::path receipts_directory();

// The file in which a probe with so many threads is kept.
std::filesystem::path probe_file(int32_t threads);
// Writes the probe's rates. Throws Error.
void keep_probe(const CostModel& model, int32_t threads);
// The kept rates; none where there are none, or they are not of this processor and version.
std::optional<CostModel> kept_probe(int32_t threads);

// One finished run.
struct RunReceipt {
  std::string model, method;
  int32_t threads = 1;
  int64_t planned_peak_bytes = 0, measured_peak_bytes = 0;
  double planned_step_seconds = 0, measured_step_seconds = 0;  // planned: without correction; 0 if unknown
};
std::string receipt_json(const RunReceipt& receipt);
// Adds a line to the kept receipts, if the directory is there. Throws Error where it cannot be written.
void keep_receipt(const RunReceipt& receipt);
// What the last ten runs of a model and method say of their plans; none without such runs.
struct Correction {
  double factor = 1;  // median of measured over planned step time
  int64_t runs = 0;
  double least_peak = 1, most_peak = 0;  // measured peak over planned
};
std::optional<Correction> kept_correction(const std::string& model, const std::string& method, int32_t threads);

}  // namespace snug
