// What snug explain writes to look at: the page of a snapshot, as a browser shows it, and its trace, as a viewer reads it;
// both against the same command's JSON and against the states that tests/golden/snapshots knows.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "cli/support_browser.h"
#include "cli/support_workspace.h"
#include "torch/support_write.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(SNUG_SOURCE_DIR) / "tests/golden/snapshots";
// Out of memory in pieces; expandable segments; a trace whose beginning is lost; frees that another stream delays; no times.
const char* const kSnapshots[] = {"fragmentation",   "unwinding", "mixed",       "ring", "pools", "expandable",
                                  "expandable_ring", "rounded",   "split_limit", "old",  "host"};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Json explained(const fs::path& snapshot, std::vector<std::string> more) {
  more.insert(more.begin(), {"explain", snapshot.string(), "--json"});
  const ProcessResult result = run_program(more);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  return Json::parse(result.output);
}

// What the page tells of itself, from a script that is appended to it and runs when it has drawn.
class SnapshotPage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_browser()) GTEST_SKIP() << "no " << kBrowser << ": install chromium";
  }

  // The value of `expression`, which may take turns with the page: it runs in an async function.
  Json ask(const std::string& expression, const std::string& fragment = "") const {
    const std::string text = contents(work_ / "page.html");
    put(work_ / "asked.html",
        text +
            "<script>(async () => { const moment = document.getElementById('moment').dataset; const answer = " + expression +
            "; const told = document.createElement('pre'); told.id = 'told';"
            "told.textContent = encodeURIComponent(JSON.stringify(answer)); document.body.append(told); })()</script>");
    const ProcessResult page = show_page(work_ / "asked.html", fragment);
    EXPECT_FALSE(has(page.error, "CONSOLE")) << page.error;
    EXPECT_TRUE(has(page.output, "data-ready=\"true\"")) << page.error;
    constexpr std::string_view kOpen = "<pre id=\"told\">";
    const size_t at = page.output.find(kOpen);
    if (at == std::string::npos) return nullptr;
    const size_t begin = at + kOpen.size();
    return Json::parse(decoded(page.output.substr(begin, page.output.find('<', begin) - begin)));
  }

  static std::string decoded(const std::string& text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '%') {
        out += text[i];
        continue;
      }
      out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    }
    return out;
  }

  Json page_of(const fs::path& snapshot) const { return explained(snapshot, {"--html", (work_ / "page.html").string()}); }

  const Workspace work_;
};

// Rows of the lists at the side, as {name, bytes}.
const std::string kRows =
    "[...document.querySelectorAll(`#${list} li`)].filter((row) => !row.hidden).map((row) => [row.dataset.name, "
    "Number(row.dataset.bytes)])";
const std::string kSide = "(() => { const rows = (list) => " + kRows +
                          "; return {...moment, purposes: rows('purposes'), lines: rows('lines'), verdict: "
                          "document.getElementById('verdict').textContent}; })()";

void expect_the_answer(const Json& side, const Json& json) {
  const auto figure = [&](const char* name) { return std::stoll(side[name].get<std::string>()); };
  EXPECT_EQ(figure("event"), json["event"].get<int64_t>());
  EXPECT_EQ(figure("activeBytes"), json["active_bytes"].get<int64_t>());
  EXPECT_EQ(figure("allocatedBytes"), json["allocated_bytes"].get<int64_t>());
  EXPECT_EQ(figure("reservedBytes"), json["reserved_bytes"].get<int64_t>());
  EXPECT_EQ(figure("largestFreeBytes"), json["largest_free_bytes"].get<int64_t>());
  EXPECT_EQ(side["verdict"], json["answer"]);
  std::map<std::string, int64_t> held, shown;
  for (const auto& [name, bytes] : json["held"].items())
    if (bytes > 0) held[name] = bytes;
  for (const Json& row : side["purposes"]) shown[row[0]] = row[1];
  EXPECT_EQ(shown, held);
  std::vector<int64_t> lines, holders;
  for (const Json& row : side["lines"]) lines.push_back(row[1]);
  for (size_t i = 0; i < json["holders"].size() && i < 40; ++i) holders.push_back(json["holders"][i]["bytes"]);
  EXPECT_EQ(lines, holders);
  EXPECT_FALSE(lines.empty());
}

