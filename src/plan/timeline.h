#pragma once
// The memory over one run of a Program, op by op, as data for whoever draws it: what runs when, inside which stage and
// layer, and which storages are alive then. Layers are unfolded, so that memory rises through forward and falls through
// backward as it does when the run goes; of loops that repeat the same storages (micro-batches, chunks) the first and the
// last repetition are shown. It knows nothing of files or formats. That bytes alive by tensor over time explain a peak is
// the idea of PyTorch's memory snapshots.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/layout.h"
#include "plan/plan.h"
#include "program/program.h"

namespace snug {

// One repetition of a region: a stage, a micro-batch, a layer. Groups nest.
struct TimelineGroup {
  const Region* region = nullptr;
  int64_t iteration = 0;   // of the region, from 0
  int64_t layer = -1;      // where the region is a loop over layers
  int32_t parent = kNone;  // index of the enclosing group
  int32_t first_step = 0, last_step = -1;
};

// One op as it runs.
struct TimelineStep {
  const Op* op = nullptr;
  int32_t point = 0;  // its point of time on the Layout's folded timeline
  int32_t group = kNone;
  int64_t layer = 0;  // whose view of the weights it sees; 0 outside of layers
};

// Bytes in the arena from the first to the last step that has them.
struct TimelineLife {
  StorageId storage = kNone;
  int64_t instance = 0;
  int64_t bytes = 0;   // aligned
  int64_t offset = 0;  // from the start of the arena
  int32_t birth = 0, death = 0;
};

using BytesByRole = std::array<int64_t, kRoleCount>;

struct MemoryTimeline {
  const Program* program = nullptr;
  std::vector<TimelineGroup> groups;
  std::vector<TimelineStep> steps;
  std::vector<TimelineLife> lives;  // computed storages, by birth
  BytesByRole resident{};           // storages that live from load to save
  std::vector<BytesByRole> live;    // by step: everything in the arena, those included
  int64_t peak_bytes = 0;           // the most that is live at once
  int32_t peak_step = 0;            // the first step that has it
  int64_t hidden_steps = 0;         // ops of repetitions that are not shown

  Stage stage_of(const TimelineStep& step) const { return groups[static_cast<size_t>(step.group)].region->stage; }
};

// The timeline of a Program and its Layout, both of which must outlive it.
MemoryTimeline unfold(const Program& program, const Layout& layout);

// "matmul query": the kind of the op and what it makes, with "{}" for the layer, or in a layer.
std::string label_of(const Program& program, const Op& op);
std::string label_of(const Program& program, const Op& op, int64_t layer);
// "forward", "layer 3", "micro-batch 1 of 4".
std::string label_of(const TimelineGroup& group);
// The name of a storage's instance: that of its layer, where layers keep their own.
std::string label_of(const Storage& storage, int64_t instance);

int64_t sum_of(const BytesByRole& bytes);

// What the arena holds beyond the bytes alive at its peak: gaps between storages, and its last page.
int64_t holes_of(const Plan& plan);

}  // namespace snug
