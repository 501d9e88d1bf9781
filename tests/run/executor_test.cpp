// The executor's order: regions, layers, micro-batches, chunks, and what is passed over, seen by an observer of a Program
// written by hand.

#include "run/executor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>
#include <stdexcept>
#include <vector>

#include "plan/layout.h"
#include "run/in_place.h"

namespace snug::testing {

namespace {

struct Heard {
  OpId id;
  int64_t layer, chunk;
  bool operator==(const Heard&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Heard& heard) {
  return out << heard.id << '@' << heard.layer << '/' << heard.chunk;
}

class Listener : public Observer, public Host {
 public:
  void before(const Op& op, const Binding& binding) override {
    EXPECT_EQ(open_, kNone);
    open_ = op.id;
    heard.push_back({op.id, binding.layer, binding.chunk});
  }
  void after(const Op& op, const Binding&) override {
    EXPECT_EQ(open_, op.id);
    open_ = kNone;
  }
  void run(const Op& op, int64_t repetition) override {
    EXPECT_EQ(open_, op.id);  // a host op is observed like any other
    repetitions.push_back(repetition);
    if (scalars.size() > static_cast<size_t>(Scalar::skip)) scalars[static_cast<size_t>(Scalar::skip)] = repetition == 1;
  }

  std::vector<Heard> heard;
  std::vector<int64_t> repetitions;
  std::span<double> scalars;  // if given, the host asks to pass over in repetition 1 alone

 private:
  OpId open_ = kNone;
};

// Ops are numbered as they are made.
class Script {
 public:
  Script() {
    program.interface.scalars = program.make("scalars", DType::f64, {kScalarCount}, Role::batch, Lifetime::run);
    buffer_ = program.make("buffer", DType::f32, {4}, Role::gradient, Lifetime::run);
  }
  Op zero() { return numbered(Op{OpKind::zero}.writes(Slot::gradient, buffer_)); }
  Op batch() { return numbered(Op{OpKind::batch}); }
  Op numbered(Op op) {
    program.identify(op);
    return op;
  }

  Program program;

