#pragma once
// A directory that appears all at once. It is filled under a temporary name beside its place and renamed when it is complete
// and on the disk, so that a run that is killed while saving leaves the previous checkpoint whole.

#include <filesystem>
#include <string>

namespace snug {

class AtomicDirectory {
 public:
  // Creates "NAME.tmp-PID" beside `target` (and the parents of both). Throws Error. One at a time for a target.
  explicit AtomicDirectory(std::filesystem::path target);
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;
  ~AtomicDirectory();  // removes what was not committed

  const std::filesystem::path& path() const { return temporary_; }  // write here
  const std::filesystem::path& target() const { return target_; }

  // Syncs every file, then puts the directory in its place. What stood there before is replaced as a whole. Throws Error.
  void commit();

 private:
  std::filesystem::path target_, temporary_;
  bool committed_ = false;
};

// Removes "*.tmp-PID" files and directories in `parent`: what runs that were killed left behind. For a caller that holds the
// lock of the place, since a number tells little of a process: it may be a zombie's, another machine's, or in a new
// container our own. Returns how many. Failures are passed over.
int64_t remove_temporaries(const std::filesystem::path& parent);

}  // namespace snug
