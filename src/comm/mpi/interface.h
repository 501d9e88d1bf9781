#pragma once
// What the module over MPI offers, in C, so that a program that opens it at run time knows no MPI.

#include <cstdint>

extern "C" {

// Seconds after which a rank that says nothing is lost.
enum { kSnugMpiSilence = 20 };

enum : int64_t { kSnugMpiFailed = -1, kSnugMpiTold = -2 };

struct SnugMpi {
  // Joins the run that mpirun or srun started. False if that fails.
  bool (*join)(int64_t* rank, int64_t* ranks);
  // See Channel::exchange; rings do not mix. False if MPI gives an error.
  bool (*exchange)(int ring, int64_t next, const void* sent, int64_t sent_bytes, int64_t previous, void* received,
                   int64_t received_bytes);
  // Why exchange had no success: a rank that has not been heard of; else kSnugMpiTold where this rank or another has given
  // up and says why, or kSnugMpiFailed.
  int64_t (*lost)();
  // From now on exchange ends at once, without success, on all ranks.
  void (*give_up)();
  // Leaves the run: in order, which all ranks do together, or as it is, after which the process ends.
  void (*leave)(bool in_order);
};

// The one symbol of the module.
const SnugMpi* snug_mpi();
}
