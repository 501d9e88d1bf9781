#pragma once
// Ranks on several machines reach each other through MPI, whose library a module brings in (comm/mpi): a program without it
// starts all the same.

#include <memory>

#include "base/rank_group.h"
#include "comm/ring.h"

namespace snug {

// A rank's end in the ring of a group, in the run that mpirun or srun started, which the first one joins and leaves; it must
// go last. Throws Error where the module or MPI is not there.
std::unique_ptr<Channel> make_mpi_channel(const RankMesh& mesh, RankGroup group);

}  // namespace snug
