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
#include "sanitized.h"

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

// `disk`: what blocks save may wait there.
Recipe asking(int64_t memory_bytes = 0, bool disk = false) {
  Recipe recipe;
  recipe.method = Method::full;
  recipe.batch = 4;
  recipe.seq_len = 64;
  recipe.gradient_checkpointing = recipe.checkpoint_to_budget = true;
  recipe.offload_activations = disk;
  recipe.memory_bytes = memory_bytes;
  return recipe;
}

// One way to treat all layers, laid out.
struct Outcome {
  int64_t peak_bytes = 0;
  double seconds = 0;
};

Outcome outcome_of(const ModelSpec& spec, const Target& target, const SavedChoice& choice) {
  Program program = compile(spec, asking(), &choice);
  fit_to_target(program, target);
  return {lay_out(program).device().bytes, step_time(target.cost, program).seconds};
}

Program all_kept(const ModelSpec& spec, const Target& target) {
  const SavedChoice none;
  Program program = compile(spec, asking(), &none);
  fit_to_target(program, target);
  return program;
}

// What becomes of what a layer saves.
struct OfLayer {
  std::set<StorageId> released, away;
};

// What single blocks may choose: of so many parts of what they save, the largest tensors by themselves, each kept or made
// again, or with `disk` sent there.
std::vector<OfLayer> choices_of_layer(const ModelSpec& spec, const Target& target, size_t parts, bool disk = false) {
  const Program program = all_kept(spec, target);
  std::vector<StorageId> saved = program.blocks.front().saved;
  std::stable_sort(saved.begin(), saved.end(),
                   [&](StorageId a, StorageId b) { return program.storage(a).bytes > program.storage(b).bytes; });
  const size_t ways = disk ? 3 : 2;
  size_t count = 1;
  for (size_t i = 0; i < parts; ++i) count *= ways;
  std::vector<OfLayer> all(count);
  for (size_t n = 0; n < count; ++n) {
    std::vector<size_t> way;
    for (size_t i = 0, rest = n; i < parts; ++i, rest /= ways) way.push_back(rest % ways);
    for (size_t i = 0; i < saved.size(); ++i) {
      if (way[std::min(i, parts - 1)] == 1) all[n].released.insert(saved[i]);
      if (way[std::min(i, parts - 1)] == 2) all[n].away.insert(saved[i]);
    }
  }
  return all;
}

SavedChoice choice_of(const std::vector<const OfLayer*>& layers, bool inputs_away = false) {
  SavedChoice choice{.inputs_away = inputs_away};
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    if (!layers[layer]->released.empty()) choice.released[static_cast<int64_t>(layer)] = layers[layer]->released;
    if (!layers[layer]->away.empty()) choice.away[static_cast<int64_t>(layer)] = layers[layer]->away;
  }
  return choice;
}

// Twelve budgets from the least to all kept.
std::vector<int64_t> budgets(int64_t least, int64_t most) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i <= 11; ++i) all.push_back(least + (most - least) * i / 11);
  return all;
}

// Seconds of the longest step on the way that blocks take.
double hull_step(const ModelSpec& spec, const Target& target, size_t parts, bool disk) {
  const Program program = all_kept(spec, target);
  const std::optional<FarHome> far = disk ? std::optional(FarHome{}) : std::nullopt;
  const std::vector<BlockOption> options = block_options(program, 0, target.cost, far, parts);
  const std::vector<size_t> hull = lower_hull(options);
  double longest = 0;
  for (size_t i = 0; i + 1 < hull.size(); ++i)
    longest = std::max(longest, options[hull[i + 1]].seconds - options[hull[i]].seconds);
  return longest;
}

// The search's own outcome for an arena of so many bytes, laid out.
Outcome found(const ModelSpec& spec, const Target& target, size_t parts, int64_t arena_bytes, bool disk) {
  const Recipe recipe = asking(align_up(arena_bytes, target.page_bytes), disk);
  CheckpointSearch search(spec, recipe, target, parts);
  Outcome outcome;
  while (const std::optional<CheckpointSearch::Found> found = search.next()) {
    outcome = outcome_of(spec, target, found->choice);
    if (outcome.peak_bytes <= arena_bytes) break;
  }
  return outcome;
}

struct Comparison {
  int equal = 0, within_a_step = 0, worse = 0;
};

Comparison compare(const ModelSpec& spec, const Target& target, size_t parts, const std::vector<Outcome>& all,
                   bool disk = false) {
  const double step = hull_step(spec, target, parts, disk);
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
    const Outcome ours = found(spec, target, parts, budget, disk);
    EXPECT_LE(ours.peak_bytes, budget);
    const double more = ours.seconds - best;
    const double limit = step * (1 + 1e-9);  // sums of doubles
    ++(more <= 1e-12 ? result.equal : more <= limit ? result.within_a_step : result.worse);
    if (more > limit) std::printf("budget %ld: %.9f s, best %.9f s, a step %.9f s\n", budget, ours.seconds, best, step);
  }
  return result;
}

