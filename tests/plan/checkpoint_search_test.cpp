// What gradient_checkpointing: auto chooses, against every choice there is.

#include "plan/checkpoint_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>

#include "model/catalogue.h"
#include "plan/workspaces.h"
#include "program/compile.h"
#include "program/support_tiny.h"

namespace snug::testing {

namespace {

constexpr int64_t kRoomy = int64_t{1} << 40;

Target machine() {
  Target target{.threads = 2, .memory_bytes = kRoomy};
  target.cost = nominal_cpu_rates(2);
  target.cost.source = "nominal";
  return target;
}

ModelSpec decoder_of(int64_t layers) {
  ModelSpec spec = tiny_decoder();
  spec.layers = layers;
  return spec;
}

Recipe asking(int64_t memory_bytes = 0) {
  Recipe recipe;
  recipe.method = Method::full;
  recipe.batch = 4;
  recipe.seq_len = 64;
  recipe.gradient_checkpointing = recipe.checkpoint_to_budget = true;
  recipe.memory_bytes = memory_bytes;
  return recipe;
}

// One way to treat all layers, laid out.
struct Outcome {
  int64_t peak_bytes = 0;
  double seconds = 0;
};

Outcome outcome_of(const ModelSpec& spec, const Target& target, const Released& released) {
  Program program = compile(spec, asking(), &released);
  fit_to_target(program, target);
  return {lay_out(program).device().bytes, step_time(target.cost, program).seconds};
}

// What single blocks may choose: all subsets of so many parts of what they save, the largest tensors by themselves.
std::vector<std::set<StorageId>> subsets(const ModelSpec& spec, const Target& target, size_t parts) {
  const Released none;
  Program program = compile(spec, asking(), &none);
  fit_to_target(program, target);
  std::vector<StorageId> saved = program.blocks.front().saved;
  std::stable_sort(saved.begin(), saved.end(),
                   [&](StorageId a, StorageId b) { return program.storage(a).bytes > program.storage(b).bytes; });
  std::vector<std::set<StorageId>> all(size_t{1} << parts);
  for (size_t bits = 0; bits < all.size(); ++bits)
    for (size_t i = 0; i < saved.size(); ++i)
      if ((bits >> std::min(i, parts - 1) & 1) != 0) all[bits].insert(saved[i]);
  return all;
}

Released released_by(const std::vector<const std::set<StorageId>*>& layers) {
  Released released;
  for (size_t layer = 0; layer < layers.size(); ++layer)
    if (!layers[layer]->empty()) released[static_cast<int64_t>(layer)] = *layers[layer];
  return released;
}

// Twelve budgets from the least to all kept.
std::vector<int64_t> budgets(int64_t least, int64_t most) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i <= 11; ++i) all.push_back(least + (most - least) * i / 11);
  return all;
}

// Seconds of the longest step on the way that blocks take.
double hull_step(const ModelSpec& spec, const Target& target, size_t parts) {
  const Released none;
  Program program = compile(spec, asking(), &none);
  fit_to_target(program, target);
  const std::vector<BlockOption> options = block_options(program, 0, target.cost, parts);
  const std::vector<size_t> hull = lower_hull(options);
  double longest = 0;
  for (size_t i = 0; i + 1 < hull.size(); ++i)
    longest = std::max(longest, options[hull[i + 1]].seconds - options[hull[i]].seconds);
  return longest;
}

// The search's own outcome for an arena of so many bytes, laid out.
Outcome found(const ModelSpec& spec, const Target& target, size_t parts, int64_t arena_bytes) {
  Recipe recipe = asking();
  recipe.memory_bytes = align_up(arena_bytes, target.page_bytes);
  CheckpointSearch search(spec, recipe, target, parts);
  Outcome outcome;
  while (const std::optional<Released> released = search.next()) {
    outcome = outcome_of(spec, target, *released);
    if (outcome.peak_bytes <= arena_bytes) break;
  }
  return outcome;
}

struct Comparison {
  int equal = 0, within_a_step = 0, worse = 0;
};

Comparison compare(const ModelSpec& spec, size_t parts, const std::vector<Outcome>& all) {
  const Target target = machine();
  const double step = hull_step(spec, target, parts);
  int64_t least = kRoomy, most = 0;
  for (const Outcome& outcome : all) {
    least = std::min(least, outcome.peak_bytes);
    most = std::max(most, outcome.peak_bytes);
  }
  Comparison result;
  for (int64_t budget : budgets(least, most)) {
    double best = HUGE_VAL;
    for (const Outcome& outcome : all)
      if (outcome.peak_bytes <= budget) best = std::min(best, outcome.seconds);
    const Outcome ours = found(spec, target, parts, budget);
    EXPECT_LE(ours.peak_bytes, budget);
    const double more = ours.seconds - best;
    const double limit = step * (1 + 1e-9);  // sums of doubles
    ++(more <= 1e-12 ? result.equal : more <= limit ? result.within_a_step : result.worse);
    if (more > limit) std::printf("budget %ld: %.9f s, best %.9f s, a step %.9f s\n", budget, ours.seconds, best, step);
  }
  return result;
}

