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

// Whether it happens while others get a turn: to sleep and be woken takes longer than most of what is waited for.
template <class Happens>
bool soon(std::unique_lock<std::mutex>& lock, const Happens& happens) {
  constexpr int kTurns = 30;
  for (int turn = 0; turn < kTurns; ++turn) {
    if (happens()) return true;
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  return happens();
}

}  // namespace

CommLane::CommLane(RankRings& ranks) : ranks_(ranks), thread_(quiet_thread([this] { work(); })) {}

CommLane::~CommLane() {
  if (!idle()) ranks_.fail();  // or it would wait for others that wait for this rank
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  to_do_.notify_all();
  thread_.join();
}

void CommLane::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto is_asked = [&] { return ends_ || (asked_ > done_ && !busy_); };
    if (!soon(lock, is_asked)) to_do_.wait(lock, is_asked);
    if (ends_) return;
    run_next(lock);
    changed_.notify_all();
  }
}

// The first that was asked for and is not done, by whichever thread finds that nobody is at work.
void CommLane::run_next(std::unique_lock<std::mutex>& lock) {
  busy_ = true;
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
  busy_ = false;
  sent_ += sent;
  ++done_;
  if (!error) return;
  error_ = error;
  done_ = asked_ = UINT64_MAX;  // nobody waits for anything any more
}

void CommLane::begin(const Collective& collective, int depth) {
  if (is_full()) wait_until_done(seen_done_ + 1);
  flights_[begun_ % kMostFlights] = {collective, depth};
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  asked_ = ++begun_;
}

void CommLane::start() {
  if (started_ == begun_) return;
  started_ = begun_;
  to_do_.notify_one();
}

void CommLane::wait_until_done(uint64_t number) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point from = Clock::now();
  std::unique_lock lock(mutex_);
  while (done_ < number) {
    if (busy_) {
      if (!soon(lock, [&] { return done_ >= number || !busy_; }))
        changed_.wait(lock, [&] { return done_ >= number || !busy_; });
    } else {
      run_next(lock);
    }
  }
  if (error_) std::rethrow_exception(error_);
  seen_done_ = done_;
  started_ = std::max(started_, seen_done_);
  if (started_ > done_ && !busy_) to_do_.notify_one();  // what was started before goes on
  sent_bytes_ = sent_;
  waited_ += std::chrono::duration<double>(Clock::now() - from).count();
}

// They are done in their order: with the last that matters all before it.
template <class Meets>
uint64_t CommLane::last_where(const Meets& matters) const {
  for (uint64_t last = begun_; last > seen_done_; --last)
    if (matters(flight(last - 1))) return last;
  return 0;
}

uint64_t CommLane::last_on(const std::byte* memory, int64_t bytes, bool writes) const {
  return last_where([&](const Flight& f) { return meets(f.collective, memory, bytes, writes); });
}

uint64_t CommLane::last_of_depth(int depth) const {
  return last_where([&](const Flight& f) { return f.depth >= depth; });
}

void CommLane::wait_for(const std::byte* memory, int64_t bytes, bool writes) {
  if (const uint64_t number = last_on(memory, bytes, writes); number > 0) wait_until_done(number);
}

void CommLane::wait_for_depth(int depth) {
  if (const uint64_t number = last_of_depth(depth); number > 0) wait_until_done(number);
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

void CommLanes::start() {
  for (CommLane* lane : all_) lane->start();
}

// Before one is waited for, which may depend on what the others bring to other ranks.
void CommLanes::start_others(const CommLane& than) {
  for (CommLane* other : all_)
    if (other != &than) other->start();
}

void CommLanes::begin(const Collective& collective, int depth) {
  CommLane& lane = lane_of(collective.group, collective.kind);
  if (lane.is_full()) start_others(lane);
  lane.begin(collective, depth);
}

void CommLanes::wait(CommLane& lane, uint64_t number) {
  if (number == 0) return;
  start_others(lane);
  lane.wait_until_done(number);
}

void CommLanes::wait_for(const std::byte* memory, int64_t bytes, bool writes) {
  for (CommLane* lane : all_)
    if (!lane->idle()) wait(*lane, lane->last_on(memory, bytes, writes));
}

void CommLanes::wait_for_depth(int depth) {
  for (CommLane* lane : all_) wait(*lane, lane->last_of_depth(depth));
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
