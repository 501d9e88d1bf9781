#include "run/comm_lane.h"

#include <signal.h>

#include <algorithm>
#include <chrono>

namespace snug {

namespace {

bool shares_memory(std::span<const std::byte> a, const std::byte* memory, int64_t bytes) {
  return !a.empty() && memory < a.data() + a.size() && a.data() < memory + bytes;
}

bool writes_x(const Collective& collective) {
  return collective.kind != OpKind::all_gather && collective.kind != OpKind::pass_on && collective.kind != OpKind::send;
}

// Whether the collective writes what is about to be used, or uses what is about to be written.
bool meets(const Collective& c, const std::byte* memory, int64_t bytes, bool writes) {
  return shares_memory(c.out, memory, bytes) || shares_memory(c.staging, memory, bytes) ||
         ((writes || writes_x(c)) && shares_memory(c.x, memory, bytes));
}

void run(const RankRings& rings, const Collective& c) {
  Communicator& ranks = rings.of(c.group);
  if (c.kind == OpKind::all_reduce) return ranks.all_reduce(c.x, c.dtype, c.staging);
  if (c.kind == OpKind::all_gather) return ranks.all_gather(c.x, c.out);
  if (c.kind == OpKind::pass_on) return ranks.pass_on(c.x, c.out);
  if (c.kind == OpKind::send) return ranks.send(c.x);
  if (c.kind == OpKind::receive) return ranks.receive(c.x);
  ranks.reduce_scatter(c.x, c.dtype, c.out, c.accumulate, c.staging);
}

// Signals are the main thread's to answer.
std::thread quiet_thread(auto&& work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(work);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

CommLane::CommLane(RankRings& ranks) : ranks_(ranks), thread_(quiet_thread([this] { work(); })) {}

CommLane::~CommLane() {
  if (!idle()) ranks_.fail();  // or it would wait for others that wait for this rank
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CommLane::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || asked_ > done_; });
    if (ends_) return;
    const Collective collective = flight(done_).collective;
    lock.unlock();
    std::exception_ptr error;
    const Communicator& ring = ranks_.of(collective.group);
    const int64_t before = ring.sent_bytes();
    try {
      run(ranks_, collective);
    } catch (...) {
      error = std::current_exception();
    }
    // While a neighbour's bytes come, a lane of its own may send on the same ring.
    const int64_t sent = collective.kind == OpKind::receive ? 0 : ring.sent_bytes() - before;
    lock.lock();
    sent_ += sent;
    ++done_;
    if (error) {
      error_ = error;
      done_ = asked_ = UINT64_MAX;  // nobody waits for anything any more
    }
    changed_.notify_all();
    if (error) return;
  }
}

void CommLane::begin(const Collective& collective, int depth) {
  if (begun_ - seen_done_ == kMostFlights) wait_until_done(seen_done_ + 1);
  flight(begun_) = {collective, depth};
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    asked_ = ++begun_;
  }
  changed_.notify_all();
}

void CommLane::wait_until_done(uint64_t number) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point from = Clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number; });
  if (error_) std::rethrow_exception(error_);
  seen_done_ = done_;
  sent_bytes_ = sent_;
  waited_ += std::chrono::duration<double>(Clock::now() - from).count();
}

// They are done in their order: with the last that matters all before it.
template <class Meets>
void CommLane::wait_where(const Meets& matters) {
  for (uint64_t last = begun_; last > seen_done_; --last)
    if (matters(flight(last - 1))) return wait_until_done(last);
}

void CommLane::wait_for(const std::byte* memory, int64_t bytes, bool writes) {
  wait_where([&](const Flight& f) { return meets(f.collective, memory, bytes, writes); });
}

void CommLane::wait_for_depth(int depth) {
  wait_where([&](const Flight& f) { return f.depth >= depth; });
}

CommLanes::CommLanes(RankRings& ranks) : together_(ranks), all_{&together_} {
  if (ranks.mesh().pipeline == 1) return;
  for (std::optional<OneWay>* way : {&ahead_, &back_}) {
    way->emplace(ranks);
    all_.insert(all_.end(), {&(*way)->sent, &(*way)->received});
  }
}

CommLane& CommLanes::lane_of(RankGroup group, OpKind kind) {
  if (group != RankGroup::ahead && group != RankGroup::back) return together_;
  OneWay& way = group == RankGroup::ahead ? *ahead_ : *back_;
  return kind == OpKind::send ? way.sent : way.received;
}

void CommLanes::wait_for(const std::byte* memory, int64_t bytes, bool writes) {
  for (CommLane* lane : all_)
    if (!lane->idle()) lane->wait_for(memory, bytes, writes);
}

void CommLanes::wait_for_depth(int depth) {
  for (CommLane* lane : all_) lane->wait_for_depth(depth);
}

bool CommLanes::idle() const {
  return std::all_of(all_.begin(), all_.end(), [](const CommLane* lane) { return lane->idle(); });
}

double CommLanes::waited_seconds() const {
  double sum = 0;
  for (const CommLane* lane : all_) sum += lane->waited_seconds();
  return sum;
}

int64_t CommLanes::sent_bytes() const {
  int64_t sum = 0;
  for (const CommLane* lane : all_) sum += lane->sent_bytes();
  return sum;
}

}  // namespace snug
