#pragma once
// The ranks of a run as their launcher tells of them, and how they meet.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "comm/rank_rings.h"
#include "formats/file.h"

namespace snug {

inline constexpr const char* kOwnLauncher = "snug";

struct World {
  int64_t rank = 0, ranks = 1;
  int64_t local_ranks = 1;  // on this machine
  std::string launcher;     // "snug", "mpirun", "torchrun", "srun"
  bool over_mpi() const;    // some are on other machines, and the launcher is one of MPI's
  std::string job;          // the same for all ranks of a run, and for no other on this machine
};

// What the environment says: snug's own variables, Open MPI's, torchrun's, Slurm's. None: this process was started alone.
// Throws Error for numbers that make no sense.
std::optional<World> launched_world();

// Waits for the others, half a minute at most on one machine; several need MPI. Throws Error if one does not come.
std::unique_ptr<RankRings> meet(const World& world, const RankMesh& mesh);

// What snug gives to each process it starts itself: memory that they share, and their numbers.
class OwnLaunch {
 public:
  explicit OwnLaunch(int64_t ranks);
  // Sets the environment that launched_world() reads, for the process that is to be rank `rank`.
  void set_environment(int64_t rank) const;

 private:
  int64_t ranks_;
  UniqueFd shared_;
};

}  // namespace snug
