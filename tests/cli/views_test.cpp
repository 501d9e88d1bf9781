// What plan and train write to look at: traces, as a viewer reads them, and the page, as a browser shows it.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/support_browser.h"
#include "cli/support_workspace.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

struct Slice {
  int64_t begin, end;  // nanoseconds
  std::string name, stage;
};

struct Trace {
  std::vector<Slice> slices;  // by begin, the outer first
  std::vector<int64_t> planned, measured;
  std::set<std::string> roles;  // that have bytes at some time
  std::map<std::string, std::string> facts;

  // Names inside the n-th slice of this name, in order.
  std::vector<std::string> inside(const std::string& name, int n) const {
    std::vector<std::string> names;
    int64_t begin = 0, end = -1;
    for (const Slice& slice : slices) {
      if (slice.name == name && n-- == 0) {
        begin = slice.begin;
        end = slice.end;
      } else if (slice.begin >= begin && slice.end <= end) {
        names.push_back(slice.name);
      }
    }
    return names;
  }
};

Trace read_trace(const fs::path& file) {
  Trace trace;
  const Json json = Json::parse(contents(file));
  for (const auto& [key, value] : json["otherData"].items()) trace.facts[key] = value;
  for (const Json& event : json["traceEvents"]) {
    const auto ns = [](const Json& micros) { return std::llround(micros.get<double>() * 1000); };
    if (event["ph"] == "X") {
      const int64_t begin = ns(event["ts"]);
      trace.slices.push_back({begin, begin + ns(event["dur"]), event["name"], event["cat"]});
    } else if (event["ph"] == "C") {
      int64_t sum = 0;
      for (const auto& [key, value] : event["args"].items()) {
        sum += value.get<int64_t>();
        if (value > 0 && event["name"] == "memory") trace.roles.insert(key);
      }
      (event["name"] == "memory" ? trace.planned : trace.measured).push_back(sum);
    }
  }
  std::stable_sort(trace.slices.begin(), trace.slices.end(),
                   [](const Slice& a, const Slice& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  return trace;
}

::testing::AssertionResult nests(const Trace& trace) {
  std::vector<Slice> open;
  for (const Slice& slice : trace.slices) {
    while (!open.empty() && open.back().end <= slice.begin) open.pop_back();
    if (!open.empty() && slice.end > open.back().end)
      return ::testing::AssertionFailure() << slice.name << " ends after " << open.back().name;
    open.push_back(slice);
  }
  return ::testing::AssertionSuccess();
}

int64_t most(const std::vector<int64_t>& values) { return *std::max_element(values.begin(), values.end()); }

const std::vector<std::string> kShortPlan = {"--seq", "64", "--accum", "2", "--max-steps", "3", "--save-steps", "0"};

TEST(TraceFlag, plan_and_run_write_the_same_ops_in_the_same_order) {
  const Workspace work;
  const std::string planned = (work / "plan.json").string(), ran = (work / "run.json").string();
  const ProcessResult plan =
      run_program(joined({"plan", work.model().string(), "--threads", "2", "--trace", planned, "--json"},
                         {kShortPlan.begin(), kShortPlan.begin() + 4}));
  ASSERT_EQ(plan.exit_code, 0) << plan.error;
  const ProcessResult run = run_program(work.train(work / "out", joined(kShortPlan, {"--trace", ran})));
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const Trace of_plan = read_trace(planned), of_run = read_trace(ran);
  EXPECT_TRUE(nests(of_plan));
  EXPECT_TRUE(nests(of_run));
  const std::vector<std::string> step = of_plan.inside("step", 0);
  EXPECT_GT(step.size(), 100u);
  EXPECT_EQ(of_run.inside("step", 0), step);
  EXPECT_EQ(of_run.inside("step", 1), step);
  EXPECT_EQ(of_run.inside("step", 2), std::vector<std::string>());  // bounded: two steps
  EXPECT_EQ(of_run.inside("load", 0), std::vector<std::string>{"load"});
  EXPECT_EQ(unfinished(work.path()), std::vector<std::string>());
}

TEST(TraceFlag, counters_are_the_plans_and_the_systems) {
  const Workspace work;
  const ProcessResult run =
      run_program(work.train(work / "out", joined(kShortPlan, {"--trace", (work / "run.json").string()})));
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const Trace trace = read_trace(work / "run.json");
  const Json summary = read_metrics(work / "out").back()["summary"];
  const int64_t peak = summary["planned_peak_bytes"];
  EXPECT_EQ(trace.facts.at("peak_bytes"), std::to_string(peak));
  EXPECT_LE(most(trace.planned), peak);
  EXPECT_GT(most(trace.planned), peak * 9 / 10);
  ASSERT_FALSE(trace.measured.empty());
  if (!testing::kSanitized) {
    EXPECT_LE(most(trace.measured), summary["measured_peak_bytes"].get<int64_t>() + (1 << 20));
    EXPECT_LE(summary["measured_peak_bytes"].get<int64_t>(), peak);
  }
}

TEST(TraceFlag, a_traced_run_learns_the_same) {
  const Workspace work;
  ASSERT_EQ(run_program(work.train(work / "plain", kShortPlan)).exit_code, 0);
  ASSERT_EQ(run_program(work.train(work / "traced", joined(kShortPlan, {"--trace", (work / "t.json").string()}))).exit_code,
            0);
  EXPECT_EQ(step_lines(work / "plain"), step_lines(work / "traced"));
}

TEST(TraceFlag, rows_of_several_lengths_are_traced_in_their_own_programs) {
  const Workspace work;
  const ProcessResult run = run_program(
      work.train(work / "out", joined(kShortPlan, {"--packing", "false", "--trace", (work / "run.json").string()})));
  ASSERT_EQ(run.exit_code, 0) << run.error;
  EXPECT_TRUE(nests(read_trace(work / "run.json")));
  EXPECT_FALSE(read_trace(work / "run.json").inside("step", 1).empty());
}

TEST(ViewFlags, a_file_that_cannot_be_written_is_one_line_and_nothing_is_left) {
  const Workspace work;
  const std::string model = work.model().string(), nowhere = (work / "none/file").string();
  for (const std::vector<std::string>& words : {std::vector<std::string>{"plan", model, "--trace", nowhere},
                                                {"plan", model, "--html", nowhere},
                                                work.train(work / "out", joined(kShortPlan, {"--trace", nowhere}))}) {
    const ProcessResult result = run_program(words);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.output, "");
    EXPECT_NE(result.error.find("snug: " + nowhere + ": cannot be created"), std::string::npos) << result.error;
  }
  ProcessOptions small;
  small.limits[RLIMIT_FSIZE] = 4096;
  const ProcessResult full = run_program({"plan", model, "--html", (work / "page.html").string()}, small);
  EXPECT_EQ(full.exit_code, 1) << full.error;
  EXPECT_FALSE(fs::exists(work / "page.html"));
  EXPECT_EQ(unfinished(work.path()), std::vector<std::string>());
  EXPECT_EQ(run_program({"plan", model, "--html"}).exit_code, 2);
}

// ---- The page in a browser

class Page : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_browser()) GTEST_SKIP() << "no " << kBrowser << ": install chromium";
  }

  ProcessResult show(const std::string& file, const std::string& fragment = "") const {
    return show_page(work_ / file, fragment);
  }

  Json plan_page(const std::vector<std::string>& more, int exit_code = 0) const {
    const ProcessResult plan = run_program(
        joined({"plan", work_.model().string(), "--seq", "64", "--json", "--html", (work_ / "page.html").string()}, more));
    EXPECT_EQ(plan.exit_code, exit_code) << plan.error;
    return Json::parse(plan.output);
  }

  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
  static int64_t count(const std::string& text, const std::string& part) {
    int64_t n = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
  }

  const Workspace work_;
};

