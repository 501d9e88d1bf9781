#pragma once
// oneDNN leaves the code it generates writable: 256 KiB and more of private, writable memory for each kernel, little of it
// touched. Sealed (read and execute only) it no longer counts as data, and cannot be written by mistake. Code of others is
// theirs: PCRE2 writes beside its own when it frees it.

#include <cstdint>
#include <vector>

namespace snug::kernels {

class CodeSeal {
 public:
  struct Range {
    uint64_t begin, end;
    bool operator==(const Range&) const = default;
  };

  // Notes the anonymous memory that is both writable and executable now.
  CodeSeal() : others_(writable_code()) {}
  // Makes what came since then read-only.
  void seal() const;

  // Ascending.
  static std::vector<Range> writable_code();
  // The same, from a list of all mappings: of systems before Linux 6.11, which answer no question.
  static std::vector<Range> listed_code();

 private:
  std::vector<Range> others_;
};

}  // namespace snug::kernels