TEST_F(SnapshotPage, shows_the_moment_that_the_answer_explains_byte_for_byte) {
  for (const char* name : testing::thinned(kSnapshots, 4)) {
    SCOPED_TRACE(name);
    const Json json = page_of(kGolden / (std::string(name) + ".pickle"));
    expect_the_answer(ask(kSide), json);
  }
}

TEST_F(SnapshotPage, shows_a_real_run_byte_for_byte) {
  const fs::path real = fs::path(SNUG_SOURCE_DIR).parent_path() / "shared/data/snapshots/gpt_medium_ctx1024_training.pickle";
  if (!fs::exists(real)) GTEST_SKIP() << real << " is not there";
  const Json json = page_of(real);
  expect_the_answer(ask(kSide), json);
}

// Every state that the model of the allocator wrote down, and the sums of the areas there, by purpose and by line.
TEST_F(SnapshotPage, knows_every_state_of_the_trace) {
  const std::string states =
      "(() => { const trace = readTrace0, all = []; for (let p = 1; p <= trace.events; ++p) { const m = momentAt(trace, p);"
      "const sum = (mode) => trace.grouping(mode).sumsAt(p).reduce((a, b) => a + b, 0);"
      "all.push([m.allocated, m.active, m.reserved, sum('purpose'), sum('line'), trace.total[p], "
      "m.segments.reduce((a, s) => a + s.bytes, 0), m.byHolding.reduce((a, b) => a + b, 0)]); } return all; })()";
  for (const char* name : testing::thinned(kSnapshots, 4)) {
    SCOPED_TRACE(name);
    page_of(kGolden / (std::string(name) + ".pickle"));
    std::string text = contents(work_ / "page.html");
    const std::string call = "const trace = readTrace();";
    ASSERT_TRUE(has(text, call));
    put(work_ / "page.html",
        text.replace(text.find(call), call.size(), "const trace = readTrace(); globalThis.readTrace0 = trace;"));
    const Json told = ask(states), expected = Json::parse(contents(kGolden / (std::string(name) + ".json")));
    int checked = 0;
    for (const auto& [event, state] : expected["states"].items()) {
      const Json& row = told[std::stoul(event)];
      EXPECT_EQ(row, Json::array({state[1], state[2], state[3], state[2], state[2], state[2], state[3], state[2]})) << event;
      ++checked;
    }
    EXPECT_GE(checked, 5);
  }
}

TEST_F(SnapshotPage, every_column_shows_the_highest_of_its_events) {
  page_of(kGolden / "mixed.pickle");
  const Json wrong =
      ask("(() => { const values = Float64Array.from({length: 5000}, (_, i) => Math.sin(i * i) * 1e6 | 0), highest = "
          "highestOf(values);"
          "let wrong = 0; for (let i = 0; i < 4000; ++i) { const from = (i * 37) % 4990, to = Math.min(5000, from + 1 + (i "
          "* i) % 700);"
          "let best = from; for (let p = from; p < to; ++p) if (values[p] > values[best]) best = p;"
          "if (highest(from, to) !== best) ++wrong; } return [wrong, highest(0, 5000) === "
          "values.indexOf(Math.max(...values))]; })()");
  EXPECT_EQ(wrong, Json::array({0, true}));
}

