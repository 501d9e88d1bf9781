#pragma once
// What becomes of what blocks save for their backward, where a plan has chosen it.

#include <cstdint>
#include <map>
#include <set>

#include "program/program.h"

namespace snug {

// By layer: storages that BlockRun::saved lists.
using SavedByLayer = std::map<int64_t, std::set<StorageId>>;

// The rest is kept in memory.
struct SavedChoice {
  SavedByLayer released;      // made again before their backward
  SavedByLayer away;          // on disk until then
  bool inputs_away = false;   // what each block starts from, too
  bool of_ops_alone = false;  // nothing is chosen yet: blocks as the passes that look into them have them
  int64_t inputs = 0;         // with everything released: so many of them are kept at once; 0: all

  bool keeps_all() const { return released.empty() && away.empty() && !inputs_away && inputs == 0; }
};

}  // namespace snug
