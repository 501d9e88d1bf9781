// Loops and their rounds from lines alone, on programs whose lines are written down.

#include "explain/loops.h"

#include <gtest/gtest.h>

#include "explain/course.h"
#include "explain/growth.h"
#include "explain/support_frames.h"

namespace snug::explain_tests {
namespace loops_tests {
namespace {

const std::string kScript = "/home/me/train.py", kModel = "/home/me/model.py";
const std::string kCall = frame("/env/site-packages/torch/nn/modules/module.py", "_call_impl", 1790);

// The stack of a line of the script's top; of one that it calls in the model.
std::string at(int64_t line) { return pickled::list({frame(kScript, "<module>", line)}); }
std::string in_model(int64_t line, int64_t own) {
  return pickled::list({frame(kModel, "forward", own), kCall, frame(kScript, "<module>", line)});
}

class Program {
 public:
  int64_t alloc(int64_t bytes, const std::string& frames) {
    const int64_t address = next_;
    next_ += 64 * kMiB;
    add(pickled::event("segment_alloc", address, 64 * kMiB, frames));
    add(pickled::event("alloc", address, bytes, frames));
    return address;
  }
  void free(int64_t address, int64_t bytes) {
    add(pickled::event("free_requested", address, bytes));
    add(pickled::event("free_completed", address, bytes));
  }
  void add(const std::string& event) { events_.push_back(event); }
  size_t events() const { return events_.size(); }

  Snapshot snapshot() const {
    const std::string file = pickled::snapshot({}, events_);
    return read_snapshot(std::as_bytes(std::span(file)), "made.pickle");
  }

 private:
  int64_t next_ = int64_t{1} << 32;
  std::vector<std::string> events_;
};

std::vector<Loop> loops_of(const Snapshot& snapshot) {
  CallPaths paths(snapshot);
  return loops_at(snapshot, 0, snapshot.event_count(0) - 1, paths);
}

// One step: batch, two layers and a head in the model, loss.
void step(Program& program, int64_t mib) {
  program.alloc(mib * kMiB, at(20));
  program.alloc(mib * kMiB, in_model(21, 40));
  for (int layer = 0; layer < 2; ++layer) {
    program.alloc(mib * kMiB, in_model(21, 42));
    program.alloc(mib * kMiB, in_model(21, 43));
  }
  program.alloc(mib * kMiB, in_model(21, 45));
  program.alloc(mib * kMiB, at(22));
}

TEST(Loops, steps_are_told_by_a_line_that_comes_again_and_layers_are_none) {
  Program program;
  program.alloc(8 * kMiB, at(10));
  program.alloc(8 * kMiB, at(12));
  std::vector<size_t> begins;
  for (int i = 0; i < 4; ++i) {
    begins.push_back(program.events() + 1);  // the segment comes before its block
    step(program, 1);
  }
  const auto loops = loops_of(program.snapshot());
  ASSERT_EQ(loops.size(), 1U);
  EXPECT_EQ(loops[0].begins, begins);
  EXPECT_EQ(loops[0].place.line, 20);
  EXPECT_TRUE(loops[0].computes);
}

TEST(Loops, one_pass_through_the_layers_is_no_loop) {
  Program program;
  program.alloc(8 * kMiB, at(10));
  step(program, 1);
  EXPECT_TRUE(loops_of(program.snapshot()).empty());
}

TEST(Loops, micro_batches_make_a_step_where_the_optimizer_comes_less_often) {
  Program program;
  for (int i = 0; i < 8; ++i) {
    step(program, 1);
    if (i % 2 == 1) program.alloc(kMiB, at(30));
  }
  const auto loops = loops_of(program.snapshot());
  ASSERT_EQ(loops.size(), 1U);
  EXPECT_EQ(loops[0].begins.size(), 4U);
  EXPECT_EQ(loops[0].place.line, 30);
}

TEST(Loops, autograds_own_thread_belongs_to_the_round_around_it) {
  Program program;
  const std::string engine =
      pickled::list({frame("??", "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)", 0)});
  for (int i = 0; i < 3; ++i) {
    step(program, 1);
    program.alloc(kMiB, engine);
  }
  const auto loops = loops_of(program.snapshot());
  ASSERT_EQ(loops.size(), 1U);
  EXPECT_EQ(loops[0].begins.size(), 3U);
}

TEST(Course, the_rest_of_a_round_is_what_earlier_rounds_took_from_there_on) {
  Program program;
  for (int i = 0; i < 4; ++i) {
    const int64_t batch = program.alloc(2 * kMiB, at(20));
    const int64_t kept = program.alloc(10 * kMiB, in_model(21, 40));
    if (i == 3) break;  // here it stops: 7 more come, 3 of them beside all that is there
    const int64_t more = program.alloc(7 * kMiB, in_model(21, 41));
    program.free(kept, 10 * kMiB);
    const int64_t last = program.alloc(3 * kMiB, at(22));
    program.free(last, 3 * kMiB);
    program.free(more, 7 * kMiB);
    program.free(batch, 2 * kMiB);
  }
  program.add(pickled::event("oom", kMiB, 7 * kMiB, in_model(21, 41)));
  const Snapshot snapshot = program.snapshot();
  const auto loops = loops_of(snapshot);
  ASSERT_EQ(loops.size(), 1U);
  const Course course = course_of(snapshot, 0, loops[0].begins, snapshot.event_count(0) - 1);
  EXPECT_EQ(course.further_bytes, 7 * kMiB);
  EXPECT_NEAR(course.size_ratio, 1, 1e-9);
  EXPECT_EQ(course.rounds[1].peak_bytes, 19 * kMiB);
  EXPECT_FALSE(course.lengthening);
}

TEST(Course, a_longer_batch_takes_more_in_proportion) {
  Program program;
  for (const int64_t mib : {4, 6, 5, 12}) {
    const int64_t kept = program.alloc(mib * kMiB, in_model(21, 40));
    if (mib == 12) break;
    const int64_t more = program.alloc(2 * mib * kMiB, in_model(21, 41));
    program.free(more, 2 * mib * kMiB);
    program.free(kept, mib * kMiB);
    program.alloc(512, at(22));
  }
  program.add(pickled::event("oom", kMiB, 24 * kMiB, in_model(21, 41)));
  const Snapshot snapshot = program.snapshot();
  const Course course = course_of(snapshot, 0, loops_of(snapshot).at(0).begins, snapshot.event_count(0) - 1);
  EXPECT_EQ(course.further_bytes, 24 * kMiB);
  EXPECT_NEAR(course.size_ratio, 2, 1e-9);
  EXPECT_FALSE(course.lengthening);
}

TEST(Growth, is_told_to_the_byte_when_no_step_was_ever_finished) {
  Program program;
  for (int i = 0; i < 6; ++i) {
    program.alloc(512, at(20));
    program.alloc(3 * kMiB + 512, in_model(21, 40));
    const int64_t passing = program.alloc(5 * kMiB, in_model(21, 41));
    program.free(passing, 5 * kMiB);
  }
  const Snapshot snapshot = program.snapshot();
  StackReader reader(snapshot);
  const Growth growth = growth_of(snapshot, 0, loops_of(snapshot).at(0).begins, reader);
  ASSERT_EQ(growth.list.size(), 1U);
  EXPECT_EQ(growth.list[0].bytes_a_step, 3 * kMiB + 512);
  EXPECT_EQ(growth.active_a_step, 3 * kMiB + 1024);
}

}  // namespace
}  // namespace loops_tests
}  // namespace snug::explain_tests
