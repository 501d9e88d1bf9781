#pragma once
// What the module over MPI offers, in C, so that a program that opens it at run time knows no MPI.

#include <cstdint>

extern "C" {

struct SnugMpi {
  // Joins the run that mpirun or srun started. False if that fails.
  bool (*join)(int64_t* rank, int64_t* ranks);
  // See Channel::exchange; rings do not mix. False if MPI gives an error.
  bool (*exchange)(int ring, int64_t next, const void* sent, int64_t sent_bytes, int64_t previous, void* received,
                   int64_t received_bytes);
  // From now on exchange ends at once, without success.
  void (*give_up)();
  // Leaves it in order: all ranks call it.
  void (*leave)();
};

// The one symbol of the module.
const SnugMpi* snug_mpi();
}
