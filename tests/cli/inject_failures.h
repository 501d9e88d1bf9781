#pragma once
// What the preloaded library tells the test that runs it, in a file that both map.

#include <array>
#include <cstdint>

namespace snug::cli_tests {

struct Seen {
  int64_t calls = 0;                          // that matched; `full`: bytes written
  int64_t injected = 0;                       // of them that failed, were cut, …
  std::array<uint32_t, 4096> file_of_call{};  // a hash of the path of each of the first calls
  std::array<char, 4096> path{};              // of the first of them
};

}  // namespace snug::cli_tests