// Of three layers six make 262,144 layouts, which take minutes.
size_t parts_of_blocks() {
  if (testing::kSanitized) return 3;
  return std::getenv("SNUG_EXHAUSTIVE") != nullptr ? 6 : 4;
}

}  // namespace

// Attention over a ring of ranks is taken as one op, which passes keys and values round again where it is made again.
TEST(CheckpointSearch, finds_a_choice_for_ranks_that_pass_keys_round) {
  Recipe recipe = asking();
  recipe.batch = 1;
  recipe.seq_len = 2048;
  ModelSpec spec = decoder_of(3);
  spec.max_position = recipe.seq_len;
  recipe.parallel.ranks = recipe.parallel.context = 4;
  recipe.parallel.context_comm = ContextComm::p2p;
  const Target target = machine();
  const auto outcome = [&](const SavedChoice& choice) {
    Program program = compile(spec, recipe, &choice);
    fit_to_target(program, target);
    return Outcome{lay_out(program).device().bytes, step_time(target.cost, program).seconds};
  };
  const Outcome all = outcome({});
  recipe.memory_bytes = align_up(all.peak_bytes - 1024, target.page_bytes);
  CheckpointSearch search(spec, recipe, target, 4);
  Outcome less = all;
  while (const std::optional<CheckpointSearch::Found> found = search.next())
    if ((less = outcome(found->choice)).peak_bytes < all.peak_bytes) break;
  EXPECT_LT(less.peak_bytes, all.peak_bytes);
  EXPECT_GT(less.seconds, all.seconds);
}

// Every subset of every layer, laid out.
TEST(CheckpointSearch, is_within_one_step_of_one_block_of_the_best_of_all_choices) {
  const ModelSpec spec = decoder_of(3);
  const Target target = machine();
  const size_t parts = parts_of_blocks();
  const auto options = choices_of_layer(spec, target, parts);
  std::vector<Outcome> all;
  for (const auto& first : options)
    for (const auto& second : options)
      for (const auto& third : options) all.push_back(outcome_of(spec, target, choice_of({&first, &second, &third})));
  const Comparison result = compare(spec, target, parts, all);
  std::printf("%zu layouts: %d budgets met as the best does, %d within a step\n", all.size(), result.equal,
              result.within_a_step);
  EXPECT_EQ(result.worse, 0);
}

// Kept, made again or on disk, of every layer, and the inputs of blocks in memory or on disk; on disks that take from half
// of a forward to four of them for what a block saves. What no copy hides behind, where a run of blocks begins and ends, the
// search reckons with only roughly: of twelve budgets one may be further from the best, on three layers.
TEST(CheckpointSearch, is_with_disk_mostly_within_one_step_of_one_block_of_the_best_of_all_choices) {
  const ModelSpec spec = decoder_of(3);
  const bool exhaustive = std::getenv("SNUG_EXHAUSTIVE") != nullptr;
  const size_t parts = exhaustive ? 3 : 2;
  for (const double forwards : exhaustive ? std::vector<double>{0.5, 1.5, 4.0} : std::vector<double>{1.5}) {
    Target target = machine();
    const Program program = all_kept(spec, target);
    double saved = 0;
    for (StorageId id : program.blocks.front().saved) saved += static_cast<double>(program.storage(id).bytes);
    double seconds = 0;
    for (const Item& item : program.region(Section::blocks).items)
      if (const Op* op = item.op()) seconds += seconds_of(target.cost, program, *op);
    for (const CostClass link : {CostClass::to_disk, CostClass::from_disk})
      target.cost.rate(link).bytes = saved / (forwards * seconds);
    const auto options = choices_of_layer(spec, target, parts, true);
    std::vector<Outcome> all;
    for (const bool inputs_away : {false, true})
      for (const auto& first : options)
        for (const auto& second : options)
          for (const auto& third : thinned(options, 4))
            all.push_back(outcome_of(spec, target, choice_of({&first, &second, &third}, inputs_away)));
    const Comparison result = compare(spec, target, parts, all, true);
    std::printf("%.1f forwards: %zu layouts: %d budgets met as the best does, %d within a step\n", forwards, all.size(),
                result.equal, result.within_a_step);
    EXPECT_LE(result.worse, 1);
  }
}

