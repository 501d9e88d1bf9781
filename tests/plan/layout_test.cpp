// Lay-out: nothing that is alive together overlaps, and little more is used than is alive.

#include "plan/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "model/catalogue.h"
#include "plan/plan.h"
#include "plan/support_unfold.h"
#include "plan/timeline.h"
#include "plan/workspaces.h"
#include "program/compile.h"
#include "sanitized.h"

namespace snug::testing {

namespace {

Target test_target() { return {.threads = 2, .memory_bytes = int64_t{1} << 40, .runtime_bytes = 0}; }

Program compiled(const ModelSpec& model, const Recipe& recipe) {
  Program program = compile(model, recipe);
  fit_to_target(program, test_target());
  return program;
}

Recipe random_recipe(std::mt19937& random, int64_t layers) {
  const auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint32_t>(n)); };
  Recipe recipe;
  recipe.method = pick(2) == 0 ? Method::full : Method::lora;
  recipe.bf16 = pick(2) == 0;
  recipe.batch = 1 + pick(4);
  recipe.seq_len = 64 * (1 + pick(16));
  recipe.lora.r = 1 + pick(64);
  if (pick(2) == 0) recipe.lora.target_modules = {"all-linear"};
  if (pick(4) == 0) recipe.eval_data = "some.jsonl";
  recipe.pages_states = pick(4) == 0;
  recipe.optimizer_in_bwd = pick(3) == 0;
  recipe.gradient_checkpointing = true;
  for (int64_t layer = 0; layer < layers; ++layer)
    if (pick(2) == 0) recipe.checkpoint_layers.push_back(layer);
  if (recipe.checkpoint_layers.empty()) recipe.checkpoint_layers.push_back(0);
  return recipe;
}

const char* random_model(std::mt19937& random) {
  constexpr const char* kModels[] = {"HuggingFaceTB/SmolLM2-135M", "HuggingFaceTB/SmolLM2-360M", "meta-llama/Llama-3.2-1B",
                                     "TinyLlama/TinyLlama-1.1B-Chat-v1.0"};
  return kModels[random() % 4];
}

// Walks through time with the set of live address ranges; true if two ever overlap.
bool anything_overlaps(const Layout& layout, std::vector<UnfoldedLife> lives) {
  std::sort(lives.begin(), lives.end(), [](const auto& a, const auto& b) { return a.birth < b.birth; });
  std::multimap<int64_t, std::pair<int64_t, int64_t>> deaths;  // death -> range
  std::map<int64_t, int64_t> live;                             // begin -> end
  for (const UnfoldedLife& life : lives) {
    while (!deaths.empty() && deaths.begin()->first < life.birth) {
      live.erase(deaths.begin()->second.first);
      deaths.erase(deaths.begin());
    }
    const int64_t begin = layout.offset_of(life.storage, life.instance);
    const int64_t end = begin + life.bytes;
    const auto next = live.lower_bound(begin);
    if (next != live.end() && next->first < end) return true;
    if (next != live.begin() && std::prev(next)->second > begin) return true;
    if (begin < layout.device().run_bytes || end > layout.device().bytes) return true;
    live[begin] = end;
    deaths.emplace(life.death, std::pair(begin, end));
  }
  return false;
}

TEST(Layout, nothing_that_is_alive_together_overlaps_in_200_random_programs) {
  std::mt19937 random(7);
  for (int i = 0; i < drawn(200); ++i) {
    const ModelSpec model = *find_model(random_model(random));
    const Program program = compiled(model, random_recipe(random, model.layers));
    ASSERT_FALSE(anything_overlaps(lay_out(program, 0), unfold(program))) << i;
  }
}

TEST(Layout, the_folded_peak_is_the_unfolded_peak) {
  std::mt19937 random(11);
  for (int i = 0; i < drawn(100); ++i) {
    const ModelSpec model = *find_model(random_model(random));
    const Program program = compiled(model, random_recipe(random, model.layers));
    const Layout layout = lay_out(program, 0);
    const auto truth = static_cast<double>(peak_of(unfold(program)));
    EXPECT_GE(static_cast<double>(layout.device().peak_live_bytes), truth);
    EXPECT_LE(static_cast<double>(layout.device().peak_live_bytes), truth * 1.0005 + 4096) << i;  // alignment to cache lines
  }
}

