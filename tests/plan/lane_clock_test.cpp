// When ops of several lanes are done, against times reckoned by hand.

#include "plan/lane_clock.h"

#include <gtest/gtest.h>

namespace snug::testing {

namespace {

// A flat buffer on disk of a page a layer, and a window in memory of so many pages in turn.
struct Paged {
  Program program;
  TensorId far = kNone, window = kNone, result = kNone;

  explicit Paged(int64_t turns) {
    far = program.make("far", DType::u8, {16 * kFarAlignment}, Role::weight, Lifetime::run);
    program.storage(program.tensor(far).storage).home = Home::disk;
    program.tensor(far).shape = {kFarAlignment};
    program.tensor(far).layer_stride = kFarAlignment;
    window = program.make("window", DType::u8, {turns * kFarAlignment}, Role::weight);
    Tensor& view = program.tensor(window);
    view.shape = {kFarAlignment};
    view.layer_stride = turns > 1 ? kFarAlignment : 0;
    view.layer_turns = turns > 1 ? turns : 0;
    result = program.make("result", DType::u8, {1}, Role::temporary);
  }

  Op fetch() const { return Op{OpKind::page_in, Lane::copy_in}.reads(Slot::far, far).writes(Slot::window, window); }
  Op send() const { return Op{OpKind::page_out, Lane::copy_out}.writes(Slot::far, far).reads(Slot::window, window); }
  Op compute(Access access) const { return Op{OpKind::add}.with(Slot::a, access, window).writes(Slot::out, result); }
};

// Fetch 2, compute 3, layer after layer. One window: each fetch waits for the compute before, 2 + 3 a layer. Two: a layer is
// fetched while the one before computes, so that from the second on a layer takes 3.
TEST(LaneClock, two_windows_in_turn_hide_the_fetch_that_one_does_not) {
  for (const int64_t turns : {1, 2}) {
    const Paged paged(turns);
    LaneClock clock(paged.program);
    double waited = 0;
    for (int64_t layer = 0; layer < 6; ++layer) {
      clock.run(paged.fetch(), layer, 2);
      const LaneClock::Times times = clock.run(paged.compute(Access::read), layer, 3);
      waited += times.begin - times.free;
    }
    EXPECT_DOUBLE_EQ(clock.end(), turns == 1 ? 6 * 5 : 2 + 6 * 3);
    EXPECT_DOUBLE_EQ(waited, turns == 1 ? 6 * 2 : 2);
  }
}

// What one layer sends is not what the next one fetches, though both lie in one buffer: lanes of 4 each go on side by side,
// while compute of 1 waits for the fetch. The same layer's page waits for what was sent there.
TEST(LaneClock, a_fetch_waits_for_what_was_sent_to_its_own_place_alone) {
  const Paged paged(2);
  LaneClock clock(paged.program);
  for (int64_t layer = 0; layer < 4; ++layer) {
    clock.run(paged.fetch(), layer, 4);
    clock.run(paged.compute(Access::update), layer, 1);
    clock.run(paged.send(), layer, 4);
  }
  // Fetches of layers 0 and 1 end at 4 and 8; layer 0 is sent from 5 to 9, when its window is free for layer 2: 9 to 13,
  // computed at 14. Layer 1 is sent from 9 to 13, and so layer 3 fetched from 13 to 17, computed at 18, sent until 22.
  EXPECT_DOUBLE_EQ(clock.end(), 22);
  EXPECT_DOUBLE_EQ(clock.run(paged.fetch(), 3, 4).begin, 22);
}

// Of two windows that take turns one is passed on into the other while it is computed on: 4 each time, or 3 of compute.
TEST(LaneClock, a_block_comes_into_the_window_that_is_not_worked_on) {
  for (const double passing : {2.0, 4.0}) {
    Program program;
    const TensorId here = program.make("window", DType::u8, {2 * kFarAlignment}, Role::comm);
    program.tensor(here).shape = {kFarAlignment};
    program.tensor(here).chunk_stride = kFarAlignment;
    program.tensor(here).chunk_turns = 2;
    Tensor other = program.tensor(here);
    other.first_chunk = -1;
    const TensorId next = program.add_tensor(std::move(other)), result = program.make("result", DType::u8, {1}, Role::comm);
    LaneClock clock(program);
    for (int64_t step = 0; step < 5; ++step) {
      clock.run(Op{OpKind::pass_on, Lane::comm}.reads(Slot::x, here).writes(Slot::out, next), step, passing);
      clock.run(Op{OpKind::add}.reads(Slot::a, here).writes(Slot::out, result), step, 3);
    }
    EXPECT_DOUBLE_EQ(clock.end(), passing > 3 ? 5 * passing : 5 * 3);
  }
}

TEST(LaneClock, lanes_meet_where_they_are_told_to) {
  const Paged paged(2);
  LaneClock clock(paged.program);
  clock.run(paged.fetch(), 0, 5);
  clock.run(1);
  EXPECT_DOUBLE_EQ(clock.end(), 5);
  clock.meet();
  clock.run(1);
  EXPECT_DOUBLE_EQ(clock.end(), 6);
}

}  // namespace

}  // namespace snug::testing
