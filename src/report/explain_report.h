#pragma once
// Answers of `snug explain` as text of 80 columns and as JSON (schema in docs/explain.md).

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "explain/explanation.h"
#include "explain/snapshot_explanation.h"
#include "torch/profiler_trace.h"

namespace snug {

std::string explain_text(const Explanation& explanation);
nlohmann::ordered_json explain_json(const Explanation& explanation);

std::string explain_text(const MemorySummary& summary);
nlohmann::ordered_json explain_json(const MemorySummary& summary);

std::string explain_text(const ProfilerTrace& trace);
nlohmann::ordered_json explain_json(const ProfilerTrace& trace);

std::string explain_text(const SnapshotExplanation& explanation);
nlohmann::ordered_json explain_json(const SnapshotExplanation& explanation);

}  // namespace snug