TEST_F(SnapshotPage, the_address_pointer_and_keys_choose_the_event) {
  const Json json = page_of(kGolden / "expandable.pickle");
  const std::string setup =
      "await (async () => { const canvas = document.getElementById('timeline'), box = canvas.getBoundingClientRect();"
      "const press = (key) => canvas.dispatchEvent(new KeyboardEvent('keydown', {key}));"
      "const point = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, {clientX: box.left + x, clientY: box.top + "
      "100}));"
      "window.requestAnimationFrame = (draw) => setTimeout(draw, 0);"  // a browser that only dumps may paint no frame
      "const settle = () => new Promise((done) => setTimeout(done, 100));";
  const auto after = [&](const std::string& script, const std::string& fragment = "") {
    return ask(setup + script + " await settle(); return Number(moment.event); })()", fragment);
  };
  const int64_t moment = json["event"], events = json["events"];
  EXPECT_EQ(after(""), moment);
  EXPECT_EQ(after("", "#event=17"), 17);
  EXPECT_EQ(after("", "#event=99999999"), events);
  EXPECT_LT(after("point('pointermove', 75);"), 5);
  EXPECT_EQ(after("point('pointermove', 75);", "#event=17"), 17);  // held
  EXPECT_EQ(after("press('ArrowRight'); press('ArrowRight'); press('ArrowLeft');"), moment + 1);
  EXPECT_EQ(after("press('Home'); press('+'); press('ArrowRight');"), 1);
  EXPECT_EQ(after("press('End'); press('p');"), moment);
  const Json hash = ask(setup +
                        "point('pointerdown', 300); point('pointerup', 300); point('click', 300); await settle();"
                        "return [location.hash, '#event=' + moment.event]; })()");
  EXPECT_EQ(hash[0], hash[1]);
}

// The colours of areas, list and legend are one.
TEST_F(SnapshotPage, lines_have_colours_of_their_own_when_asked) {
  const Json json = page_of(kGolden / "expandable.pickle");
  const Json told = ask(
      "(() => { const names = () => [...document.querySelectorAll('#legend li')].map((item) => item.textContent);"
      "const of = (list) => new Set([...document.querySelectorAll(list + ' .swatch')].map((mark) => "
      "mark.style.background)).size;"
      "const before = [names(), of('#lines li:not([hidden])')]; document.querySelector('#modes [data-value=line]').click();"
      "return [before, [names(), of('#lines li:not([hidden])')]]; })()");
  EXPECT_EQ(told[0], Json::parse(R"([["other"], 1])"));
  const size_t lines = json["holders"].size();
  EXPECT_GE(lines, 5u);
  EXPECT_EQ(told[1][1], lines);
  EXPECT_GE(told[1][0].size(), lines);
  EXPECT_TRUE(has(told[1][0].dump(), "model/part_0.py in forward_0")) << told;
}

TEST_F(SnapshotPage, a_point_on_a_segment_tells_its_block) {
  const Json json = page_of(kGolden / "fragmentation.pickle");
  const Json told =
      ask("await (async () => { const canvas = document.getElementById('segments'), box = canvas.getBoundingClientRect(), "
          "seen = {};"
          "for (let y = 4; y < box.height; y += 7) for (let x = 2; x < box.width; x += 9) {"
          "canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + x, clientY: box.top + y}));"
          "const about = document.getElementById('about').textContent; if (about.includes('segment')) "
          "seen[about.includes('free in') ? "
          "'odd' : document.getElementById('about').dataset.bytes + (/free$/.test(document.querySelector('#about "
          "h3').textContent) ? "
          "' free' : '')] = true; } return [Object.keys(seen).sort(), Number(canvas.dataset.segments)]; })()");
  // Pieces of 32 MiB, taken and free; the segment of 400 MiB ends with 16 MiB that were never taken.
  EXPECT_EQ(told[0], Json::array({"16777216 free", "33554432", "33554432 free"})) << told;
  EXPECT_EQ(told[1], 1);
  EXPECT_EQ(json["largest_free_bytes"], 33554432);
}

std::string hostile_snapshot(const std::string& name) {
  using namespace pickled;
  const std::string frame = dict({{"filename", text("/me/" + name + ".py")}, {"name", text(name)}, {"line", integer(3)}});
  return file(dict({{"segments", list({})},
                    {"device_traces", list({list({event("segment_alloc", 1 << 20, 2 << 20, list({frame})),
                                                  event("alloc", 1 << 20, 1 << 20, list({frame})),
                                                  event("alloc", 2 << 20, 1 << 20, list({frame}))})})}}));
}

TEST_F(SnapshotPage, hostile_names_stay_text) {
  const std::string hostile =
      "</script><script>document.documentElement.dataset.hacked='yes'</script>{{script}}\"'\\\xe2\x80\xa8<!--";
  put(work_ / "<img src=x onerror=1>.pickle", hostile_snapshot(hostile));
  const Json json = page_of(work_ / "<img src=x onerror=1>.pickle");
  EXPECT_FALSE(has(contents(work_ / "page.html"), "<script>document."));
  const Json told =
      ask("[document.documentElement.dataset.hacked || 'no', document.getElementById('lines').textContent, document.title]");
  EXPECT_EQ(told[0], "no");
  EXPECT_TRUE(has(told[1], hostile)) << told;
  EXPECT_EQ(told[2], "snug explain: <img src=x onerror=1>.pickle");
  EXPECT_EQ(json["active_bytes"], 2 << 20);
}

