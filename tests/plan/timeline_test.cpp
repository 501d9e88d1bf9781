// The timeline against three counts of the same bytes: the Layout's at each point, the independent unfolding of the tests,
// and the plan's own peak.

#include "plan/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "families.h"
#include "model/catalogue.h"
#include "model/config.h"
#include "plan/support_unfold.h"

namespace snug::testing {

namespace {

struct Case {
  const char* name;
  const char* model;
  void (*change)(Recipe&);
};

void nothing(Recipe&) {}

const Case kCases[] = {
    {"lora", "HuggingFaceTB/SmolLM2-135M", nothing},
    {"checkpointing", "HuggingFaceTB/SmolLM2-135M", [](Recipe& r) { r.gradient_checkpointing = true; }},
    {"some layers recomputed", "HuggingFaceTB/SmolLM2-135M",
     [](Recipe& r) {
       r.gradient_checkpointing = true;
       r.checkpoint_layers = {0, 1, 2, 7, 8, 20};
     }},
    {"full", "HuggingFaceTB/SmolLM2-135M", [](Recipe& r) { r.method = Method::full; }},
    {"paged", "HuggingFaceTB/SmolLM2-135M",
     [](Recipe& r) {
       r.method = Method::full;
       r.pages_states = true;
     }},
    {"optimizer in backward", "HuggingFaceTB/SmolLM2-135M",
     [](Recipe& r) {
       r.method = Method::full;
       r.optimizer_in_bwd = true;
       r.max_grad_norm = 0;
     }},
    {"accumulation and evaluation", "HuggingFaceTB/SmolLM2-135M",
     [](Recipe& r) {
       r.accumulation = 5;
       r.eval_data = "eval.jsonl";
     }},
    {"four bits", "meta-llama/Llama-3.2-1B", [](Recipe& r) { r.quantize.in_4bit = true; }},
    {"gemma", "gemma2", nothing},
    {"experts", "mixtral", nothing},
    {"experts, optimizer in backward", "mixtral",
     [](Recipe& r) {
       r.method = Method::full;
       r.optimizer_in_bwd = true;
       r.max_grad_norm = 0;
       r.pages_states = true;
     }},
    {"layers unlike, all trained", "deepseek_v3", [](Recipe& r) { r.method = Method::full; }},
    {"layers unlike, some recomputed", "deepseek_v3",
     [](Recipe& r) {
       r.lora.target_modules = {"all-linear"};
       r.gradient_checkpointing = true;
       r.checkpoint_layers = {2, 4};
       r.eval_data = "eval.jsonl";
     }},
    {"layers unlike, all recomputed", "deepseek_v2", [](Recipe& r) { r.gradient_checkpointing = true; }},
    {"layers unlike, optimizer in backward", "deepseek_v2",
     [](Recipe& r) {
       r.method = Method::full;
       r.optimizer_in_bwd = true;
       r.max_grad_norm = 0;
       r.pages_states = true;
     }},
    {"inputs recomputed", "HuggingFaceTB/SmolLM2-135M",
     [](Recipe& r) {
       r.gradient_checkpointing = true;
       r.checkpoint_inputs = 9;
     }},
    {"layers unlike, inputs recomputed", "deepseek_v3",
     [](Recipe& r) {
       r.gradient_checkpointing = true;
       r.checkpoint_inputs = 3;
     }},
};

ModelSpec model_of(const std::string& name) {
  for (const auto& [family, config] : test::families(1000))
    if (family == name) return parse_config(config.dump(), name);
  for (const auto& [family, config] : test::unlike_layers(1000))
    if (family == name) return parse_config(config.dump(), name);
  if (const auto known = find_model(name)) return *known;
  throw std::logic_error("no model " + name);
}

Plan plan_of(const Case& which) {
  Recipe recipe;
  recipe.bf16 = true;
  recipe.batch = 2;
  recipe.seq_len = 256;
  which.change(recipe);
  return make_plan(model_of(which.model), recipe,
                   {.threads = 2, .memory_bytes = int64_t{1} << 40, .runtime_bytes = 1 << 20});
}

TEST(Timeline, the_most_bytes_alive_are_the_plans_peak_less_its_holes) {
  for (const Case& which : kCases) {
    const Plan plan = plan_of(which);
    const MemoryTimeline timeline = unfold(plan.program, plan.layout);
    EXPECT_EQ(timeline.peak_bytes + plan.runtime_bytes, plan.peak_bytes - holes_of(plan)) << which.name;
    EXPECT_EQ(timeline.peak_bytes, sum_of(timeline.live[static_cast<size_t>(timeline.peak_step)])) << which.name;
    EXPECT_EQ(timeline.stage_of(timeline.steps[static_cast<size_t>(timeline.peak_step)]), plan.peak_stage) << which.name;
    EXPECT_GE(holes_of(plan), 0);
  }
}

TEST(Timeline, the_most_of_each_points_repetitions_is_what_the_layout_counts_there) {
  for (const Case& which : kCases) {
    const Plan plan = plan_of(which);
    const MemoryTimeline timeline = unfold(plan.program, plan.layout);
    std::vector<int64_t> most(plan.layout.device().live_bytes.size(), -1);
    for (size_t i = 0; i < timeline.steps.size(); ++i) {
      int64_t& reached = most[static_cast<size_t>(timeline.steps[i].point)];
      reached = std::max(reached, sum_of(timeline.live[i]) - plan.layout.device().run_bytes);
    }
    EXPECT_EQ(most, plan.layout.device().live_bytes) << which.name;
  }
}

TEST(Timeline, every_life_is_the_independent_unfoldings) {
  for (const Case& which : kCases) {
    const Plan plan = plan_of(which);
    if (plan.program.micro_batches > 1 || plan.layout.of(Home::disk).bytes > 0)
      continue;  // folded there; lanes are not looked at
    const MemoryTimeline timeline = unfold(plan.program, plan.layout);
    std::multiset<std::vector<int64_t>> ours, theirs;
    for (const TimelineLife& life : timeline.lives) ours.insert({life.storage, life.instance, life.birth, life.death});
    for (const UnfoldedLife& life : unfold(plan.program))
      theirs.insert({life.storage, life.instance, life.birth, life.death});
    EXPECT_EQ(ours, theirs) << which.name;
  }
}

TEST(Timeline, no_two_lives_share_a_byte_at_one_time) {
  for (const Case& which : {kCases[0], kCases[2], kCases[5]}) {
    const Plan plan = plan_of(which);
    const MemoryTimeline timeline = unfold(plan.program, plan.layout);
    for (size_t i = 0; i < timeline.lives.size(); ++i) {
      const TimelineLife& a = timeline.lives[i];
      ASSERT_GE(a.offset, plan.layout.device().run_bytes);
      ASSERT_LE(a.offset + a.bytes, plan.layout.device().bytes);
      for (size_t j = i + 1; j < timeline.lives.size() && timeline.lives[j].birth <= a.death; ++j) {
        const TimelineLife& b = timeline.lives[j];
        ASSERT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset)
            << which.name << ": " << label_of(plan.program.storage(a.storage), a.instance) << " and "
            << label_of(plan.program.storage(b.storage), b.instance);
      }
    }
  }
}

TEST(Timeline, groups_nest_and_hold_every_step) {
  const Plan plan = plan_of(kCases[6]);
  const MemoryTimeline timeline = unfold(plan.program, plan.layout);
  for (const TimelineGroup& group : timeline.groups) {
    if (group.parent == kNone) continue;
    const TimelineGroup& parent = timeline.groups[static_cast<size_t>(group.parent)];
    EXPECT_LE(parent.first_step, group.first_step);
    EXPECT_GE(parent.last_step, group.last_step);
  }
  for (size_t i = 0; i < timeline.steps.size(); ++i) {
    const TimelineGroup& group = timeline.groups[static_cast<size_t>(timeline.steps[i].group)];
    EXPECT_LE(group.first_step, static_cast<int32_t>(i));
    EXPECT_GE(group.last_step, static_cast<int32_t>(i));
  }
}

TEST(Timeline, of_many_micro_batches_the_first_and_the_last_are_shown) {
  const Plan plan = plan_of(kCases[6]);
  const MemoryTimeline timeline = unfold(plan.program, plan.layout);
  std::vector<std::string> labels;
  for (const TimelineGroup& group : timeline.groups)
    if (group.region->axis == Axis::micro_batch) labels.push_back(label_of(group));
  EXPECT_EQ(labels, (std::vector<std::string>{"micro-batch 1 of 5", "micro-batch 5 of 5"}));
  EXPECT_GT(timeline.hidden_steps, 0);
  int64_t all = 0;  // shown and hidden are every op that runs
  const auto count = [&](const auto& self, const Region& region) -> int64_t {
    int64_t sum = 0;
    for (const Item& item : region.items) sum += item.op() != nullptr ? 1 : self(self, *item.region());
    return sum * region.count;
  };
  all = count(count, plan.program.root);
  EXPECT_EQ(static_cast<int64_t>(timeline.steps.size()) + timeline.hidden_steps, all);
}

TEST(Timeline, a_thousand_layers_stay_bounded_and_keep_the_peak) {
  ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  model.layers = 1500;
  Recipe recipe;
  recipe.seq_len = 32;
  recipe.accumulation = 1000;
  const Plan plan = make_plan(model, recipe, {.threads = 2, .memory_bytes = int64_t{1} << 40});
  const MemoryTimeline timeline = unfold(plan.program, plan.layout);
  EXPECT_LT(timeline.steps.size(), size_t{200000});
  EXPECT_EQ(timeline.peak_bytes + plan.runtime_bytes, plan.peak_bytes - holes_of(plan));
}

}  // namespace

}  // namespace snug::testing