TEST(Layout, dynamic_memory_is_within_2_percent_of_what_is_alive_over_300_random_recompute_sets) {
  std::mt19937 random(1);
  std::vector<double> excess;
  for (int i = 0; i < drawn(300); ++i) {
    const ModelSpec model = *find_model(random_model(random));
    const Program program = compiled(model, random_recipe(random, model.layers));
    const auto live = static_cast<double>(peak_of(unfold(program)));
    excess.push_back(static_cast<double>(lay_out(program).device().dynamic_bytes) / live - 1.0);
  }
  std::sort(excess.begin(), excess.end());
  RecordProperty("median_percent", std::to_string(100 * excess[excess.size() / 2]));
  RecordProperty("worst_percent", std::to_string(100 * excess.back()));
  std::printf("excess over live bytes: median %.4f %%, worst %.4f %%\n", 100 * excess[excess.size() / 2],
              100 * excess.back());
  EXPECT_LE(excess[excess.size() / 2], 0.005);
  EXPECT_LE(excess.back(), 0.02);
}

TEST(Layout, a_storage_on_another_lane_lives_to_the_end_of_its_region) {
  Program program;
  const TensorId early = program.make("early", DType::f32, {1000}, Role::temporary);
  const TensorId late = program.make("late", DType::f32, {1000}, Role::temporary);
  Region region{.name = "region"};
  region.add(Op{OpKind::zero, Lane::copy_in}).writes(Slot::gradient, early);
  region.add(Op{OpKind::zero}).writes(Slot::gradient, late);
  program.root.add(region);
  EXPECT_EQ(lay_out(program).device().dynamic_bytes, 2 * align_up(4000, kAlignment));
  program.root.items.front().region()->items.front().op()->lane = Lane::compute;
  EXPECT_EQ(lay_out(program).device().dynamic_bytes, align_up(4000, kAlignment));
}

// Copies into a window beside compute, which waits for them where it reads the window: from then on its bytes are free.
TEST(Layout, what_compute_waited_for_is_done) {
  Program program;
  const auto make = [&](const char* name) { return program.make(name, DType::f32, {1000}, Role::temporary); };
  const TensorId window = make("window"), sum = make("sum"), late = make("late");
  Region region{.name = "region"};
  region.add(Op{OpKind::page_in, Lane::copy_in}).writes(Slot::window, window);
  region.add(Op{OpKind::square_sum}).reads(Slot::gradient, window).writes(Slot::workspace, sum);
  region.add(Op{OpKind::zero}).writes(Slot::gradient, late);
  program.root.add(region);
  EXPECT_EQ(lay_out(program).device().dynamic_bytes, 2 * align_up(4000, kAlignment));
}

// A copy in may begin while compute is still at what stands before it.
TEST(Layout, what_is_copied_in_has_its_bytes_from_where_lanes_met) {
  Program program;
  const auto make = [&](const char* name) { return program.make(name, DType::f32, {1000}, Role::temporary); };
  const TensorId early = make("early"), window = make("window"), sum = make("sum");
  Region region{.name = "region"};
  region.add(Op{OpKind::zero}).writes(Slot::gradient, early);
  region.add(Op{OpKind::page_in, Lane::copy_in}).writes(Slot::window, window);
  region.add(Op{OpKind::square_sum}).reads(Slot::gradient, window).writes(Slot::workspace, sum);
  program.root.add(region);
  const Layout layout = lay_out(program);
  EXPECT_NE(layout.offset_of(program.tensor(early).storage, 0), layout.offset_of(program.tensor(window).storage, 0));
  EXPECT_EQ(layout.device().live_bytes.front(), 2 * align_up(4000, kAlignment));
}

