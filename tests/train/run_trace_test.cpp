// The trace of a run, told of every op in the order in which an Executor takes them.

#include "train/run_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "model/catalogue.h"

namespace snug::testing {

namespace {

using Json = nlohmann::json;

// Tells `observer` of a region's ops; micro-batches and regions that are skipped as told.
struct Walk {
  const Plan& plan;
  Observer& observer;
  int64_t micro_batches;
  std::string skipped = {};
  int64_t layer = 0, chunk = 0, ops = 0;

  void run(const Region& region) {
    if (region.name == skipped) return;
    const int64_t count = region.axis == Axis::micro_batch ? micro_batches : region.count;
    for (int64_t i = 0; i < count; ++i) {
      if (region.axis == Axis::layer) layer = region.layer_of(i);
      if (region.axis == Axis::chunk) chunk = i;
      for (const Item& item : region.items) {
        if (const Region* child = item.region()) run(*child);
        if (const Op* op = item.op()) tell(*op);
      }
    }
    if (region.axis == Axis::layer) layer = 0;
    if (region.axis == Axis::chunk) chunk = 0;
  }

  void tell(const Op& op) {
    const Binding binding{plan.program, plan.layout, {}, layer, chunk};
    observer.before(op, binding);
    observer.after(op, binding);
    ++ops;
  }
};

Plan plan_of(bool paged) {
  Recipe recipe;
  recipe.method = Method::full;
  recipe.seq_len = 64;
  recipe.accumulation = 5;
  recipe.pages_states = paged;
  return make_plan(*find_model("HuggingFaceTB/SmolLM2-135M"), recipe,
                   {.threads = 2, .memory_bytes = int64_t{1} << 36, .runtime_bytes = 1 << 20});
}

// Names of slices in the order of their begin, the outer first.
std::vector<std::string> names_in(const std::filesystem::path& file, bool groups_only = true) {
  Json list = Json::parse(std::ifstream(file))["traceEvents"];
  std::vector<std::tuple<double, double, std::string>> slices;
  for (const Json& event : list)
    if (event["ph"] == "X") slices.emplace_back(event["ts"], -event["dur"].get<double>(), event["name"]);
  std::stable_sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
    return std::pair(std::get<0>(a), std::get<1>(a)) < std::pair(std::get<0>(b), std::get<1>(b));
  });
  std::vector<std::string> names;
  for (const auto& [begin, length, name] : slices)
    if (!groups_only || name.find(" of ") != std::string::npos) names.push_back(name);
  return names;
}

class RunTraceFile : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }
  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("snug-run-trace-" + std::to_string(getpid()) + ".json");
};

TEST_F(RunTraceFile, numbers_repetitions_that_the_plans_trace_leaves_out) {
  const Plan plan = plan_of(true);
  RunTrace trace(file_, plan);
  trace.expect(plan.program, plan.layout);
  trace.watch(plan.program);
  Walk walk{plan, trace, 4};
  walk.run(plan.program.region(Section::step));
  trace.leave();
  trace.finish();
  std::vector<std::string> names = names_in(file_);
  const std::vector<std::string> first(names.begin(), names.begin() + 4);
  EXPECT_EQ(first, (std::vector<std::string>{"micro-batch 1 of 5", "micro-batch 2 of 5", "micro-batch 3 of 5",
                                             "micro-batch 4 of 5"}));
  std::vector<std::string> expected(first);  // then every chunk of every paged state, from the first
  for (const Item& item : plan.program.region(Section::optimizer).items)
    if (const Region* region = item.region())
      for (int64_t i = 0; i < region->count; ++i)
        expected.push_back(region->name + " " + std::to_string(i + 1) + " of " + std::to_string(region->count));
  EXPECT_EQ(names, expected);
  EXPECT_GT(names.size(), 100u);
}

TEST_F(RunTraceFile, what_is_skipped_is_not_there) {
  const Plan plan = plan_of(false);
  RunTrace trace(file_, plan);
  trace.expect(plan.program, plan.layout);
  trace.watch(plan.program);
  Walk{plan, trace, 1, "optimizer"}.run(plan.program.region(Section::step));
  trace.leave();
  trace.finish();
  const std::vector<std::string> names = names_in(file_, false);
  EXPECT_EQ(std::count(names.begin(), names.end(), "backward"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "layer 29"), 2);
  EXPECT_EQ(std::count(names.begin(), names.end(), "optimizer"), 0);
}

TEST_F(RunTraceFile, ends_after_the_most_ops_and_says_so) {
  const Plan plan = plan_of(false);
  RunTrace trace(file_, plan, 100);
  trace.expect(plan.program, plan.layout);
  trace.watch(plan.program);
  Walk walk{plan, trace, 5};
  walk.run(plan.program.region(Section::step));
  trace.leave();
  trace.finish();
  EXPECT_GT(walk.ops, 1000);
  const std::vector<std::string> names = names_in(file_, false);
  EXPECT_LT(names.size(), 150u);
  EXPECT_EQ(std::count(names.begin(), names.end(), "the trace ends after this many ops"), 1);
}

TEST_F(RunTraceFile, is_there_only_when_it_is_finished) {
  const Plan plan = plan_of(false);
  {
    RunTrace trace(file_, plan);
    EXPECT_FALSE(std::filesystem::exists(file_));
  }
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(RunTraceFile, planning_for_it_adds_the_same_to_every_figure) {
  const Plan plain = plan_of(false);
  Plan traced = plain;
  plan_tracing(traced);
  const int64_t more = traced.peak_bytes - plain.peak_bytes;
  EXPECT_GE(more, 2 << 20);
  EXPECT_LT(more, 8 << 20);
  EXPECT_EQ(traced.runtime_bytes - plain.runtime_bytes, more);
  for (size_t i = 0; i < plain.stage_peaks.size(); ++i) {
    if (plain.stage_peaks[i]) {
      EXPECT_EQ(*traced.stage_peaks[i] - *plain.stage_peaks[i], more);
    }
  }
}

}  // namespace

}  // namespace snug::testing
