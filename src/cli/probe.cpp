// snug probe: how fast is this machine? A few seconds, kept as a receipt that plans use.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "ask/options.h"
#include "ask/receipts.h"
#include "cli/command_table.h"
#include "cli/commands.h"
#include "cli/process.h"
#include "cli/terminal.h"
#include "recipe/keys.h"
#include "report/units.h"
#include "run/probe.h"

namespace snug::cli {

namespace {

void print_rates(const CostModel& model) {
  fmt::print("{:<24} {:>12} {:>12}\n", "", "GFLOP/s", "GB/s");
  for (int i = 0; i < kCostClassCount; ++i) {
    const auto cost_class = static_cast<CostClass>(i);
    const CostRate& rate = model.rate(cost_class);
    if (rate.flops == 0 && rate.bytes == 0) continue;  // nothing that this machine does
    fmt::print("{:<24} {:>12.1f} {:>12.2f}\n", name_of(cost_class), rate.flops / 1e9, rate.bytes / 1e9);
  }
}

}  // namespace

int probe_command(std::span<char* const> words) {
  wait_briefly("probe", words);
  const Options options = parse_options(words, own_flags("probe"));
  Recipe recipe;
  if (options.has("threads")) apply(recipe, "threads", options.value("threads"), "--threads");
  const Target target = this_cpu(recipe.threads);
  const auto begin = std::chrono::steady_clock::now();
  const bool live = is_terminal(stderr);
  const CostModel model = probe(target, std::filesystem::temp_directory_path(), [&](double share) {
    if (live) fmt::print(stderr, "\rmeasuring {:3.0f} %", 100 * share);
  });
  if (live) fmt::print(stderr, "\r\033[K");
  keep_probe(model, target.threads);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  print_rates(model);
  fmt::print("{} in {}: snug plan and snug fit now tell times\nkept in {}\n", counted(target.threads, "thread"),
             seconds_text(seconds), probe_file(target.threads).string());
  return 0;
}

}  // namespace snug::cli
