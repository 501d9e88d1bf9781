#pragma once
// The communication lane of a run: collectives that go on while ops compute, one after the other in the order in which they
// were begun, which is the same for all ranks. Whoever is about to use what one works on waits for it first, and does itself
// what the lane's thread has not begun: to wake a thread takes longer than many a message. That thread mostly sleeps until
// something arrives.

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "comm/rank_rings.h"
#include "op/kind.h"

namespace snug {

struct Collective {
  OpKind kind = OpKind::all_reduce;
  RankGroup group = RankGroup::all;
  DType dtype = DType::f32;
  std::span<std::byte> x, out, staging;  // as the communicator takes them
  bool accumulate = false;
};

class CommLane {
 public:
  // `ranks`, and the memory that collectives work in, must outlive it; nobody else uses `ranks` while the lane is at work.
  explicit CommLane(RankRings& ranks);
  CommLane(const CommLane&) = delete;
  CommLane& operator=(const CommLane&) = delete;
  // What is still on its way is given up, with the run of all ranks.
  ~CommLane();

  // `depth`: of the region that it belongs to. Waits only where too many are on their way. Each of these throws what a
  // collective threw, RankLost above all.
  void begin(const Collective& collective, int depth);
  // The lane's thread goes on with what was begun: whoever began it is about to do something else.
  void start();
  // Until none is at work on these bytes; who only reads them need not wait for who does.
  void wait_for(const std::byte* memory, int64_t bytes, bool writes);
  // Until all of regions of this depth and deeper are done.
  void wait_for_depth(int depth);
  void wait_for_all() { wait_until_done(begun_); }

  // The same in two parts: how many must be done, 0 where none need be; until they are.
  uint64_t last_on(const std::byte* memory, int64_t bytes, bool writes) const;
  uint64_t last_of_depth(int depth) const;
  uint64_t last() const { return idle() ? 0 : begun_; }
  void wait_until_done(uint64_t number);

  bool idle() const { return begun_ == seen_done_; }
  bool is_full() const { return begun_ - seen_done_ == kMostFlights; }  // the next that begins waits for the first
  double waited_seconds() const { return waited_; }
  int64_t sent_bytes() const { return sent_bytes_; }  // by those that were waited for

 private:
  static constexpr uint64_t kMostFlights = 64;
  struct Flight {
    Collective collective;
    int depth = 0;
  };

  const Flight& flight(uint64_t number) const { return flights_[number % kMostFlights]; }
  template <class Meets>
  uint64_t last_where(const Meets& matters) const;
  void work();
  void run_next(std::unique_lock<std::mutex>& lock);

  RankRings& ranks_;
  std::array<Flight, kMostFlights> flights_{};
  uint64_t begun_ = 0, started_ = 0, seen_done_ = 0;  // the run's own count
  double waited_ = 0;
  int64_t sent_bytes_ = 0;

  std::mutex mutex_;                         // of what follows
  std::condition_variable to_do_, changed_;  // the thread waits for the one, the run for the other
  uint64_t asked_ = 0, done_ = 0;
  bool busy_ = false;  // one of the two is at work
  int64_t sent_ = 0;
  bool ends_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses all of the above
};

// The lanes of a rank: what goes along stages of a pipeline, one way and the other, and what is sent and what received, has
// lanes of its own, so that none waits for another or for what ranks do together.
class CommLanes {
 public:
  // As CommLane.
  explicit CommLanes(RankRings& ranks);

  void begin(const Collective& collective, int depth);
  // Of all lanes.
  void start();
  void wait_for(const std::byte* memory, int64_t bytes, bool writes);
  void wait_for_depth(int depth);
  // All that was begun on the lane of such a collective.
  void wait_for_all_of(RankGroup group, OpKind kind) {
    CommLane& lane = lane_of(group, kind);
    wait(lane, lane.last());
  }

  bool idle() const;
  double waited_seconds() const;
  int64_t sent_bytes() const;

 private:
  CommLane& lane_of(RankGroup group, OpKind kind);
  void start_others(const CommLane& than);
  void wait(CommLane& lane, uint64_t number);

  CommLane together_;
  struct OneWay {
    explicit OneWay(RankRings& ranks) : sent(ranks), received(ranks) {}
    CommLane sent, received;
  };
  std::optional<OneWay> ahead_, back_;
  std::vector<CommLane*> all_;
};

}  // namespace snug
