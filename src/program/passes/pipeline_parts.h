#pragma once
// What a stage's order of micro-batches is put together from.

#include <set>
#include <vector>

#include "program/program.h"

namespace snug {

using StorageSet = std::set<StorageId>;

// Forwards and backwards of a stage's chunks. What each takes from a neighbour it receives, and it ends with sending.
struct ChunkParts {
  std::vector<Region> ahead, back;  // by chunk
};

// The chunks' parts of `all`, a batch, a forward and a backward, which is left empty.
ChunkParts take_apart(Program& program, Region& all);

// Storages that ops below the region use, or write; without those that last.
StorageSet touched(const Program& program, const Region& region, bool written);
// Each of so many micro-batches that are on their way gets an instance.
void keep_apart(Program& program, StorageId id, int64_t slots);

// A copy with temporaries of its own, which die with it. What others look for is there once: not in it.
Region copy_of(Program& program, const Region& region);
Region loop_of(const char* name, Section section, int64_t count, std::vector<Region> parts);

}  // namespace snug
