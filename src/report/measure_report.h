#pragma once
// Answers of `snug measure` as text and as JSON (schema in docs/measure.md).

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "explain/snapshot_explanation.h"
#include "measure/run/program.h"
#include "plan/accelerators.h"

namespace snug {

struct MeasuredView {
  const MeasureRequest& request;
  const Accelerator& card;
  const Measurement& measurement;                  // of at least one rank
  std::optional<SnapshotExplanation> explanation;  // where memory ran out and PyTorch left a snapshot
};

std::string measure_text(const MeasuredView& view);
nlohmann::ordered_json measure_json(const MeasuredView& view);

}  // namespace snug
