// How long a checkpoint takes to load, alone:
//   build/bench/load MODEL [recipe keys as flags] [--json]
// Makes the plan, commits the arena, then times load_model by the wall clock, as `snug train` calls it before its first
// step. Whether the files lie in the page cache is for the caller to settle (bench/load.sh).

#include <fmt/format.h>

#include <chrono>
#include <string>

#include "ask/arguments.h"
#include "base/error.h"
#include "formats/checkpoint.h"
#include "kernels/backend.h"
#include "model/catalogue.h"
#include "plan/plan.h"
#include "run/executor.h"
#include "run/settle_process.h"
#include "run/weight_files.h"
#include "train/trainer.h"

namespace snug {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Does the load op and times it: opening the files, reading their headers, filling every weight.
class TimedLoad final : public Host {
 public:
  TimedLoad(Executor& executor, const ModelSpec& model, const Recipe& recipe)
      : executor_(executor), model_(model), recipe_(recipe) {}
  void run(const Op& op, int64_t /*repetition*/) override {
    if (op.kind != OpKind::load) return;
    const auto start = Clock::now();
    const Checkpoint checkpoint(recipe_.model);
    load_model(executor_, model_, checkpoint, recipe_.seed, load_room(executor_, op));
    seconds = seconds_since(start);
    bytes = checkpoint.data_bytes();
  }
  double seconds = 0;
  int64_t bytes = 0;

 private:
  Executor& executor_;
  const ModelSpec& model_;
  const Recipe& recipe_;
};

int run(std::span<char* const> words) {
  Listener listener;
  const Arguments arguments = parse_arguments(words, {"json"}, listener);
  const Plan plan = make_plan(resolve_model(arguments.recipe.model), arguments.recipe, this_cpu(arguments.recipe.threads));
  if (!plan.fits()) throw Error(fmt::format("needs {} bytes, more than this machine can give", plan.peak_bytes), "plan");
  settle_process(plan.target.threads);
  const auto start = Clock::now();
  Executor executor(plan.program, plan.layout);
  const double commit = seconds_since(start);
  TimedLoad load(executor, plan.model, plan.recipe);
  executor.run(plan.program.region(Section::load), load);
  if (arguments.has("json")) {
    fmt::print("{{\"bytes\": {}, \"seconds\": {}, \"arena_bytes\": {}, \"arena_seconds\": {}}}\n", load.bytes, load.seconds,
               executor.arena_bytes(), commit);
  } else {
    fmt::print("loaded {:.2f} GB in {:.2f} s: {:.2f} GB/s; before that, the arena of {:.2f} GB in {:.2f} s\n",
               static_cast<double>(load.bytes) / 1e9, load.seconds, static_cast<double>(load.bytes) / 1e9 / load.seconds,
               static_cast<double>(executor.arena_bytes()) / 1e9, commit);
  }
  return 0;
}

}  // namespace
}  // namespace snug

int main(int count, char** words) {
  try {
    return snug::run(std::span<char* const>(words + 1, static_cast<size_t>(count - 1)));
  } catch (const std::exception& error) {
    fmt::print(stderr, "load: {}\n", error.what());
    return 1;
  }
}
