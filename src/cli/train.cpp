// snug train: do it.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "advise/placed_run.h"
#include "ask/arguments.h"
#include "ask/pytorch_ranks.h"
#include "ask/pytorch_setup.h"
#include "ask/receipts.h"
#include "ask/target_flags.h"
#include "base/error.h"
#include "cli/command_table.h"
#include "cli/commands.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "cli/terminal.h"
#include "cli/train_screen.h"
#include "comm/world.h"
#include "model/catalogue.h"
#include "model/families.h"
#include "model/hub_cache.h"
#include "plan/plan.h"
#include "recipe/bytes.h"
#include "recipe/keys.h"
#include "recipe/strategy_keys.h"
#include "report/plan_text.h"
#include "report/units.h"
#include "run/code_pages.h"
#include "train/run_trace.h"
#include "train/trainer.h"

namespace snug::cli {

namespace {

// Predicted beside measured, among this machine's receipts if it keeps any; metrics.jsonl has the peaks in any case.
void leave_receipt(const Plan& plan, const RunSummary& summary) {
  const Program& p = plan.program;
  const auto tokens = static_cast<double>(p.batch * p.seq_len * p.micro_batches);
  const RunReceipt receipt{
      .model = checkpoint_name(plan.recipe.model),
      .method = method_word(plan.recipe),
      .threads = plan.target.threads,
      .planned_peak_bytes = summary.planned_peak_bytes,
      .measured_peak_bytes = summary.measured_peak_bytes,
      .planned_step_seconds = plan.target.cost.known() ? plan.step_time.seconds / plan.target.cost.correction : 0,
      .measured_step_seconds = summary.tokens_per_second > 0 ? tokens / summary.tokens_per_second : 0};
  if (!plan.recipe.packing) return;  // padded rows are shorter than planned
  try {
    keep_receipt(receipt);
  } catch (const Error& error) {
    fmt::print(stderr, "snug: the receipt is not kept: {}\n", error.what());
  }
}

int refuse(const Plan& plan) {
  fmt::print(stderr, "snug: {}\nsnug: {}\n", plan_verdict(plan), change_text(plan));
  return 3;
}

// Another trainer's recipe is trained only if all of it can be.
void refuse_foreign(const Arguments& arguments) {
  std::vector<std::string> lines = arguments.foreign->refusals(!arguments.recipe.data.empty());
  for (const std::string& name : arguments.foreign->named(KeyFate::unknown)) lines.push_back(name + ": not known");
  if (lines.empty()) return;
  for (const std::string& line : lines) fmt::print(stderr, "snug: {}\n", line);
  throw Error(fmt::format("this {} recipe asks for what snug does not do", name_of(arguments.foreign->dialect)), "",
              "remove these keys, or write a recipe of snug's own: see docs/recipes.md");
}

// With --max-memory as `snug plan` prints it.
Plan planned(const Arguments& arguments, const ModelSpec& model, const std::optional<World>& world, const RankRings* ranks) {
  // Open MPI's buffers and libraries: 9 to 12 MiB were measured beside what ranks of one machine take (4.1.4, over TCP).
  constexpr int64_t kMpiBytes = int64_t{16} << 20;
  const int64_t ranks_here = world ? std::max<int64_t>(1, world->local_ranks) : arguments.recipe.parallel.ranks;
  Target target = with_disk(target_for(arguments, ranks_here), arguments.recipe);
  if (world && world->over_mpi()) target.runtime_bytes_of_ranks = kMpiBytes;
  if (ranks != nullptr) target.memory_bytes = least_of_ranks(*ranks, target.memory_bytes);  // one plan for all
  if (!arguments.has("max-memory")) return make_plan(model, arguments.recipe, target);
  return place_run(model, arguments.recipe, target, parse_max_memory(arguments.value("max-memory")));
}

void warn_if_nearly_full(const Plan& plan) {
  constexpr double kNearlyFull = 0.9;
  const double share = static_cast<double>(plan.peak_bytes) / static_cast<double>(plan.budget_bytes);
  if (share >= kNearlyFull) fmt::print(stderr, "nearly full: {:.0f} % of what may be used\n", 100.0 * share);
}

void tell_of(const Plan& plan) {
  fmt::print(stderr, "{}\n", plan_verdict(plan));
  warn_if_nearly_full(plan);
  for (const std::string& note : plan.program.notes) fmt::print(stderr, "{}\n", note);
}

void tell_how_it_went(const Plan& plan, const RunSummary& summary) {
  fmt::print("{} steps, mean loss {:.4f}, {:.0f} tokens/s\nplanned peak {} bytes, measured {} bytes ({:.2f} %)\n",
             summary.steps, summary.train_loss, summary.tokens_per_second, summary.planned_peak_bytes,
             summary.measured_peak_bytes,
             100.0 * static_cast<double>(summary.measured_peak_bytes) / static_cast<double>(summary.planned_peak_bytes));
  if (summary.fetched_bytes + summary.sent_bytes > 0)
    fmt::print("from disk {}, to disk {}, waited for it {}\n", format_bytes(summary.fetched_bytes),
               format_bytes(summary.sent_bytes), seconds_text(summary.waited_seconds));
  if (plan.saved_seconds > 0)
    fmt::print("{} a step what takes {} of {}\n", plan.saved.away.empty() ? "made again" : "made again and moved",
               seconds_text(plan.saved_seconds), seconds_text(plan.step_time.seconds));
}

// `ranks`: of several processes, of which this is one; null: it runs alone.
int run(const Plan& plan, const std::string& trace, RankRings* ranks) {
  if (ranks != nullptr) require_same(*ranks, plan);
  TrainScreen screen(ranks != nullptr);
  QuietReporter quiet;
  const bool speaks = ranks == nullptr || ranks->rank() == 0;
  Reporter& reporter = speaks ? static_cast<Reporter&>(screen) : quiet;
  const RunSummary summary = train(plan, reporter, stop_signal(), trace, ranks);
  if (speaks) {
    screen.finish_line();
    tell_how_it_went(plan, summary);
    if (ranks == nullptr) leave_receipt(plan, summary);
  }
  return stop_signal().load() == 0 ? 0 : 128 + stop_signal().load();
}

// By this process, which may be one of several. Who starts others has planned for all, and runs nothing itself.
int plan_and_run(Arguments& arguments, const std::optional<World>& world, RankRings* ranks, std::span<char* const> words) {
  const Recipe& recipe = arguments.recipe;
  const bool speaks = !world || world->rank == 0, starts_ranks = recipe.parallel.ranks > 1 && !world;
  refuse_plan_only(resolve_model(recipe.model), "trained");  // by its name, before its files are looked for
  arguments.recipe.model = local_checkpoint(recipe.model, "training").string();
  const ModelSpec model = resolve_model(recipe.model);
  refuse_plan_only(model, "trained");
  Plan plan = planned(arguments, model, world, ranks);
  // Whoever watches runs in the order of the Program, the others ahead of it.
  if (arguments.has("trace") && recipe.parallel.ranks > 1) throw UsageError("--trace is for a run of one process");
  if (arguments.has("trace")) plan_tracing(plan);
  // Each stage of a pipeline has a plan of its own.
  const bool tells = !world || world->rank % recipe.parallel.mesh().of_stage() == 0;
  if (!plan.fits()) return tells ? refuse(plan) : 3;
  if (speaks && (!world || world->launcher != kOwnLauncher)) tell_of(plan);  // who starts ranks has told of it
  if (starts_ranks) return launch_ranks(recipe.parallel.ranks, words);
  end_at_signals(speaks ? "stopped before the first step\n" : "");  // nothing is lost yet
  return run(plan, arguments.value("trace"), ranks);
}

// One of several: what ends it ends all, and one of them tells.
int plan_and_run_as_rank(Arguments& arguments, const World& world, std::span<char* const> words) {
  try {
    const RankMesh mesh = arguments.recipe.parallel.mesh();
    const std::unique_ptr<RankRings> ranks = meet(world, mesh);
    if (mesh.pipeline > 1) arguments.recipe.parallel.stage = mesh.stage_of(world.rank);
    try {
      const int code = plan_and_run(arguments, world, ranks.get(), words);
      if (code == 3) ranks->fail();
      return code;
    } catch (const RankLost&) {
      ranks->fail();
      throw;
    } catch (...) {
      if (!ranks->fail()) return 1;  // another has met the same, and tells
      throw;
    }
  } catch (const RankLost& lost) {
    if (lost.tells) throw;
    return 1;
  }
}

}  // namespace

int train_command(std::span<char* const> words) {
  wait_briefly("train", words);
  shrink_code_pages();
  Terminal terminal;
  const std::optional<World> world = launched_world();
  Arguments arguments = parse_arguments(words, own_flags("train"), terminal);
  const Recipe& recipe = arguments.recipe;
  if (arguments.foreign) {
    const int64_t here = recipe.parallel.ranks;  // the GPUs that it was written for are not here
    arguments.recipe.parallel = shared_by(arguments);
    arguments.recipe.parallel.ranks = here;
  }
  if (world) arguments.recipe.parallel.ranks = world->ranks;
  if (arguments.foreign) refuse_foreign(arguments);
  const bool speaks = !world || (world->rank == 0 && world->launcher != kOwnLauncher);  // whoever starts ranks has spoken
  if (speaks && arguments.foreign && !sets(arguments, "chat_template"))
    for (const std::string& note : arguments.foreign->run_notes) fmt::print(stderr, "snug: {}\n", note);
  if (recipe.model.empty()) throw UsageError("which model? snug train RECIPE.yaml, or snug train MODEL --data FILE");
  if (recipe.data.empty()) throw UsageError("which data? add --data FILE.jsonl");
  validate(recipe);
  validate_strategies(recipe);
  if (speaks)
    for (const std::string& key : arguments.passed_over) fmt::print(stderr, "snug: {} has no effect here\n", key);
  if (world && world->ranks > 1) return plan_and_run_as_rank(arguments, *world, words);
  return plan_and_run(arguments, std::nullopt, nullptr, words);
}

}  // namespace snug::cli