// In a loop nobody waits for the copy out of a layer's window before the next layer begins: until the loop's end its bytes
// are nobody else's, in the folded timeline as in the unfolded one.
TEST(Layout, what_nobody_waits_for_in_its_body_is_held_throughout_the_loop) {
  Program program;
  program.layers = 3;
  const auto make = [&](const char* name) { return program.make(name, DType::f32, {1000}, Role::temporary); };
  const TensorId early = make("early"), window = make("window"), after = make("after");
  Region loop{.name = "layers", .axis = Axis::layer, .count = 3};
  loop.add(Op{OpKind::zero}).writes(Slot::gradient, early);
  loop.add(Op{OpKind::zero}).writes(Slot::gradient, window);
  loop.add(Op{OpKind::page_out, Lane::copy_out}).reads(Slot::window, window);
  program.root.add(loop);
  program.root.add(Op{OpKind::zero}).writes(Slot::gradient, after);
  const Layout held = lay_out(program);
  EXPECT_EQ(held.device().dynamic_bytes, 2 * align_up(4000, kAlignment));
  const MemoryTimeline timeline = unfold(program, held);
  const auto life = std::find_if(timeline.lives.begin(), timeline.lives.end(),
                                 [&](const TimelineLife& l) { return l.storage == program.tensor(window).storage; });
  ASSERT_NE(life, timeline.lives.end());
  EXPECT_EQ(life->birth, 0);
  EXPECT_EQ(life->death, 8);  // three ops a layer
  program.root.items.front().region()->items.back().op()->lane = Lane::compute;
  EXPECT_EQ(lay_out(program).device().dynamic_bytes, align_up(4000, kAlignment));
}

// Two saved tensors that are never alive together share their place on the host; a third lies on the disk.
TEST(Layout, every_home_has_a_place_for_what_lives_there) {
  Program program;
  const auto in = [&](const char* name, Home home, Lifetime lifetime) {
    const TensorId id = program.make(name, DType::f32, {1500}, Role::activation, lifetime);
    program.storage(program.tensor(id).storage).home = home;
    return id;
  };
  const TensorId first = in("first", Home::host, Lifetime::computed), second = in("second", Home::host, Lifetime::computed);
  const TensorId kept = in("kept", Home::host, Lifetime::run), third = in("third", Home::disk, Lifetime::computed);
  const TensorId near = in("near", Home::device, Lifetime::computed);
  Region region{.name = "region"};
  for (const TensorId far : {first, second, kept, third}) {
    region.add(Op{OpKind::page_out}.reads(Slot::window, near).writes(Slot::far, far)).writes(Slot::window, near);
    region.add(Op{OpKind::page_in}.reads(Slot::far, far).writes(Slot::window, near));
  }
  region.items.front().op()->operands.front().access = Access::write;
  program.root.add(region);
  const Layout layout = lay_out(program);
  constexpr int64_t kPages = 2 * 4096;  // of 6000 bytes
  EXPECT_EQ(layout.of(Home::host).run_bytes, kPages);
  EXPECT_EQ(layout.of(Home::host).bytes, 2 * kPages);
  EXPECT_EQ(layout.offset_of(program.tensor(first).storage, 0), kPages);
  EXPECT_EQ(layout.offset_of(program.tensor(second).storage, 0), kPages);
  EXPECT_EQ(layout.of(Home::disk).bytes, kPages);
  EXPECT_EQ(layout.offset_of(program.tensor(third).storage, 0), 0);
  EXPECT_EQ(layout.device().bytes, align_up(6000, kAlignment));
  EXPECT_EQ(layout.of(Home::pinned).bytes, 0);
}

TEST(Layout, reading_what_was_never_written_is_a_mistake) {
  Program program;
  const TensorId tensor = program.make("ghost", DType::f32, {10}, Role::temporary);
  program.root.add(Op{OpKind::square_sum}).reads(Slot::gradient, tensor);
  EXPECT_THROW(lay_out(program), std::logic_error);
}

}  // namespace

}  // namespace snug::testing
