#pragma once
// Traces that chrome://tracing and ui.perfetto.dev open: slices that nest, and counters, in the JSON array of Chrome's
// "Trace Event Format". The plan and the run write the same names in the same order, so that the two can be laid side by
// side. It knows no files: text goes to whoever takes it, piece by piece.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "plan/plan.h"
#include "plan/step_times.h"
#include "plan/timeline.h"

namespace snug {

// Text as JSON: quoted, escaped, valid UTF-8.
std::string json_text(std::string_view text);

class TraceWriter {
 public:
  using Sink = std::function<void(std::string_view)>;
  using Facts = std::span<const std::pair<std::string, std::string>>;

  // Opens the trace of a process of this name, its slices on a thread of that name; `facts` say what it shows.
  TraceWriter(Sink sink, std::string_view process, Facts facts, std::string_view thread = "ops");

  // Another thread's name; the one that the trace was opened with is 1.
  void thread(int number, std::string_view name);
  // From `start` to `end`, in seconds. Slices of a thread nest: an inner one may be written before its outer.
  void slice(std::string_view name, std::string_view category, double start, double end, int thread = 1);
  // A mark at `time`, in seconds, across all that is shown.
  void instant(std::string_view name, double time);
  // Values from `time` on, in seconds, which viewers stack.
  void counter(std::string_view name, double time, std::span<const std::pair<std::string_view, int64_t>> values);
  // Closes the trace; nothing may follow.
  void finish();

 private:
  void event(std::string_view text);

  Sink sink_;
  bool first_ = true;
};

// Bytes by role as the counter "memory", with `runtime` as a series of its own.
void write_memory(TraceWriter& trace, double time, const BytesByRole& live, int64_t runtime_bytes);

// The plan's run, one optimizer step of it, with the memory that it needs and what lies on disk meanwhile. Without
// `seconds_of` every op takes one microsecond, and the trace says so; with it copies run on lanes of their own where the
// plan's cost model has them there, and what compute waits for is a slice too.
void write_trace(const Plan& plan, const TraceWriter::Sink& sink, const SecondsOf& seconds_of = {});

}  // namespace snug
