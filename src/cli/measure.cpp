// snug measure: a PyTorch program on a card that one does not have, and what PyTorch's own allocator says of it.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ask/arguments.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/measure_request.h"
#include "explain/snapshot_explanation.h"
#include "measure/run/program.h"
#include "plan/accelerators.h"
#include "recipe/bytes.h"
#include "report/measure_report.h"
#include "torch/snapshot.h"

namespace snug::cli {

namespace {

constexpr int kDoesNotFit = 3;

std::optional<SnapshotExplanation> explanation_of(const MeasuredRank* rank) {
  if (rank == nullptr || rank->out_of_memory->snapshot.empty()) return std::nullopt;
  return explain_snapshot(read_snapshot(rank->out_of_memory->snapshot));
}

}  // namespace

int measure_command(std::span<char* const> words) {
  MeasureWords request = parse_measure(words, "measure");
  const Accelerator& card = card_of(request.gpu);
  request.run.device = device_of(request, card);
  if (!request.snapshot.empty()) request.run.snapshot = std::filesystem::absolute(request.snapshot);
  const RunDirectory directory;
  const Measurement measurement = measure(request.run, directory);
  if (measurement.ranks.empty()) {
    fmt::print(stderr, "snug: {} used no device (exit code {}): is its PyTorch a CUDA build?\n", request.run.command[0],
               measurement.exit_code);
    return measurement.exit_code != 0 ? measurement.exit_code : 1;
  }
  const MeasuredRank* const ran_out = out_of_memory(measurement);
  const MeasuredView view{request.run, card, measurement, explanation_of(ran_out)};
  std::fflush(stdout);
  fmt::print("{}", measure_text(view));
  if (!request.json.empty()) write_json(request.json, measure_json(view));
  return measurement.exit_code != 0 && ran_out != nullptr ? kDoesNotFit : measurement.exit_code;
}

}  // namespace snug::cli
