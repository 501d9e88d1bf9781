#pragma once
// What launchers, loggers, containers and terminals put in front of a line of output: "[rank1]:", timestamps, "trainer-1  |
// ",
// "(RayTrainWorker pid=1)", pytest's "E ", the frames of boxes.

#include <cstdint>
#include <optional>
#include <string_view>

namespace snug {

struct LogLine {
  std::string_view text;    // without its prefix; holds until the next line
  int64_t number = 0;       // in the file, from 1
  std::optional<int> rank;  // of the process, where a prefix tells it
  bool by_vllm = false;     // a prefix names a worker of vLLM
};

// Takes prefixes off the front, and the end of a box off the back.
LogLine without_prefix(std::string_view text);

}  // namespace snug
