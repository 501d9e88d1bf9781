// Ranks on several machines, over MPI: point-to-point alone, since sums in a fixed order are the ring's.

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/mpi/interface.h"

namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;  // of a message: MPI counts in int

std::atomic<bool> gave_up{false};
std::atomic<int64_t> lost_rank{kSnugMpiFailed};
std::mutex one_at_a_time;  // the lanes of a rank call from threads of their own, and none of the calls waits

void nap(long nanoseconds) {
  const timespec pause{.tv_sec = 0, .tv_nsec = nanoseconds};
  nanosleep(&pause, nullptr);
}

// Every rank tells the next each second that it lives: what computes for minutes says nothing else. Who hears nothing for
// long, or that another has given up, gives up and hands that on.
class Heart {
 public:
  Heart(int rank, int ranks) : next_((rank + 1) % ranks), previous_((rank + ranks - 1) % ranks), thread_(quiet_thread()) {}
  Heart(const Heart&) = delete;
  Heart& operator=(const Heart&) = delete;
  ~Heart() {
    ends_.store(true);
    thread_.join();
  }

 private:
  static constexpr int kTag = 1000;  // above those of rings
  static constexpr long kNap = 100'000'000;
  static constexpr int kNapsPerBeat = 10;
  enum Word : int { alive, given_up };

  // Signals are the main thread's to answer.
  std::thread quiet_thread() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread([this] { beat(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  }

  // Naps are counted, not seconds: who is stopped together with the others has not napped meanwhile.
  void beat() {
    int silent = 0;
    for (int naps = 0; !ends_.load(); ++naps) {
      {
        const std::lock_guard lock(one_at_a_time);
        silent = hears() ? 0 : silent + 1;
        if (silent == kSnugMpiSilence * kNapsPerBeat) give_up_for(previous_);
        if (gave_up.load() && !handed_on_) handed_on_ = says(given_up);
        if (naps % kNapsPerBeat == 0) says(alive);
      }
      nap(kNap);
    }
    const std::lock_guard lock(one_at_a_time);
    if (hearing_ == MPI_REQUEST_NULL) return;
    MPI_Cancel(&hearing_);
    MPI_Request_free(&hearing_);
  }

  static void give_up_for(int64_t rank) {
    if (gave_up.load()) return;
    lost_rank.store(rank);
    gave_up.store(true);
  }

  // Whether the rank before has said something.
  bool hears() {
    if (hearing_ == MPI_REQUEST_NULL &&
        MPI_Irecv(&heard_, 1, MPI_INT, previous_, kTag, MPI_COMM_WORLD, &hearing_) != MPI_SUCCESS)
      return false;
    int done = 0;
    if (MPI_Test(&hearing_, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done == 0) return false;
    if (heard_ == given_up) give_up_for(kSnugMpiTold);
    return true;
  }

  // Not while the last word is on its way.
  bool says(int word) {
    int done = 1;
    if (saying_ != MPI_REQUEST_NULL) MPI_Test(&saying_, &done, MPI_STATUS_IGNORE);
    if (done == 0) return false;
    said_ = word;
    return MPI_Isend(&said_, 1, MPI_INT, next_, kTag, MPI_COMM_WORLD, &saying_) == MPI_SUCCESS;
  }

  const int next_, previous_;
  int heard_ = 0, said_ = 0;
  MPI_Request hearing_ = MPI_REQUEST_NULL, saying_ = MPI_REQUEST_NULL;
  bool handed_on_ = false;
  std::atomic<bool> ends_{false};
  std::thread thread_;  // last: it uses all of the above
};

std::optional<Heart> heart;

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
  if (all > 1) heart.emplace(own, all);
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

int64_t lost() { return lost_rank.load(); }

void give_up() {
  if (!gave_up.load()) lost_rank.store(kSnugMpiTold);
  gave_up.store(true);
}

// Hearts beat until all have come to this.
void leave(bool in_order) {
  if (in_order) {
    MPI_Request request = MPI_REQUEST_NULL;
    const auto all_came = [&] {
      int done = 0;
      const std::lock_guard lock(one_at_a_time);
      return MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
    };
    {
      const std::lock_guard lock(one_at_a_time);
      MPI_Ibarrier(MPI_COMM_WORLD, &request);
    }
    while (!all_came() && !gave_up.load()) nap(1'000'000);
  }
  heart.reset();
  if (in_order && !gave_up.load()) MPI_Finalize();
}

constexpr SnugMpi kTable{join, exchange, lost, give_up, leave};

}  // namespace

extern "C" __attribute__((visibility("default"))) const SnugMpi* snug_mpi() { return &kTable; }
