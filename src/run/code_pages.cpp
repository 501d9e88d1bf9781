#include "run/code_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

namespace {

struct Mapping {
  uintptr_t begin = 0, end = 0;
};

// Of a line "begin-end r-xp offset device inode  file", in hexadecimal.
std::optional<Mapping> code_of_file(const std::string& line) {
  char* rest = nullptr;
  Mapping mapping{.begin = std::strtoull(line.c_str(), &rest, 16)};
  if (*rest != '-') return std::nullopt;
  mapping.end = std::strtoull(rest + 1, &rest, 16);
  if (!std::string_view(rest).starts_with(" r-xp ") || line.find(" /") == std::string::npos) return std::nullopt;
  return mapping;
}

// The mappings of code of which every page is as it stands in its file: a page that was written, as a debugger does to stop
// there, is this process's own and would be lost.
std::vector<Mapping> unchanged_code() {
  std::ifstream maps("/proc/self/smaps");
  std::vector<Mapping> found;
  std::optional<Mapping> code;
  for (std::string line; std::getline(maps, line);) {
    if (line.starts_with("Anonymous:")) {
      const bool is_unchanged = std::strtoll(line.c_str() + line.find(':') + 1, nullptr, 10) == 0;
      if (code && is_unchanged) found.push_back(*code);
      code.reset();
    } else if (const std::optional<Mapping> begun = code_of_file(line)) {
      code = begun;
    }
  }
  return found;
}

void advise(Mapping mapping, int advice) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel tells addresses as text
  madvise(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin, advice);
}

// What a fault maps ends where a mapping does, and neighbours that differ in a flag are not joined. Of the flags this one
// changes least: core dumps leave out code of files anyway.
void cut_into_windows(Mapping mapping) {
  constexpr uintptr_t kWindow = uintptr_t{64} << 10;
  if (mapping.end - mapping.begin <= kWindow) return;
  constexpr uintptr_t kTwo = 2 * kWindow;  // every other one, of the whole address space: the same when it is done again
  for (uintptr_t at = mapping.begin / kTwo * kTwo; at < mapping.end; at += kTwo) {
    const Mapping window{std::max(at, mapping.begin), std::min(at + kWindow, mapping.end)};
    if (window.begin < window.end) advise(window, MADV_DONTDUMP);
  }
}

}  // namespace

void shrink_code_pages() {
  std::vector<Mapping> whole;  // neighbours, as windows are when it is done again, are given back together
  for (const Mapping& code : unchanged_code()) {
    cut_into_windows(code);
    if (!whole.empty() && whole.back().end == code.begin)
      whole.back().end = code.end;
    else
      whole.push_back(code);
  }
  for (const Mapping& code : whole) advise(code, MADV_DONTNEED);
}

}  // namespace snug