TEST_F(Page, shows_the_plans_peak_and_an_area_for_every_role_that_has_bytes) {
  const Json plan = plan_page({"--method", "full", "--accum", "3", "--trace", (work_ / "trace.json").string()});
  const ProcessResult page = show("page.html");
  EXPECT_TRUE(has(page.output, "data-ready=\"true\"")) << page.error;
  EXPECT_FALSE(has(page.error, "CONSOLE")) << page.error;
  EXPECT_TRUE(has(page.output, "data-peak-bytes=\"" + std::to_string(plan["peak_bytes"].get<int64_t>()) + "\""));
  const std::set<std::string> roles = read_trace(work_ / "trace.json").roles;
  EXPECT_GE(roles.size(), 7u);
  EXPECT_EQ(count(page.output, "class=\"area\""), static_cast<int64_t>(roles.size()));
  for (const std::string& role : roles) EXPECT_TRUE(has(page.output, "data-role=\"" + role + "\"")) << role;
  EXPECT_TRUE(has(page.output, "(the peak)"));
  EXPECT_FALSE(has(contents(work_ / "page.html"), "src=\"http"));
}

TEST_F(Page, an_op_in_the_address_shows_what_is_alive_there) {
  plan_page({});
  const ProcessResult first = show("page.html", "#op=1"), later = show("page.html", "#op=20");
  EXPECT_TRUE(has(first.output, "data-step=\"1\"")) << first.error;
  EXPECT_TRUE(has(later.output, "data-step=\"20\"")) << later.error;
  EXPECT_GT(count(later.output, "class=\"swatch\""), count(first.output, "class=\"swatch\""));  // activations came
  EXPECT_TRUE(has(later.output, "layer 0"));
}

