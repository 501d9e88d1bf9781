#pragma once
// The table of runs that tests/oracle/eager_goldens.py made: settings, and what PyTorch's allocator counted.

#include <map>
#include <string>
#include <vector>

#include "eager/estimate.h"

namespace snug::eager {

struct Golden {
  std::map<std::string, std::string> cells;  // by column
  ModelSpec spec;
  Setup setup;
  StackProfile stack;
  Target target;
  std::string phase;
  int64_t static_bytes = 0, allocated_bytes = 0, reserved_bytes = 0, steady_bytes = 0;

  std::string name() const;  // its settings that are not the usual ones
};

// By how many percent a plan is above what was counted.
inline double error_of(int64_t planned, int64_t counted) {
  return 100.0 * static_cast<double>(planned - counted) / static_cast<double>(counted);
}

std::vector<Golden> read_goldens(const std::string& path);

}  // namespace snug::eager
