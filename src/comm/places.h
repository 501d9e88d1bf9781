#pragma once
// Where ranks see a directory: all of them one, on a file system that their machines share, or each machine one of its own.
// The first rank's is the one that lasts.

#include <filesystem>
#include <vector>

#include "comm/communicator.h"

namespace snug {

class Places {
 public:
  Places() = default;  // of a process that runs alone
  // Looks who sees whose `directory`, which is made where it is missing. All ranks call it; throws Error.
  Places(Communicator& ranks, const std::filesystem::path& directory);

  // The first of those who see what this rank sees: it makes what they write into.
  int64_t keeper() const { return keepers_[static_cast<size_t>(rank_)]; }
  bool keeps() const { return keeper() == rank_; }

  // All ranks call each of these; they throw Error.

  // The first rank's directory `from` as this rank sees it: itself, or `to`, which a keeper fills with a copy.
  std::filesystem::path bring(Communicator& ranks, const std::filesystem::path& from, const std::filesystem::path& to) const;
  // A file that the ranks of each place have written their bytes of, zeros elsewhere, becomes whole in the first's.
  void merge(Communicator& ranks, const std::filesystem::path& file) const;

 private:
  int64_t last_keeper() const;

  int64_t rank_ = 0;
  std::vector<int64_t> keepers_ = {0};  // of each rank
};

}  // namespace snug