// Neither than making again alone nor than having all on disk.
TEST(CheckpointSearch, is_with_disk_no_slower_than_with_either) {
  const bool exhaustive = std::getenv("SNUG_EXHAUSTIVE") != nullptr;
  for (const char* name : {"SmolLM2-135M", "gpt2", "gemma-2-2b"}) {
    if (!exhaustive && std::string_view(name) != "SmolLM2-135M") continue;
    const ModelSpec spec = *find_model(name);
    for (const double rate : thinned(std::vector{0.2e9, 1e9, 5e9}, 3)) {
      Target target = machine();
      target.cost.rate(CostClass::to_disk).bytes = target.cost.rate(CostClass::from_disk).bytes = rate;
      const auto planned = [&](bool disk, bool to_budget, int64_t budget) {
        Recipe recipe = asking(budget, disk);
        recipe.batch = 2;
        recipe.seq_len = 256;
        recipe.gradient_checkpointing = recipe.checkpoint_to_budget = to_budget;
        return make_plan(spec, recipe, target);
      };
      const Plan away = planned(true, false, kRoomy);
      const int64_t least = planned(true, true, 1).peak_bytes, most = planned(false, false, kRoomy).peak_bytes;
      double before = HUGE_VAL;
      for (int64_t budget : budgets(least, most)) {
        const Plan with = planned(true, true, budget), without = planned(false, true, budget);
        EXPECT_TRUE(with.fits()) << name << " in " << budget;
        double either = without.fits() ? without.step_time.seconds : HUGE_VAL;
        if (away.peak_bytes <= budget) either = std::min(either, away.step_time.seconds);
        EXPECT_LE(with.step_time.seconds, either * (1 + 1e-9)) << name << " in " << budget;
        EXPECT_LE(with.step_time.seconds, before * 1.01) << name << " in " << budget;
        before = with.step_time.seconds;
      }
    }
  }
}

// Six layers: every number of blocks with each choice that no other beats, and every choice of the last.
TEST(CheckpointSearch, is_within_one_step_of_the_best_of_six_layers) {
  const ModelSpec spec = decoder_of(6);
  const Target target = machine();
  const size_t parts = parts_of_blocks();
  // Alone: of one layer, what takes no more bytes and no more time than another.
  const auto options = choices_of_layer(spec, target, parts);
  std::vector<Outcome> alone;
  for (const auto& option : options) {
    alone.push_back(outcome_of(spec, target, choice_of(std::vector<const OfLayer*>(6, &option))));
  }
  std::vector<const OfLayer*> unbeaten;
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
  std::vector<const OfLayer*> layers(6);
  const std::function<void(size_t, size_t)> assign = [&](size_t layer, size_t from) {
    if (layer == 5) {
      for (const auto* last : unbeaten) {
        layers[5] = last;
        all.push_back(outcome_of(spec, target, choice_of(layers)));
      }
      return;
    }
    for (size_t i = from; i < unbeaten.size(); ++i) {
      layers[layer] = unbeaten[i];
      assign(layer + 1, i);
    }
  };
  assign(0, 0);
  const Comparison result = compare(spec, target, parts, all);
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

// Below what blocks' inputs take, fewer of them are kept at once, as many as fit; where things may wait on disk they do so.
TEST(CheckpointSearch, keeps_fewer_inputs_where_all_of_them_do_not_fit) {
  const ModelSpec spec = decoder_of(12);
  const auto planned = [&](int64_t memory_bytes, bool disk) {
    return make_plan(spec, asking(memory_bytes, disk), machine());
  };
  Recipe whole = asking();
  whole.checkpoint_to_budget = false;
  const auto with_inputs = [&](int64_t inputs) {
    whole.checkpoint_inputs = inputs;
    return make_plan(spec, whole, machine()).peak_bytes;
  };
  const int64_t all = planned(1, true).saved.inputs, least = with_inputs(5);
  EXPECT_EQ(all, 0);
  for (const int64_t memory : {with_inputs(9), with_inputs(7) + 1000, least}) {
    const Plan plan = planned(memory, false);
    ASSERT_TRUE(plan.fits()) << memory;
    ASSERT_GT(plan.saved.inputs, 0);
    EXPECT_EQ(plan.peak_bytes, with_inputs(plan.saved.inputs));
    EXPECT_GT(with_inputs(plan.saved.inputs + 1), memory);
  }
  const Plan none = planned(least - 1, false);
  EXPECT_FALSE(none.fits());
  EXPECT_EQ(none.peak_bytes, least);
}

TEST(CheckpointSearch, keeps_everything_where_it_fits_and_as_little_as_can_be_where_nothing_does) {
  const ModelSpec spec = decoder_of(4);
  const Target target = machine();
  for (const bool disk : {false, true}) EXPECT_TRUE(make_plan(spec, asking(kRoomy, disk), target).saved.keeps_all());
  const Plan least = make_plan(spec, asking(1), target);
  EXPECT_FALSE(least.fits());
  Recipe every = asking(1);
  every.checkpoint_to_budget = false;
  EXPECT_LE(least.peak_bytes, make_plan(spec, every, target).peak_bytes);
}

}  // namespace snug::testing
