#pragma once
// The executors of a run: the plan's, and one for each shorter bucket length that its data are padded to, all in one arena.

#include <list>
#include <optional>
#include <span>

#include "plan/bucket.h"
#include "run/executor.h"

namespace snug {

class BucketExecutors {
 public:
  // Commits the plan's homes, the far one in a file `pages`, and prepares a Program for each of `lengths`, ascending, that
  // is shorter than the plan's. A length whose layout would not fit is left out: its rows run in the next longer one.
  BucketExecutors(const Plan& plan, std::span<const int64_t> lengths, const std::filesystem::path& pages = {});

  // See Executor::join; the lanes are theirs.
  void join(RankRings& ranks) {
    lane_.emplace(ranks);
    each([&](Executor& executor) { executor.join(ranks, *lane_); });
  }
  // Null: they run alone.
  const CommLanes* lane() const { return lane_ ? &*lane_ : nullptr; }

  Executor& of_plan() { return whole_; }
  // The executor with the shortest rows that hold `tokens`.
  Executor& holding(int64_t tokens);

  template <class Visit>
  void each(Visit&& visit) {
    visit(whole_);
    for (Bucket& bucket : buckets_) visit(bucket.executor);
  }

 private:
  struct Bucket {
    Bucket(BucketProgram made, const Executor& owner);
    BucketProgram made;
    Executor executor;
  };

  Executor whole_;
  std::list<Bucket> buckets_;      // ascending; an Executor stays where it is
  std::optional<CommLanes> lane_;  // the first to go: it works in their memory
};

}  // namespace snug