// Two hundred thousand events: more than a page could draw one by one.
TEST_F(SnapshotPage, a_long_trace_answers) {
  std::vector<std::string> events{pickled::event("segment_alloc", 1 << 20, 64 << 20)};
  for (int64_t i = 0; i < 100'000; ++i) {
    const int64_t address = (1 << 20) + (i % 32) * (2 << 20);
    if (i >= 32) events.push_back(pickled::event("free_completed", address, 2 << 20));
    events.push_back(pickled::event("alloc", address, 2 << 20));
  }
  put(work_ / "long.pickle", pickled::file(pickled::dict({{"segments", pickled::list({})},
                                                          {"device_traces", pickled::list({pickled::list(events)})}})));
  const Json json = page_of(work_ / "long.pickle");
  const Json side = ask(kSide, "#event=150001");
  EXPECT_EQ(side["event"], "150001");
  EXPECT_EQ(json["events"], static_cast<int64_t>(events.size()));
  const int64_t active = std::stoll(side["activeBytes"].get<std::string>());
  EXPECT_TRUE(active == 64 << 20 || active == 62 << 20) << active;
}

TEST_F(SnapshotPage, a_page_that_is_cut_short_says_so) {
  page_of(kGolden / "mixed.pickle");
  std::string text = contents(work_ / "page.html");
  const size_t records = text.find("class=\"records\">");
  ASSERT_NE(records, std::string::npos);
  put(work_ / "cut.html", text.erase(records + 16, 128));
  const ProcessResult page = show_page(work_ / "cut.html");
  EXPECT_FALSE(has(page.output, "data-ready=\"true\""));
  EXPECT_TRUE(has(page.error, "cut short")) << page.error;
}

// ---- The trace

struct MemoryTrace {
  std::map<std::string, std::string> facts;
  std::vector<std::pair<double, int64_t>> held, reserved;  // microseconds, bytes
  std::vector<Json> slices, marks;
};

MemoryTrace memory_trace_of(const fs::path& snapshot, const fs::path& file) {
  explained(snapshot, {"--trace", file.string()});
  MemoryTrace trace;
  const Json json = Json::parse(contents(file));
  for (const auto& [key, value] : json["otherData"].items()) trace.facts[key] = value;
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == "X") trace.slices.push_back(event);
    if (event["ph"] == "i") trace.marks.push_back(event);
    if (event["ph"] != "C") continue;
    int64_t sum = 0;
    for (const auto& [name, bytes] : event["args"].items()) sum += bytes.get<int64_t>();
    (event["name"] == "memory" ? trace.held : trace.reserved).emplace_back(event["ts"].get<double>(), sum);
  }
  return trace;
}

int64_t value_at(const std::vector<std::pair<double, int64_t>>& values, double time) {
  int64_t value = -1;
  for (const auto& [at, bytes] : values)
    if (at <= time) value = bytes;
  return value;
}

// Events of these snapshots are 10 µs apart, those without times one; the first is at 1.
TEST(SnapshotTrace, counts_what_was_held_after_every_event) {
  const Workspace work;
  for (const char* name : kSnapshots) {
    SCOPED_TRACE(name);
    const MemoryTrace trace = memory_trace_of(kGolden / (std::string(name) + ".pickle"), work / "trace.json");
    const double step = std::string_view(name) == "old" ? 1 : 10;
    const Json expected = Json::parse(contents(kGolden / (std::string(name) + ".json")));
    for (const auto& [event, state] : expected["states"].items()) {
      const double time = 1 + step * std::stod(event);
      EXPECT_EQ(value_at(trace.held, time), state[2].get<int64_t>()) << event;
      EXPECT_EQ(value_at(trace.reserved, time), state[3].get<int64_t>()) << event;
    }
    EXPECT_EQ(trace.marks.size(), expected["oom_events"].size());
    for (size_t i = 0; i < trace.marks.size(); ++i)
      EXPECT_EQ(trace.marks[i]["ts"].get<double>(), 1 + step * expected["oom_events"][i].get<double>());
    EXPECT_EQ(trace.facts.at("time") == "microseconds as recorded", step == 10);
  }
}

