// Collectives beside compute: begun in order, waited for where bytes meet, given up when another rank is lost.

#include "run/comm_lane.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/local/shared_memory.h"
#include "comm/ring.h"

namespace snug::testing {

namespace {

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

// Ranks as threads; each has a lane of its own. What one throws is told by whether it threw.
template <class Work>
std::vector<bool> run_lanes(int64_t ranks, const Work& work) {
  std::vector<std::byte> shared(static_cast<size_t>(shared_bytes(ranks)));
  std::vector<char> threw(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const RankMesh mesh{ranks, ranks};
      RankRings rings(mesh, rank, [&](RankGroup group) { return make_mailbox_channel(shared, mesh, group, rank); });
      Communicator* const ring = &rings.all();
      try {
        CommLane lane(rings);
        work(*ring, lane);
      } catch (const Error&) {
        ring->fail();
        threw[static_cast<size_t>(rank)] = 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  return {threw.begin(), threw.end()};
}

Collective gather(std::vector<float>& whole, int64_t rank, size_t part) {
  const std::span<std::byte> all = bytes_of(whole);
  return {.kind = OpKind::all_gather,
          .dtype = DType::f32,
          .x = all.subspan(static_cast<size_t>(rank) * part * 4, part * 4),
          .out = all,
          .staging = {}};
}

TEST(CommLane, many_at_once_arrive_in_their_order_while_others_compute) {
  constexpr int64_t kRanks = 3;
  constexpr size_t kPart = 5000;
  const std::vector<bool> threw = run_lanes(kRanks, [&](Communicator& ring, CommLane& lane) {
    std::mt19937 random(static_cast<unsigned>(ring.rank()));
    std::vector<std::vector<float>> windows(4, std::vector<float>(kPart * kRanks));
    std::vector<float> x(kPart * kRanks), own(kPart), staging(777);
    double work = 0;
    for (int step = 0; step < 200; ++step) {
      std::vector<float>& window = windows[static_cast<size_t>(step) % windows.size()];
      lane.wait_for(std::as_bytes(std::span(window)).data(), static_cast<int64_t>(window.size() * 4), true);
      for (size_t i = 0; i < kPart; ++i)
        window[static_cast<size_t>(ring.rank()) * kPart + i] = static_cast<float>(step * 10 + ring.rank());
      lane.begin(gather(window, ring.rank(), kPart), 1);
      if (step % 3 == 0) {
        lane.wait_for(std::as_bytes(std::span(x)).data(), static_cast<int64_t>(x.size() * 4), true);
        std::fill(x.begin(), x.end(), static_cast<float>(step));
        lane.wait_for(std::as_bytes(std::span(own)).data(), static_cast<int64_t>(own.size() * 4), true);
        lane.begin({.kind = OpKind::reduce_scatter,
                    .dtype = DType::f32,
                    .x = bytes_of(x),
                    .out = bytes_of(own),
                    .staging = bytes_of(staging),
                    .accumulate = false},
                   2);
        lane.wait_for_depth(2);
        ASSERT_EQ(own.front(), static_cast<float>(step * kRanks));
        ASSERT_EQ(own.back(), static_cast<float>(step * kRanks));
      }
      for (unsigned i = 0; i < random() % 20'000; ++i) work += i;
      lane.wait_for(std::as_bytes(std::span(window)).data(), 4, false);
      for (int64_t rank = 0; rank < kRanks; ++rank)
        ASSERT_EQ(window[static_cast<size_t>(rank) * kPart + kPart / 2], static_cast<float>(step * 10 + rank)) << work;
    }
    lane.wait_for_depth(0);
    EXPECT_TRUE(lane.idle());
    EXPECT_EQ(lane.sent_bytes(), static_cast<int64_t>((200 + 67) * (kRanks - 1) * kPart * 4));
  });
  EXPECT_EQ(threw, std::vector<bool>(kRanks, false));
}

// While one block is read the next one comes beside it; only who writes where a block is sent from waits for that.
TEST(CommLane, blocks_go_round_a_ring_in_two_windows_while_they_are_read) {
  constexpr int64_t kRanks = 4;
  constexpr size_t kBlock = 30'000;
  const std::vector<bool> threw = run_lanes(kRanks, [&](Communicator& ring, CommLane& lane) {
    std::vector<std::vector<float>> windows(2, std::vector<float>(kBlock));
    const auto at = [&](int64_t step) -> std::vector<float>& { return windows[static_cast<size_t>(step) % 2]; };
    const auto wait = [&](std::vector<float>& window, bool writes) {
      lane.wait_for(bytes_of(window).data(), static_cast<int64_t>(window.size() * 4), writes);
    };
    for (int64_t round = 0; round < 50; ++round) {
      wait(at(0), true);
      std::fill(at(0).begin(), at(0).end(), static_cast<float>(ring.rank()));
      for (int64_t step = 0; step < kRanks; ++step) {
        lane.begin({.kind = OpKind::pass_on, .x = bytes_of(at(step)), .out = bytes_of(at(step + 1)), .staging = {}}, 1);
        const auto expected = static_cast<float>((ring.rank() - step + kRanks) % kRanks);
        wait(at(step), false);
        for (const float value : at(step)) ASSERT_EQ(value, expected) << step;
      }
    }
    lane.wait_for_depth(0);
    EXPECT_EQ(lane.sent_bytes(), static_cast<int64_t>(50 * kRanks * kBlock * 4));
  });
  EXPECT_EQ(threw, std::vector<bool>(kRanks, false));
}

TEST(CommLane, more_than_it_holds_wait_for_the_first) {
  run_lanes(2, [](Communicator& ring, CommLane& lane) {
    std::vector<std::vector<float>> windows(300, std::vector<float>(20));
    for (std::vector<float>& window : windows) {
      window[static_cast<size_t>(ring.rank()) * 10] = 7;
      lane.begin(gather(window, ring.rank(), 10), 1);
    }
    lane.wait_for_depth(1);
    for (const std::vector<float>& window : windows) ASSERT_EQ(window[static_cast<size_t>(1 - ring.rank()) * 10], 7);
  });
}

TEST(CommLane, a_lost_rank_ends_what_is_on_its_way_and_what_waits_for_it) {
  std::vector<std::vector<float>> windows(3, std::vector<float>(300'000));  // they outlive the lanes
  const std::vector<bool> threw = run_lanes(3, [&](Communicator& ring, CommLane& lane) {
    std::vector<float>& window = windows[static_cast<size_t>(ring.rank())];
    lane.begin(gather(window, ring.rank(), 100'000), 1);
    if (ring.rank() == 1) throw Error("the disk is full");  // with one on its way
    for (int i = 0; i < 5; ++i) lane.begin(gather(window, ring.rank(), 100'000), 1);
    lane.wait_for_depth(0);
  });
  EXPECT_EQ(threw, std::vector<bool>(3, true));
}

// Two stages that each begin to receive, and then send until their lane of what is sent is full, before either has waited:
// who fills a lane lets the others start, or both would send to somebody who does not listen yet.
TEST(CommLanes, one_that_is_full_lets_the_others_start) {
  constexpr int kMessages = 65;  // one more than a lane holds
  const RankMesh mesh{.ranks = 2, .pipeline = 2};
  std::vector<std::byte> shared(static_cast<size_t>(shared_bytes(2)));
  std::vector<std::thread> threads;
  for (int64_t stage = 0; stage < 2; ++stage)
    threads.emplace_back([&, stage] {
      RankRings rings(mesh, stage, [&](RankGroup group) { return make_mailbox_channel(shared, mesh, group, stage); });
      const RankGroup to = stage == 0 ? RankGroup::ahead : RankGroup::back,
                      from = stage == 0 ? RankGroup::back : RankGroup::ahead;
      std::vector<float> mine(300'000, static_cast<float>(stage + 1));  // no mailbox holds it
      std::vector<std::vector<float>> theirs(kMessages, std::vector<float>(mine.size()));
      CommLanes lanes(rings);
      const auto receive = [&](std::vector<float>& x) {
        lanes.begin({.kind = OpKind::receive, .group = from, .x = bytes_of(x), .out = {}, .staging = {}}, 1);
      };
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // by then the lanes' threads sleep, and must be told
      receive(theirs[0]);
      for (int i = 0; i < kMessages; ++i)
        lanes.begin({.kind = OpKind::send, .group = to, .x = bytes_of(mine), .out = {}, .staging = {}}, 0);
      for (int i = 1; i < kMessages; ++i) receive(theirs[static_cast<size_t>(i)]);
      lanes.wait_for_depth(0);
      for (const std::vector<float>& x : theirs) {
        ASSERT_EQ(x.front(), static_cast<float>(2 - stage));
        ASSERT_EQ(x.back(), static_cast<float>(2 - stage));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// Stages of a pipeline, one forward one backward: messages that no mailbox holds go both ways at once, and nobody waits for
// who waits for him.
TEST(CommLanes, stages_hand_on_and_back_while_all_sum) {
  constexpr int64_t kStages = 4, kBatches = 9;
  constexpr size_t kNumbers = 300'000;
  const RankMesh mesh{.ranks = kStages, .pipeline = kStages};
  std::vector<std::byte> shared(static_cast<size_t>(shared_bytes(kStages)));
  std::vector<std::thread> threads;
  for (int64_t stage = 0; stage < kStages; ++stage)
    threads.emplace_back([&, stage] {
      RankRings rings(mesh, stage, [&](RankGroup group) { return make_mailbox_channel(shared, mesh, group, stage); });
      std::vector<float> back(kNumbers), sum(1000), staging(100);
      std::vector<std::vector<float>> ahead(kStages, std::vector<float>(kNumbers));
      CommLanes lanes(rings);
      const auto pair = [&](OpKind kind, RankGroup group, std::vector<float>& x) {
        lanes.wait_for(bytes_of(x).data(), static_cast<int64_t>(kNumbers * 4), kind == OpKind::receive);
        lanes.begin({.kind = kind, .group = group, .x = bytes_of(x), .out = {}, .staging = {}},
                    kind == OpKind::send ? 0 : 1);
        if (kind == OpKind::receive) lanes.wait_for_all_of(group, kind);
      };
      const auto forward = [&](int64_t batch) {
        std::vector<float>& x = ahead[static_cast<size_t>(batch % kStages)];
        if (stage > 0) pair(OpKind::receive, RankGroup::ahead, x);
        lanes.wait_for(bytes_of(x).data(), static_cast<int64_t>(kNumbers * 4), true);
        if (stage == 0) std::fill(x.begin(), x.end(), static_cast<float>(100 * batch));
        ASSERT_EQ(x.front(), static_cast<float>(100 * batch + stage));
        ASSERT_EQ(x.back(), static_cast<float>(100 * batch + stage));
        for (float& value : x) ++value;
        if (stage + 1 < kStages) pair(OpKind::send, RankGroup::ahead, x);
      };
      const auto backward = [&](int64_t batch) {
        if (stage + 1 < kStages) pair(OpKind::receive, RankGroup::back, back);
        lanes.wait_for(bytes_of(back).data(), static_cast<int64_t>(kNumbers * 4), true);
        if (stage + 1 == kStages) std::fill(back.begin(), back.end(), static_cast<float>(-100 * batch));
        ASSERT_EQ(back.front(), static_cast<float>(-100 * batch - (kStages - 1 - stage)));
        for (float& value : back) --value;
        if (stage > 0) pair(OpKind::send, RankGroup::back, back);
      };
      const int64_t warm = kStages - 1 - stage;
      for (int step = 0; step < 3; ++step) {
        for (int64_t batch = 0; batch < warm; ++batch) forward(batch);
        for (int64_t batch = 0; batch + warm < kBatches; ++batch) {
          forward(batch + warm);
          backward(batch);
        }
        for (int64_t batch = kBatches - warm; batch < kBatches; ++batch) backward(batch);
        std::fill(sum.begin(), sum.end(), 1.0F);
        lanes.begin({.kind = OpKind::all_reduce,
                     .group = RankGroup::pipeline,
                     .x = bytes_of(sum),
                     .out = {},
                     .staging = bytes_of(staging)},
                    1);
        lanes.wait_for_all_of(RankGroup::pipeline, OpKind::all_reduce);
        ASSERT_EQ(sum.back(), static_cast<float>(kStages));
      }
      lanes.wait_for_depth(0);
      EXPECT_TRUE(lanes.idle());
      const int64_t neighbours = (stage > 0 ? 1 : 0) + (stage + 1 < kStages ? 1 : 0);
      EXPECT_GE(lanes.sent_bytes(), static_cast<int64_t>(3 * kBatches * kNumbers * 4) * neighbours);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

}  // namespace snug::testing