 private:
  TensorId buffer_;
};

// 0, then 3 times: 1 by the host, 2 and 3 in layers 2 to 4, 4 from layer 4 to 2; then 5.
Program script_of_layers() {
  Script script;
  Region step{.name = "step", .section = Section::step};
  step.add(script.zero());
  Region micro_batch{.name = "micro_batch", .axis = Axis::micro_batch, .count = 3};
  micro_batch.add(script.batch());
  Region up{.name = "up", .axis = Axis::layer, .first = 2, .count = 3};
  up.add(script.zero());
  up.add(script.zero());
  Region down{.name = "down", .axis = Axis::layer, .first = 2, .count = 3, .reverse = true};
  down.add(script.zero());
  micro_batch.add(std::move(up));
  micro_batch.add(std::move(down));
  step.add(std::move(micro_batch));
  step.add(script.zero());
  script.program.root.add(std::move(step));
  return std::move(script.program);
}

TEST(Executor, runs_layers_up_and_down_and_micro_batches_as_often_as_its_driver_says) {
  const Program program = script_of_layers();
  const Layout layout = lay_out(program);
  Executor executor(program, layout);
  for (const int64_t asked : {0, 1, 2}) {
    Listener listener;
    executor.observe(&listener);
    executor.run(program.region(Section::step), listener, asked);
    std::vector<Heard> expected = {{0, 0, 0}};
    std::vector<int64_t> repetitions(static_cast<size_t>(asked == 0 ? 3 : asked));
    std::iota(repetitions.begin(), repetitions.end(), 0);
    for (size_t i = 0; i < repetitions.size(); ++i)
      for (const auto& [id, layer] :
           {std::pair{1, 0}, {2, 2}, {3, 2}, {2, 3}, {3, 3}, {2, 4}, {3, 4}, {4, 4}, {4, 3}, {4, 2}})
        expected.push_back({id, layer, 0});
    expected.push_back({5, 0, 0});
    EXPECT_EQ(listener.heard, expected);
    EXPECT_EQ(listener.repetitions, repetitions);
  }
}

TEST(Executor, asks_whether_to_pass_over_a_region_whenever_it_comes_to_it) {
  Script script;
  Region step{.name = "step", .section = Section::step};
  Region micro_batch{.name = "micro_batch", .axis = Axis::micro_batch, .count = 3};
  micro_batch.add(script.batch());
  Region maybe{.name = "maybe", .skip = static_cast<int32_t>(Scalar::skip)};
  maybe.add(script.zero());
  micro_batch.add(std::move(maybe));
  micro_batch.add(script.zero());
  step.add(std::move(micro_batch));
  script.program.root.add(std::move(step));
  const Layout layout = lay_out(script.program);
  Executor executor(script.program, layout);
  Listener listener;
  listener.scalars = InPlace::elements<double>(executor, script.program.interface.scalars);
  executor.observe(&listener);
  executor.run(script.program.region(Section::step), listener);
  std::vector<OpId> ids;
  for (const Heard& heard : listener.heard) ids.push_back(heard.id);
  EXPECT_EQ(ids, (std::vector<OpId>{0, 1, 2, 0, 2, 0, 1, 2}));
}

class ExecutorOfHome : public ::testing::TestWithParam<Home> {};

INSTANTIATE_TEST_SUITE_P(homes, ExecutorOfHome, ::testing::Values(Home::pinned, Home::host, Home::disk),
                         [](const auto& test) { return std::string(name_of(test.param)); });

constexpr int64_t kPageNumbers = kFarAlignment / 4;

// Three pages of numbers come from one place of another home and go to another, a page at a time.
TEST_P(ExecutorOfHome, hands_chunks_through_their_window_one_after_the_other) {
  Script script;
  Program& program = script.program;
  const auto far = [&](const char* name) {
    const TensorId whole = program.make(name, DType::f32, {3 * kPageNumbers}, Role::optimizer, Lifetime::run);
    program.storage(program.tensor(whole).storage).home = GetParam();
    const TensorId part = program.view(whole, std::string(name) + ".part", {kPageNumbers});
    program.tensor(part).chunk_stride = kFarAlignment;
    return std::pair(whole, part);
  };
  const auto [from, from_part] = far("from");
  const auto [to, to_part] = far("to");
  const TensorId window = program.make("window", DType::f32, {kPageNumbers}, Role::temporary);
  program.storage(program.tensor(window).storage).alignment = kFarAlignment;
  Region chunks{.name = "paged", .section = Section::step, .axis = Axis::chunk, .count = 3};
  chunks.add(script.numbered(Op{OpKind::page_in}.reads(Slot::far, from_part).writes(Slot::window, window)));
  chunks.add(script.numbered(Op{OpKind::page_out}.writes(Slot::far, to_part).reads(Slot::window, window)));
  program.root.add(std::move(chunks));

  const Layout layout = lay_out(program);
  EXPECT_EQ(layout.of(GetParam()).bytes, 6 * kFarAlignment);
  Executor executor(program, layout, std::filesystem::temp_directory_path() / ("snug-executor-" + std::to_string(getpid())));
  std::vector<float> numbers(3 * kPageNumbers), back(numbers.size());
  std::iota(numbers.begin(), numbers.end(), 1.0F);
  EXPECT_EQ(InPlace::elements(executor, from).empty(), GetParam() == Home::disk);
  EXPECT_FALSE(InPlace::elements(executor, window).empty());
  executor.transfer().write_bytes(from, 0, 0, std::as_bytes(std::span(numbers)));
  Listener listener;
  executor.observe(&listener);
  executor.run(program.region(Section::step), listener);
  EXPECT_EQ(listener.heard, (std::vector<Heard>{{0, 0, 0}, {1, 0, 0}, {0, 0, 1}, {1, 0, 1}, {0, 0, 2}, {1, 0, 2}}));
  executor.transfer().read_bytes(to, 0, 0, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back, numbers);

  // The same while nobody looks, when pages move ahead of their turn.
  std::reverse(numbers.begin(), numbers.end());
  executor.transfer().write_bytes(from, 0, 0, std::as_bytes(std::span(numbers)));
  executor.observe(nullptr);
  executor.run(program.region(Section::step), listener);
  executor.transfer().read_bytes(to, 0, 0, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back, numbers);
  EXPECT_EQ(executor.traffic().fetched, 6 * kFarAlignment);
  EXPECT_EQ(executor.traffic().sent, 6 * kFarAlignment);
}

TEST(Executor, gives_each_layer_its_own_view_and_each_op_what_the_layout_says) {
  Script script;
  Program& program = script.program;
  const TensorId rows = program.make("rows", DType::f32, {4}, Role::gradient, Lifetime::run);
  program.tensor(rows).layer_stride = 64;
  program.tensor(rows).first_layer = 1;
  program.storage(program.tensor(rows).storage).bytes = 3 * 64;
  Region loop{.name = "step", .section = Section::step, .axis = Axis::layer, .first = 1, .count = 2};
  loop.add(script.numbered(Op{OpKind::zero}.writes(Slot::gradient, rows)));
  program.root.add(std::move(loop));
  const Layout layout = lay_out(program);
  Executor executor(program, layout);
  for (int64_t layer = 1; layer <= 3; ++layer)
    for (float& x : InPlace::elements<float>(executor, rows, layer)) x = static_cast<float>(layer);
  EXPECT_EQ(InPlace::elements(executor, rows, 2).data() - InPlace::elements(executor, rows, 1).data(), 64);
  Listener listener;
  executor.run(program.region(Section::step), listener);
  EXPECT_EQ(InPlace::elements<float>(executor, rows, 1)[3], 0.0F);
  EXPECT_EQ(InPlace::elements<float>(executor, rows, 2)[3], 0.0F);
  EXPECT_EQ(InPlace::elements<float>(executor, rows, 3)[3], 3.0F);
  EXPECT_TRUE(listener.heard.empty());  // nobody was told to observe
  executor.transfer().clear(program.tensor(rows).storage);
  EXPECT_EQ(InPlace::elements<float>(executor, rows, 3)[3], 0.0F);
}

TEST(Executor, may_work_in_anothers_arena_if_the_layout_fits_there) {
  const Program program = script_of_layers();
  Layout layout = lay_out(program);
  Executor owner(program, layout), guest(program, layout, owner);
  owner.set_scalar(Scalar::step, 7.0);
  EXPECT_EQ(guest.scalar(Scalar::step), 7.0);
  EXPECT_EQ(InPlace::arena(guest), InPlace::arena(owner));
  layout.of(Home::device).bytes = owner.arena_bytes() + 1;
  EXPECT_THROW(Executor(program, layout, owner), std::logic_error);
}

}  // namespace

}  // namespace snug::testing
