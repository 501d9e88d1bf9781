// Steps of several recipes in one process, in turn, so that a machine whose speed comes and goes serves all alike:
//   build/bench/turns ROUNDS "RECIPE'S WORDS" "WORDS" …
// Random weights and tokens, no files. In each round every recipe but the first takes a step between two of the first.
// A line for each recipe: peak planned in bytes, median seconds of its steps, the median of their ratios to the mean of the
// first's steps before and after them, the share of the time that it waited for the disk.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "ask/arguments.h"
#include "ask/target_flags.h"
#include "base/error.h"
#include "model/catalogue.h"
#include "plan/plan.h"
#include "run/executor.h"
#include "run/settle_process.h"
#include "run/synthetic_run.h"

namespace snug {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Plan plan_of(const std::string& words) {
  std::istringstream stream(words);
  std::vector<std::string> parts;
  for (std::string part; stream >> part;) parts.push_back(part);
  std::vector<char*> pointers;
  for (std::string& part : parts) pointers.push_back(part.data());
  Listener listener;
  const Arguments arguments = parse_arguments(pointers, {}, listener);
  return make_plan(resolve_model(arguments.recipe.model), arguments.recipe, target_for(arguments));
}

class Runner {
 public:
  Runner(const std::string& words, const std::string& pages)
      : plan_(plan_of(words)), executor_(plan_.program, plan_.layout, pages), batches_(executor_, plan_.model) {
    executor_.commit();
    fill_at_random(executor_, plan_.model);
    step();
    waited_before_ = executor_.traffic().waited;
    seconds_.clear();
  }

  double step() {
    const auto start = std::chrono::steady_clock::now();
    run_random_step(executor_, batches_, ++done_);
    seconds_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return seconds_.back();
  }
  // Beside a step of the first that took `before`; gives what the one after it takes.
  double step_beside(Runner& first, double before) {
    const double seconds = step(), after = first.step();
    ratios_.push_back(2 * seconds / (before + after));
    return after;
  }

  int32_t threads() const { return plan_.target.threads; }
  void print() const {
    double total = 0;
    for (const double seconds : seconds_) total += seconds;
    fmt::print("{} {:.4f} {:.4f} {:.4f}\n", plan_.peak_bytes, median(seconds_), ratios_.empty() ? 1.0 : median(ratios_),
               (executor_.traffic().waited - waited_before_) / total);
  }

 private:
  Plan plan_;
  Executor executor_;
  RandomBatches batches_;
  int64_t done_ = 0;
  double waited_before_ = 0;
  std::vector<double> seconds_, ratios_;
};

int run(int count, char** words) {
  if (count < 3) throw Error("give the number of rounds and the words of at least one recipe");
  settle_process(plan_of(words[2]).target.threads);
  std::vector<std::unique_ptr<Runner>> runners;
  for (int i = 2; i < count; ++i)
    runners.push_back(std::make_unique<Runner>(words[i], fmt::format("{}/snug-turns-{}.pages", P_tmpdir, i)));
  double before = runners[0]->step();
  for (int round = 0; round < std::atoi(words[1]); ++round)
    for (size_t i = 1; i < runners.size(); ++i) before = runners[i]->step_beside(*runners[0], before);
  for (const auto& runner : runners) runner->print();
  return 0;
}

}  // namespace
}  // namespace snug

int main(int count, char** words) {
  try {
    return snug::run(count, words);
  } catch (const std::exception& error) {
    fmt::print(stderr, "turns: {}\n", error.what());
    return 1;
  }
}
