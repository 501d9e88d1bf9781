// Ranks on several machines, over MPI: point-to-point alone, since sums in a fixed order are the ring's.

#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "comm/mpi/interface.h"

namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;  // of a message: MPI counts in int

std::atomic<bool> gave_up{false};
std::mutex one_at_a_time;  // the lanes of a rank call from threads of their own, and none of the calls waits

bool join(int64_t* rank, int64_t* ranks) {
  // Long messages sent one after the other: with remote puts over TCP two hosts that send to each other take turns, at half
  // the rate (67 of 119 MB/s were measured).
  setenv("OMPI_MCA_btl_tcp_flags", "1", 0);
  int given = 0, own = 0, all = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS || given < MPI_THREAD_SERIALIZED)
    return false;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  *rank = own;
  *ranks = all;
  return true;
}

// MPI waits by spinning, which takes a core from those that compute: it is asked now and then instead, less often the longer
// nothing comes.
bool wait_for_both(MPI_Request* requests) {
  constexpr long kShortest = 5'000, kLongest = 200'000;  // nanoseconds
  timespec pause{.tv_sec = 0, .tv_nsec = kShortest};
  for (;;) {
    int done = 0;
    {
      const std::lock_guard lock(one_at_a_time);
      if (MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS) return false;
    }
    if (done != 0) return true;
    if (gave_up.load()) return false;
    nanosleep(&pause, nullptr);
    pause.tv_nsec = std::min(kLongest, pause.tv_nsec * 2);
  }
}

// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): it knows no MPI_Testall
bool exchange(int ring, int64_t next, const void* sent, int64_t sent_bytes, int64_t previous, void* received,
              int64_t received_bytes) {
  const auto* from = static_cast<const char*>(sent);
  auto* to = static_cast<char*>(received);
  while (sent_bytes > 0 || received_bytes > 0) {
    const int64_t out = std::min(sent_bytes, kMostBytes), in = std::min(received_bytes, kMostBytes);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    {
      const std::lock_guard lock(one_at_a_time);
      if (in > 0 && MPI_Irecv(to, static_cast<int>(in), MPI_BYTE, static_cast<int>(previous), ring, MPI_COMM_WORLD,
                              &requests[0]) != MPI_SUCCESS)
        return false;
      if (out > 0 && MPI_Isend(from, static_cast<int>(out), MPI_BYTE, static_cast<int>(next), ring, MPI_COMM_WORLD,
                               &requests[1]) != MPI_SUCCESS)
        return false;
    }
    if (!wait_for_both(requests)) return false;
    from += out;
    to += in;
    sent_bytes -= out;
    received_bytes -= in;
  }
  return true;
}

// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

void give_up() { gave_up.store(true); }

void leave() { MPI_Finalize(); }

constexpr SnugMpi kTable{join, exchange, give_up, leave};

}  // namespace

extern "C" __attribute__((visibility("default"))) const SnugMpi* snug_mpi() { return &kTable; }
