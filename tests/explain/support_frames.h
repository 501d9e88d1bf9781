#pragma once
// Frames of made-up programs, as snapshots write them.

#include <cstdint>
#include <string>
#include <string_view>

#include "torch/support_write.h"

namespace snug::explain_tests {

inline constexpr int64_t kMiB = int64_t{1} << 20;

inline std::string frame(std::string_view file, std::string_view function, int64_t line) {
  return pickled::dict(
      {{"filename", pickled::text(file)}, {"name", pickled::text(function)}, {"line", pickled::integer(line)}});
}

}  // namespace snug::explain_tests
