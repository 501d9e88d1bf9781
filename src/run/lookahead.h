#pragma once
// When what comes from elsewhere, a page or ranks' parts, may be fetched: as early as nothing that comes before it in the
// Program's order still uses the memory that it is read into. In a loop that is in the iteration before. The Layout holds
// such memory throughout the region
// (`plan/events.h`), so being early costs no bytes.

#include <map>
#include <vector>

#include "program/program.h"

namespace snug {

// Fetching ops of a region's body, each listed once in `after_item` or `at_begin`.
struct Lookahead {
  struct Start {
    const Op* op = nullptr;
    bool next_iteration = false;  // for the iteration that follows
  };
  std::vector<const Op*> at_entry;             // before the first iteration
  std::vector<Start> at_begin;                 // of each iteration
  std::vector<std::vector<Start>> after_item;  // by item
};

using Lookaheads = std::map<const Region*, Lookahead>;

// Whether the op brings into a window what lies elsewhere.
bool is_fetch(const Op& op);

// Of all regions that have something to fetch.
Lookaheads lookaheads_of(const Program& program);

}  // namespace snug
