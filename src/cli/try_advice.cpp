// snug explain --try: a program is run on a card that one does not have; if it runs out there, each change that the
// explanation advises is made and the program is run again, until one is enough.

#include "cli/try_advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ask/arguments.h"
#include "base/error.h"
#include "cli/measure_request.h"
#include "explain/snapshot_explanation.h"
#include "recipe/bytes.h"
#include "torch/snapshot.h"

namespace snug::cli {

namespace {

constexpr int kNothingIsEnough = 3;
constexpr int64_t kSteps = 3;  // of the optimizer; what keeps growing needs more, which --steps gives

struct Trial {
  std::vector<std::string> words;  // of the advice
  std::string change;              // in words for people
  Measurement measurement;

  bool changed() const {
    return std::ranges::any_of(words, [&](const std::string& word) {
      return std::ranges::find(measurement.changed, word) != measurement.changed.end();
    });
  }
  bool passes() const { return changed() && measurement.exit_code == 0 && out_of_memory(measurement) == nullptr; }
};

int64_t reserved_bytes(const Measurement& measurement) {
  int64_t most = 0;
  for (const MeasuredRank& rank : measurement.ranks) most = std::max(most, rank.peak.reserved_bytes);
  return most;
}

std::string outcome_text(const Trial& trial) {
  if (!trial.changed()) return "not tried: the program has no such argument, or has it already";
  if (trial.passes()) return fmt::format("passes, with {} reserved", format_bytes(reserved_bytes(trial.measurement)));
  if (const MeasuredRank* rank = out_of_memory(trial.measurement))
    return fmt::format("runs out in {}, with {} more asked for", rank->out_of_memory->phase,
                       format_bytes(rank->out_of_memory->asked_bytes));
  return fmt::format("ends with exit code {}", trial.measurement.exit_code);
}

Trial run_with(MeasureRequest request, std::vector<std::string> words, std::string change) {
  fmt::print("\ntrying: {}\n", change);
  std::fflush(stdout);
  request.changes = words;
  const RunDirectory directory;
  Trial trial{std::move(words), std::move(change), measure(request, directory)};
  fmt::print("{}: {}\n", trial.change, outcome_text(trial));
  return trial;
}

// Each advice alone, in its order; then all that the program took, together.
std::vector<Trial> try_all(const MeasureRequest& request, const std::vector<Advice>& advice) {
  std::vector<Trial> trials;
  Trial together;
  for (const Advice& one : advice) {
    if (one.todo.empty()) continue;
    trials.push_back(run_with(request, {one.todo}, one.change));
    if (trials.back().passes()) return trials;
    if (!trials.back().changed()) continue;
    together.words.push_back(one.todo);
    together.change += (together.change.empty() ? "" : "; ") + one.change;
  }
  if (together.words.size() > 1) trials.push_back(run_with(request, together.words, together.change));
  return trials;
}

nlohmann::ordered_json trials_json(const SnapshotExplanation& e, const std::vector<Trial>& trials) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Trial& trial : trials)
    list.push_back({{"do", trial.words},
                    {"change", trial.change},
                    {"changed", trial.measurement.changed},
                    {"passes", trial.passes()},
                    {"reserved_bytes", reserved_bytes(trial.measurement)}});
  return {{"schema", 1}, {"cause", name_of(e.diagnosis.cause)}, {"answer", e.diagnosis.answer}, {"tried", list}};
}

}  // namespace

int try_advice(std::span<char* const> words) {
  MeasureWords asked = parse_measure(words, "explain --try");
  asked.run.device = device_of(asked, card_of(asked.gpu));
  if (asked.run.steps == 0) asked.run.steps = kSteps;
  const RunDirectory directory;
  const Measurement first = measure(asked.run, directory);
  if (first.ranks.empty()) throw Error("the program used no device", asked.run.command[0], "is its PyTorch a CUDA build?");
  const MeasuredRank* ran_out = out_of_memory(first);
  if (ran_out == nullptr || ran_out->out_of_memory->snapshot.empty()) {
    fmt::print("\n{} steps need {} reserved of {}: nothing to try\n", asked.run.steps, format_bytes(reserved_bytes(first)),
               format_bytes(asked.run.device.memory_bytes));
    return first.exit_code;
  }
  const SnapshotExplanation e = explain_snapshot(read_snapshot(ran_out->out_of_memory->snapshot));
  fmt::print("\n{}\n", e.diagnosis.answer);
  const std::vector<Trial> trials = try_all(asked.run, e.advice);
  if (!asked.json.empty()) write_json(asked.json, trials_json(e, trials));
  if (!trials.empty() && trials.back().passes()) {
    fmt::print("\nenough: {}\n", trials.back().change);
    return 0;
  }
  fmt::print("\nnothing that could be tried is enough; snug explain FILE tells what else would help\n");
  return kNothingIsEnough;
}

}  // namespace snug::cli