// What lies on disk is in neither the areas nor the arena; copies have rows of their own.
TEST_F(Page, what_waits_on_disk_stands_beside_the_memory) {
  const Json plan = plan_page({"--method", "full", "--offload-activations", "disk"});
  const ProcessResult page = show("page.html");
  EXPECT_FALSE(has(page.error, "CONSOLE")) << page.error;
  const auto number_behind = [&](const std::string& part) {
    const size_t at = page.output.find(part);
    return at == std::string::npos ? -1 : std::stol(page.output.substr(page.output.find("data-bytes=\"", at) + 12));
  };
  const auto peak = plan["peak_bytes"].get<int64_t>();
  EXPECT_LE(number_behind("class=\"total\""), peak);
  EXPECT_GT(number_behind("class=\"total\""), peak * 9 / 10);
  const int64_t elsewhere = number_behind("class=\"path elsewhere\"");
  EXPECT_GT(elsewhere, 0);
  EXPECT_LE(elsewhere, plan["homes"]["disk"].get<int64_t>());
  EXPECT_GT(count(page.output, "class=\"band copy\""), 3 * 10);
  for (const char* words : {">fetched<", ">sent<", "On disk", "saved activations"})
    EXPECT_TRUE(has(page.output, words)) << words;
}

// Appends a script to the page, which runs when it has drawn.
TEST_F(Page, pointer_and_keys_choose_the_op) {
  plan_page({});
  const std::string text = contents(work_ / "page.html");
  const auto after = [&](const std::string& script) {
    put(work_ / "moved.html",
        text + "<script>const chart = document.getElementById('chart'), box = chart.getBoundingClientRect();" + script +
            "</script>");
    const ProcessResult page = show("moved.html");
    EXPECT_FALSE(has(page.error, "CONSOLE")) << page.error;
    const size_t at = page.output.find("data-step=\"");
    return at == std::string::npos ? -1 : std::stol(page.output.substr(at + 11));
  };
  const std::string key = "const press = (key) => chart.dispatchEvent(new KeyboardEvent('keydown', {key}));";
  const int64_t peak = after("");
  EXPECT_GT(peak, 5);
  EXPECT_LT(after("chart.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + 90, clientY: box.top + 100}));"),
            5);
  EXPECT_EQ(after(key + "press('ArrowRight'); press('ArrowRight'); press('ArrowLeft');"), peak + 1);
  EXPECT_EQ(after(key + "press('Home'); press('+'); press('ArrowRight');"), 1);
  EXPECT_EQ(after(key + "press('End'); press('p');"), peak);
}

TEST_F(Page, hostile_names_stay_text) {
  const std::string hostile = "</script><script>document.documentElement.dataset.hacked='yes'</script>{{d3}}";
  const std::string plain = contents(work_.model() / "config.json");
  fs::create_directories(work_ / "<img src=x onerror=document.documentElement.dataset.hacked=1>");
  const fs::path model = work_ / "<img src=x onerror=document.documentElement.dataset.hacked=1>" / "config.json";
  put(model, plain);
  const ProcessResult plan =
      run_program({"plan", model.string(), "--output-dir", hostile, "--html", (work_ / "page.html").string()});
  ASSERT_EQ(plan.exit_code, 0) << plan.error;
  EXPECT_FALSE(has(contents(work_ / "page.html"), "<script>document."));
  const ProcessResult page = show("page.html");
  EXPECT_TRUE(has(page.output, "data-ready=\"true\"")) << page.error;
  EXPECT_FALSE(has(page.output, "data-hacked"));
  EXPECT_TRUE(has(page.output, "&lt;script&gt;document.documentElement"));  // shown, as text
}

TEST_F(Page, a_page_that_is_broken_is_noticed_here) {
  plan_page({});
  std::string text = contents(work_ / "page.html");
  text.replace(text.find("id=\"plan-data\">{") + 15, 1, "!");
  put(work_ / "broken.html", text);
  const ProcessResult page = show("broken.html");
  EXPECT_FALSE(has(page.output, "data-ready=\"true\""));
  EXPECT_TRUE(has(page.error, "CONSOLE"));
}

}  // namespace

}  // namespace snug::cli_tests
