#pragma once
// A memory snapshot as a trace for Perfetto and chrome://tracing, in the form of `snug plan --trace`: bytes by purpose and
// reserved as counters after every event that changes them, annotations as slices, a mark where memory ran out.

#include "explain/snapshot_explanation.h"
#include "report/page.h"

namespace snug {

// Times are those of the events, from a microsecond before the first on; where none were recorded, an event takes one.
void write_explain_trace(const Snapshot& snapshot, const SnapshotExplanation& explanation, const std::string& file,
                         const PageSink& sink);

}  // namespace snug
