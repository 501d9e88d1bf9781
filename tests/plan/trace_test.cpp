// The plan's trace as a viewer reads it: valid JSON, slices that nest, counters that add up to the plan.

#include "plan/trace.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <map>

#include "model/catalogue.h"
#include "program/rules.h"

namespace snug::testing {

namespace {

Plan small_plan(const std::string& name = "") {
  Recipe recipe;
  recipe.seq_len = 128;
  recipe.accumulation = 3;
  ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  if (!name.empty()) model.name = name;
  return make_plan(model, recipe, {.threads = 2, .memory_bytes = int64_t{1} << 36, .runtime_bytes = 1 << 20});
}

std::string trace_of(const Plan& plan, const SecondsOf& seconds_of = {}) {
  std::string text;
  write_trace(
      plan, [&](std::string_view piece) { text += piece; }, seconds_of);
  return text;
}

struct Slice {
  int64_t begin, end;  // nanoseconds
  std::string name;
  int64_t thread = 1;
};

struct Trace {
  std::vector<Slice> slices;
  std::vector<std::map<std::string, int64_t>> memory, away;
  std::map<int64_t, std::string> threads;
  std::string process;
};

Trace read(const std::string& text) {
  simdjson::dom::parser parser;
  const simdjson::dom::element root = parser.parse(text);
  Trace trace;
  for (const simdjson::dom::element event : root["traceEvents"].get_array()) {
    const std::string_view kind = event["ph"];
    if (kind == "X") {
      const auto ns = [](double micros) { return static_cast<int64_t>(micros * 1000 + 0.5); };
      const int64_t begin = ns(event["ts"].get_double());
      trace.slices.push_back({begin, begin + ns(event["dur"].get_double()), std::string(std::string_view(event["name"])),
                              event["tid"].get_int64()});
    } else if (kind == "C") {
      std::map<std::string, int64_t>& values =
          (std::string_view(event["name"]) == "away" ? trace.away : trace.memory).emplace_back();
      for (const auto [key, value] : event["args"].get_object()) values[std::string(key)] = value.get_int64();
    } else {
      EXPECT_EQ(kind, "M");
      if (std::string_view(event["name"]) == "process_name")
        trace.process = std::string(std::string_view(event["args"]["name"]));
      else
        trace.threads[event["tid"].get_int64()] = std::string(std::string_view(event["args"]["name"]));
    }
  }
  return trace;
}

// Every slice lies in the one that is open when it begins.
::testing::AssertionResult nests(std::vector<Slice> slices) {
  std::stable_sort(slices.begin(), slices.end(),
                   [](const Slice& a, const Slice& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  std::vector<Slice> open;
  for (const Slice& slice : slices) {
    while (!open.empty() && open.back().end <= slice.begin) open.pop_back();
    if (!open.empty() && slice.end > open.back().end)
      return ::testing::AssertionFailure() << slice.name << " ends after " << open.back().name << ", in which it begins";
    open.push_back(slice);
  }
  return ::testing::AssertionSuccess();
}

TEST(Trace, slices_nest_and_name_stages_layers_and_ops) {
  const Trace trace = read(trace_of(small_plan()));
  EXPECT_TRUE(nests(trace.slices));
  const auto count = [&](const char* name) {
    return std::count_if(trace.slices.begin(), trace.slices.end(), [&](const Slice& s) { return s.name == name; });
  };
  EXPECT_EQ(count("step"), 1);
  EXPECT_EQ(count("micro-batch 1 of 3"), 1);
  EXPECT_EQ(count("micro-batch 2 of 3"), 0);
  EXPECT_EQ(count("forward"), 2);
  EXPECT_EQ(count("backward"), 2);
  EXPECT_EQ(count("layer 29"), 4);
}

TEST(Trace, the_largest_sum_of_the_counter_is_the_peak_less_holes) {
  const Plan plan = small_plan();
  int64_t most = 0;
  for (const auto& values : read(trace_of(plan)).memory) {
    int64_t sum = 0;
    for (const auto& [key, value] : values) sum += value;
    most = std::max(most, sum);
  }
  EXPECT_EQ(most, plan.peak_bytes - holes_of(plan));
}

TEST(Trace, times_are_the_callers) {
  const Plan plan = small_plan();
  const SecondsOf seconds = [](const Program& program, const Op& op) {
    return 1e-9 * std::round(1 + rule_of(op.kind).work(program, op).bytes / 1e3);
  };
  const Trace trace = read(trace_of(plan, seconds));
  EXPECT_TRUE(nests(trace.slices));
  double sum = 0;
  for (const TimelineStep& step : unfold(plan.program, plan.layout).steps) sum += seconds(plan.program, *step.op);
  int64_t end = 0;
  for (const Slice& slice : trace.slices) end = std::max(end, slice.end);
  EXPECT_NEAR(static_cast<double>(end), sum * 1e9, 2);
}

// A disk that gives 1 GB/s or a tenth of that: copies have lanes of their own, and what compute waits for is seen.
TEST(Trace, copies_run_on_their_own_lanes_and_waits_are_slices) {
  for (const double rate : {1e9, 1e8}) {
    Recipe recipe;
    recipe.seq_len = 128;
    recipe.offload_activations = recipe.offload_weights = true;
    Target target{.threads = 2, .memory_bytes = int64_t{1} << 36, .runtime_bytes = 1 << 20};
    target.cost = nominal_cpu_rates(2);
    for (const CostClass link : {CostClass::from_disk, CostClass::to_disk}) target.cost.rate(link).bytes = rate;
    const Plan plan = make_plan(*find_model("HuggingFaceTB/SmolLM2-135M"), recipe, target);
    const Trace trace =
        read(trace_of(plan, [&](const Program& program, const Op& op) { return seconds_of(target.cost, program, op); }));
    EXPECT_EQ(trace.threads, (std::map<int64_t, std::string>{{1, "ops"}, {2, "copy_in"}, {3, "copy_out"}}));
    std::map<int64_t, std::vector<Slice>> by_thread;
    int64_t waited = 0, step = 0;
    for (const Slice& slice : trace.slices) {
      by_thread[slice.thread].push_back(slice);
      if (slice.name == "waits for copies") waited += slice.end - slice.begin;
      if (slice.name == "step") step = slice.end - slice.begin;
    }
    for (const auto& [thread, slices] : by_thread) EXPECT_TRUE(nests(slices)) << thread;
    const MemoryTimeline timeline = unfold(plan.program, plan.layout);
    const auto fetches = std::count_if(timeline.steps.begin(), timeline.steps.end(),
                                       [](const TimelineStep& s) { return s.op->kind == OpKind::page_in; });
    EXPECT_EQ(static_cast<int64_t>(by_thread[2].size()), fetches);
    const double planned = step_time(target.cost, plan.program).seconds;
    EXPECT_NEAR(static_cast<double>(step) * 1e-9, planned, 0.02 * planned) << rate;
    EXPECT_GT(waited, rate < 1e9 ? step / 2 : 0);
    int64_t most = 0;
    for (const auto& values : trace.away) {
      int64_t sum = 0;
      for (const auto& [role, bytes] : values) sum += bytes;
      most = std::max(most, sum);
    }
    EXPECT_EQ(most, plan.layout.of(Home::disk).bytes) << rate;
  }
}

TEST(Trace, a_hostile_name_stays_text) {
  const std::string name = "a\"}],\"x\":[{\n\x01\\</script>\xff";
  const Trace trace = read(trace_of(small_plan(name)));
  EXPECT_EQ(trace.process, "snug plan a\"}],\"x\":[{\n\x01\\</script>\xEF\xBF\xBD");
}

TEST(Trace, the_largest_model_with_many_micro_batches_stays_small) {
  Recipe recipe;
  recipe.gradient_checkpointing = true;
  recipe.accumulation = 64;
  const Plan plan =
      make_plan(*find_model("meta-llama/Llama-3.1-405B"), recipe, {.threads = 2, .memory_bytes = int64_t{1} << 40});
  EXPECT_LT(trace_of(plan).size(), size_t{24} << 20);
}

}  // namespace

}  // namespace snug::testing
