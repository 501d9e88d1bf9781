#pragma once
// A run that nothing disturbed, and beside it the state of the same run killed as it began its last checkpoint: what
// disturbed runs start from, and what they must come to.

#include <filesystem>
#include <string>
#include <vector>

#include "cli/support_injection.h"
#include "cli/support_workspace.h"

namespace snug::cli_tests {

inline constexpr const char* kWhySkipped = "a sanitizer's runtime stands in for the same calls";

class Disturbed {
 public:
  explicit Disturbed(const std::string& method);  // "full", "lora", "paged": full with states on disk

  const Workspace& workspace() const { return work_; }
  std::filesystem::path truth() const { return work_ / "truth"; }    // checkpoints 2, 4 and 6, the result
  std::filesystem::path before() const { return work_ / "before"; }  // checkpoints 2 and 4
  std::filesystem::path out() const { return work_ / "out"; }        // a copy of `before`

  void restore() const;  // makes `out` that copy again

  std::vector<std::string> words(const std::filesystem::path& output, const std::vector<std::string>& more) const;
  ProcessResult run(const std::vector<std::string>& more) const;  // into `out`
  Injected run(const std::vector<std::string>& more, const Injection& injection) const;
  ProcessResult resume() const { return run({"--resume-from-checkpoint"}); }
  Injected resume(const Injection& injection) const { return run({"--resume-from-checkpoint"}, injection); }

  // "" if `out` holds what the undisturbed run left, else what is other.
  std::string difference() const;
  // "" if the checkpoints that were there before are as they were.
  std::string damage() const;

 private:
  std::string method_;
  Workspace work_;
};

}  // namespace snug::cli_tests