TEST(SnapshotTrace, has_a_slice_for_each_phase_that_was_annotated) {
  const fs::path real = fs::path(SNUG_SOURCE_DIR).parent_path() / "shared/data/snapshots/gpt_medium_ctx1024_training.pickle";
  if (!fs::exists(real)) GTEST_SKIP() << real << " is not there";
  const Workspace work;
  const MemoryTrace trace = memory_trace_of(real, work / "trace.json");
  ASSERT_EQ(trace.slices.size(), 1u);
  EXPECT_EQ(trace.slices[0]["name"], "Optimizer.step#AdamW.step");
  EXPECT_GT(trace.slices[0]["dur"].get<double>(), 0);
  int64_t most = 0;
  for (const auto& [time, bytes] : trace.held) most = std::max(most, bytes);
  EXPECT_EQ(std::to_string(most), trace.facts.at("active_bytes"));
}

// ---- What is refused

TEST(ExplainViews, need_a_snapshot_and_say_how_to_record_one) {
  const Workspace work;
  const std::string log = (work / "crash.log").string();
  put(log, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB.\n");
  const std::string profile = (fs::path(SNUG_SOURCE_DIR) / "tests/golden/torch/profiler_trace.json").string();
  for (const std::string& file : {log, profile}) {
    for (const char* flag : {"--html", "--trace"}) {
      const ProcessResult result = run_program({"explain", file, flag, (work / "view").string()});
      EXPECT_EQ(result.exit_code, 2) << result.error;
      EXPECT_EQ(result.output, "");
      EXPECT_TRUE(has(result.error, std::string(flag) + " needs a memory snapshot")) << result.error;
      EXPECT_TRUE(has(result.error, "_record_memory_history")) << result.error;
      EXPECT_FALSE(fs::exists(work / "view"));
    }
  }
  EXPECT_EQ(run_program({"explain", log, "--html"}).exit_code, 2);
  EXPECT_EQ(run_program({"explain", log, "--html="}).exit_code, 2);
}

TEST(ExplainViews, a_file_that_cannot_be_written_is_one_line_and_nothing_is_left) {
  const Workspace work;
  const std::string snapshot = (kGolden / "mixed.pickle").string(), nowhere = (work / "none/file").string();
  for (const char* flag : {"--html", "--trace"}) {
    const ProcessResult result = run_program({"explain", snapshot, flag, nowhere});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(result.error.rfind("snug: " + nowhere + ": cannot be created", 0), 0u) << result.error;
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    ProcessOptions small;
    small.limits[RLIMIT_FSIZE] = 4096;
    const ProcessResult full = run_program({"explain", snapshot, flag, (work / "view").string()}, small);
    EXPECT_EQ(full.exit_code, 1) << full.error;
    EXPECT_EQ(full.output, "");
    EXPECT_EQ(std::count(full.error.begin(), full.error.end(), '\n'), 1) << full.error;
    EXPECT_FALSE(fs::exists(work / "view"));
    EXPECT_EQ(unfinished(work.path()), std::vector<std::string>());
  }
}

TEST(ExplainViews, stand_behind_a_recipe_too) {
  const Workspace work;
  put(work / "r.yaml", "base_model: mistralai/Mistral-7B-v0.1\nadapter: lora\nmicro_batch_size: 1\n");
  const ProcessResult result =
      run_program({"explain", (kGolden / "fragmentation.pickle").string(), (work / "r.yaml").string(), "--gpu", "RTX-4090",
                   "--html", (work / "page.html").string(), "--trace=" + (work / "trace.json").string()});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_TRUE(has(contents(work / "page.html"), "<title>snug explain</title>"));
  EXPECT_TRUE(has(contents(work / "trace.json"), "\"made_by\":\"snug explain\""));
}

}  // namespace

}  // namespace snug::cli_tests