// Of three layers six make 262,144 layouts, which take minutes.
size_t parts_of_blocks() { return std::getenv("SNUG_EXHAUSTIVE") != nullptr ? 6 : 4; }

}  // namespace

// Every subset of every layer, laid out.
TEST(CheckpointSearch, is_within_one_step_of_one_block_of_the_best_of_all_choices) {
  const ModelSpec spec = decoder_of(3);
  const Target target = machine();
  const size_t parts = parts_of_blocks();
  const auto options = subsets(spec, target, parts);
  std::vector<Outcome> all;
  for (const auto& first : options)
    for (const auto& second : options)
      for (const auto& third : options) all.push_back(outcome_of(spec, target, released_by({&first, &second, &third})));
  const Comparison result = compare(spec, parts, all);
  std::printf("%zu layouts: %d budgets met as the best does, %d within a step\n", all.size(), result.equal,
              result.within_a_step);
  EXPECT_EQ(result.worse, 0);
}

// Six layers: every number of blocks with each choice that no other beats, and every choice of the last.
TEST(CheckpointSearch, is_within_one_step_of_the_best_of_six_layers) {
  const ModelSpec spec = decoder_of(6);
  const Target target = machine();
  const size_t parts = parts_of_blocks();
  // Alone: of one layer, what takes no more bytes and no more time than another.
  const auto options = subsets(spec, target, parts);
  std::vector<Outcome> alone;
  for (const auto& option : options) {
    const std::vector<const std::set<StorageId>*> layers(6, &option);
    alone.push_back(outcome_of(spec, target, released_by(layers)));
  }
  std::vector<const std::set<StorageId>*> unbeaten;
  for (size_t i = 0; i < options.size(); ++i) {
    bool beaten = false;
    for (size_t j = 0; j < options.size(); ++j) {
      const bool no_worse = alone[j].peak_bytes <= alone[i].peak_bytes && alone[j].seconds <= alone[i].seconds;
      const bool same = alone[j].peak_bytes == alone[i].peak_bytes && alone[j].seconds == alone[i].seconds;
      beaten = beaten || (no_worse && (!same || j < i));
    }
    if (!beaten) unbeaten.push_back(&options[i]);
  }
  std::vector<Outcome> all;
  std::vector<const std::set<StorageId>*> layers(6);
  const std::function<void(size_t, size_t)> assign = [&](size_t layer, size_t from) {
    if (layer == 5) {
      for (const auto* last : unbeaten) {
        layers[5] = last;
        all.push_back(outcome_of(spec, target, released_by(layers)));
      }
      return;
    }
    for (size_t i = from; i < unbeaten.size(); ++i) {
      layers[layer] = unbeaten[i];
      assign(layer + 1, i);
    }
  };
  assign(0, 0);
  const Comparison result = compare(spec, parts, all);
  std::printf("%zu choices unbeaten, %zu layouts: %d budgets met as the best does, %d within a step\n", unbeaten.size(),
              all.size(), result.equal, result.within_a_step);
  EXPECT_EQ(result.worse, 0);
}

TEST(CheckpointSearch, takes_no_longer_with_more_memory) {
  for (const char* name : {"SmolLM2-135M", "gpt2", "gemma-2-2b"}) {
    const ModelSpec spec = *find_model(name);
    Recipe recipe = asking(kRoomy);
    recipe.batch = 2;
    recipe.seq_len = 256;
    const Target target = machine();
    const int64_t most = make_plan(spec, recipe, target).peak_bytes;
    recipe.checkpoint_to_budget = false;
    const int64_t least = make_plan(spec, recipe, target).peak_bytes;  // every block
    recipe.checkpoint_to_budget = true;
    double before = HUGE_VAL;
    for (int64_t budget : budgets(least, most)) {
      recipe.memory_bytes = budget;
      const Plan plan = make_plan(spec, recipe, target);
      EXPECT_TRUE(plan.fits()) << name << " in " << budget;
      EXPECT_LE(plan.step_time.seconds, before * (1 + 1e-9)) << name << " in " << budget;
      before = plan.step_time.seconds;
    }
  }
}

TEST(CheckpointSearch, keeps_everything_where_it_fits_and_as_little_as_can_be_where_nothing_does) {
  const ModelSpec spec = decoder_of(4);
  const Target target = machine();
  EXPECT_TRUE(make_plan(spec, asking(kRoomy), target).released.empty());
  const Plan least = make_plan(spec, asking(1), target);
  EXPECT_FALSE(least.fits());
  Recipe every = asking(1);
  every.checkpoint_to_budget = false;
  EXPECT_LE(least.peak_bytes, make_plan(spec, every, target).peak_bytes);
}

}  // namespace snug::testing
