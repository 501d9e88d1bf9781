// When a page may be fetched: behind the last use of its memory, in a loop an iteration ahead.

#include "run/lookahead.h"

#include <gtest/gtest.h>

namespace snug::testing {

namespace {

// A loop over layers in which a weight and what follows it are used in turn.
class Loop {
 public:
  Loop() {
    for (const char* name : {"first", "second"}) {
      const TensorId far = program.make(name, DType::u8, {kFarAlignment}, Role::weight, Lifetime::run);
      program.storage(program.tensor(far).storage).home = Home::disk;
      program.storage(program.tensor(far).storage).instances = 4;
      program.tensor(far).instance_by_layer = true;
      far_.push_back(far);
      window_.push_back(program.make(std::string(name) + ".window", DType::u8, {kFarAlignment}, Role::weight));
    }
  }
  Op fetch(size_t which) {
    return Op{OpKind::page_in, Lane::copy_in}.reads(Slot::far, far_[which]).writes(Slot::window, window_[which]);
  }
  Op use(size_t which) { return Op{OpKind::zero}.writes(Slot::gradient, window_[which]); }
  const Region& loop(std::vector<Op> ops, Axis axis = Axis::layer, int64_t count = 4) {
    Region region{.name = "loop", .section = Section::step, .axis = axis, .count = count};
    for (Op& op : ops) region.add(std::move(op));
    program.root.add(std::move(region));
    return program.region(Section::step);
  }

  Program program;
  std::vector<TensorId> far_, window_;
};

std::vector<const Op*> ops_of(const Region& region) {
  std::vector<const Op*> ops;
  for (const Item& item : region.items) ops.push_back(item.op());
  return ops;
}

TEST(Lookahead, fetches_for_the_next_layer_behind_the_last_use_in_this_one) {
  Loop made;
  const Region& loop = made.loop({made.fetch(0), made.use(0), made.fetch(1), made.use(1), made.use(1)});
  const Lookahead ahead = lookaheads_of(made.program).at(&loop);
  const std::vector<const Op*> ops = ops_of(loop);
  EXPECT_EQ(ahead.at_entry, (std::vector<const Op*>{ops[0], ops[2]}));
  EXPECT_TRUE(ahead.at_begin.empty());
  ASSERT_EQ(ahead.after_item[1].size(), 1u);
  EXPECT_EQ(ahead.after_item[1][0].op, ops[0]);
  EXPECT_TRUE(ahead.after_item[1][0].next_iteration);
  EXPECT_TRUE(ahead.after_item[3].empty());
  ASSERT_EQ(ahead.after_item[4].size(), 1u);
  EXPECT_EQ(ahead.after_item[4][0].op, ops[2]);
}

TEST(Lookahead, waits_in_the_same_layer_for_who_uses_the_memory_before) {
  Loop made;
  const Region& loop = made.loop({made.use(0), made.use(1), made.fetch(0), made.use(0)});
  const Lookahead ahead = lookaheads_of(made.program).at(&loop);
  EXPECT_TRUE(ahead.at_entry.empty());
  ASSERT_EQ(ahead.after_item[0].size(), 1u);
  EXPECT_FALSE(ahead.after_item[0][0].next_iteration);
}

TEST(Lookahead, is_from_the_beginning_where_nothing_repeats) {
  Loop made;
  const Region& loop = made.loop({made.use(1), made.fetch(0), made.use(0)}, Axis::none, 1);
  const Lookahead ahead = lookaheads_of(made.program).at(&loop);
  EXPECT_TRUE(ahead.at_entry.empty());
  ASSERT_EQ(ahead.at_begin.size(), 1u);
  EXPECT_FALSE(ahead.at_begin[0].next_iteration);
}

// What goes to one place in every layer must have arrived before it is fetched again.
TEST(Lookahead, does_not_overtake_what_is_written_to_the_same_place) {
  Loop made;
  made.program.tensor(made.far_[0]).instance_by_layer = false;
  const Region& loop =
      made.loop({made.fetch(0), made.use(0),
                 Op{OpKind::page_out, Lane::copy_out}.writes(Slot::far, made.far_[0]).reads(Slot::window, made.window_[0])});
  const Lookahead ahead = lookaheads_of(made.program).at(&loop);
  EXPECT_TRUE(ahead.after_item[1].empty());
  ASSERT_EQ(ahead.after_item[2].size(), 1u);
}

TEST(Lookahead, has_nothing_to_say_of_regions_without_pages) {
  Loop made;
  made.loop({made.use(0), made.use(1)});
  EXPECT_TRUE(lookaheads_of(made.program).empty());
}

}  // namespace

}  // namespace snug::testing
