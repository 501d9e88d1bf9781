// Pages on their way: nobody overtakes them, and nobody sees half of one.

#include "run/page_lanes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "plan/layout.h"
#include "program/program.h"

namespace snug::testing {

namespace {

constexpr int64_t kPages = 24;

// A device's arena and a disk of so many pages each.
class Room {
 public:
  Room() {
    for (const Home home : {Home::device, Home::disk}) {
      const TensorId bytes = program_.make(name_of(home), DType::u8, {kPages * kFarAlignment}, Role::weight, Lifetime::run);
      program_.storage(program_.tensor(bytes).storage).home = home;
    }
    layout_ = lay_out(program_);
    homes.emplace(layout_, std::filesystem::temp_directory_path() / ("snug-lanes-" + std::to_string(getpid())));
  }
  std::byte* memory(int64_t page) { return homes->bases()[static_cast<size_t>(Home::device)] + page * kFarAlignment; }
  Page page(int64_t in_memory, int64_t on_disk, int64_t count, bool into_memory) {
    return {.home = Home::disk,
            .far = on_disk * kFarAlignment,
            .bytes = count * kFarAlignment,
            .memory = memory(in_memory),
            .into_memory = into_memory};
  }

  std::optional<Homes> homes;

 private:
  Program program_;
  Layout layout_;
};

// Random moves and uses beside a model of them that has no lanes: every use sees the same numbers.
TEST(PageLanes, give_what_moves_one_after_the_other_would) {
  Room room;
  PageLanes lanes(*room.homes);
  std::vector<int> memory(kPages), disk(kPages);
  std::mt19937 random(7);
  const auto any = [&](int64_t below) { return static_cast<int64_t>(random() % static_cast<uint64_t>(below)); };
  int64_t moved = 0;
  for (int turn = 0; turn < 6000; ++turn) {
    const int64_t at = any(kPages);
    switch (any(4)) {
      case 0:
      case 1: {
        const int64_t count = 1 + any(4), from = any(kPages - count), to = any(kPages - count);
        const bool in = any(2) == 0;
        lanes.begin(room.page(from, to, count, in), 1);
        for (int64_t i = 0; i < count; ++i)
          (in ? memory[static_cast<size_t>(from + i)] : disk[static_cast<size_t>(to + i)]) =
              in ? disk[static_cast<size_t>(to + i)] : memory[static_cast<size_t>(from + i)];
        moved += count;
        break;
      }
      case 2: {
        lanes.wait_for(room.memory(at), kFarAlignment, true);
        const int value = turn % 251;
        std::fill_n(room.memory(at), kFarAlignment, static_cast<std::byte>(value));
        memory[static_cast<size_t>(at)] = value;
        break;
      }
      default:
        lanes.wait_for(room.memory(at), kFarAlignment, false);
        for (const int64_t byte : {int64_t{0}, kFarAlignment - 1})
          ASSERT_EQ(std::to_integer<int>(room.memory(at)[byte]), memory[static_cast<size_t>(at)]) << turn;
    }
  }
  lanes.wait_for_depth(0);
  EXPECT_TRUE(lanes.idle());
  EXPECT_EQ(lanes.traffic().fetched + lanes.traffic().sent, moved * kFarAlignment);
}

TEST(PageLanes, of_outer_regions_go_on_where_an_inner_one_ends) {
  Room room;
  PageLanes lanes(*room.homes);
  lanes.begin(room.page(0, 0, 4, true), 1);
  lanes.begin(room.page(8, 8, 4, false), 2);
  lanes.wait_for_depth(2);
  lanes.wait_for(room.memory(16), kFarAlignment, true);  // nobody's
  lanes.wait_for_depth(1);
  EXPECT_TRUE(lanes.idle());
}

}  // namespace

}  // namespace snug::testing
