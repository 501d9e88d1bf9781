#pragma once
// Ranks on several machines reach each other through MPI, whose library a module brings in (comm/mpi): a program without it
// starts all the same.

#include <memory>

#include "comm/ring.h"

namespace snug {

// Joins the run that mpirun or srun started. Throws Error where the module or MPI is not there. Once in a process.
std::unique_ptr<Channel> make_mpi_channel();

}  // namespace snug
