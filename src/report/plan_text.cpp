#include "report/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "advise/engine.h"
#include "advise/levers.h"
#include "plan/away.h"
#include "plan/ranks.h"
#include "program/passes/lora.h"
#include "recipe/bytes.h"
#include "recipe/keys.h"
#include "report/saved_report.h"
#include "report/units.h"

namespace snug {

namespace {

std::string bar(int64_t bytes, int64_t whole, int width) {
  const int64_t cells = std::llround(static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, whole)) * width);
  std::string text;
  for (int64_t i = 0; i < cells; ++i) text += "█";
  return text;
}

struct Line {
  std::string name;
  int64_t bytes;
};

std::string table(const std::vector<Line>& lines, int64_t whole, int width) {
  std::string text;
  for (const Line& line : lines) {
    if (line.bytes == 0) continue;
    text += fmt::format("  {:<26} {:>10}  {}\n", line.name, format_bytes(line.bytes), bar(line.bytes, whole, width - 44));
  }
  return text;
}

std::string breakdown(const Plan& plan, const TextStyle& style) {
  std::vector<Line> lines;
  for (int role = 0; role < kRoleCount; ++role)
    lines.push_back({name_of(static_cast<Role>(role)), plan.breakdown[static_cast<size_t>(role)]});
  lines.push_back({"runtime", plan.runtime_bytes});
  return table(lines, plan.peak_bytes, style.width);
}

std::string stages(const Plan& plan, const TextStyle& style) {
  std::vector<Line> lines;
  for (int stage = 0; stage < kStageCount; ++stage)
    if (const auto& peak = plan.stage_peaks[static_cast<size_t>(stage)])
      lines.push_back({name_of(static_cast<Stage>(stage)), *peak});
  return table(lines, plan.peak_bytes, style.width);
}

std::string precision_line(const Plan& plan) {
  std::string text;
  for (const auto& [what, dtype] : precisions(plan))
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, name_of(dtype));
  return text;
}

std::string device_words(const Target& target) {
  return target.kind == TargetKind::cuda ? target.name : counted(target.threads, "thread");
}

// What each of several holds a part of, and sends.
std::string ranks_line(const Plan& plan) {
  constexpr const char* kShared[] = {"nothing is shared out (DDP)", "optimizer states are shared out (ZeRO 1)",
                                     "states and gradients are shared out (ZeRO 2)",
                                     "states, gradients and weights are shared out (ZeRO 3)"};
  if (plan.program.mesh.ranks == 1) return "";
  const RankMesh& mesh = plan.program.mesh;
  std::string splits;
  const auto add = [&](int64_t ways, const char* what) {
    if (ways > 1) splits += fmt::format("; {} {}", ways, what);
  };
  add(mesh.pipeline, "stages of layers");
  if (mesh.chunks > 1) splits += fmt::format(", {} chunks each", mesh.chunks);
  add(mesh.tensor, "split products");
  add(mesh.context, "split sequences");
  add(mesh.expert, "split experts");
  if (plan.stages.empty())
    return fmt::format("{} processes, each as planned here: {}{}; each sends {} a step\n", mesh.ranks,
                       kShared[plan.recipe.parallel.zero_stage], splits, format_bytes(sent_to_ranks(plan.program, 0)));
  const auto by_peak = [](const StagePlan& a, const StagePlan& b) { return a.peak_bytes < b.peak_bytes; };
  const StagePlan& least = *std::min_element(plan.stages.begin(), plan.stages.end(), by_peak);
  return fmt::format("{} processes: {}{}; stage {} needs most and sends {} a step, the least needs {}\n", mesh.ranks,
                     kShared[plan.recipe.parallel.zero_stage], splits, plan.program.stage,
                     format_bytes(plan.stages[static_cast<size_t>(plan.program.stage)].sent_bytes),
                     format_bytes(least.peak_bytes));
}

// "4.1 s a step; 625 steps: 42 min 10 s, $0.84", as far as it is known.
std::string cost_lines(const Plan& plan, const std::optional<CountedData>& data) {
  const RunCost cost = run_cost(plan, data ? std::optional(data->workload) : std::nullopt);
  std::string text;
  const char* const whose = plan.target.kind == TargetKind::cuda ? " in snug's engine" : "";  // on a card most run another
  if (plan.target.cost.known())
    text = fmt::format("{} a step{} by {}", seconds_text(plan.step_time.seconds), whose, plan.target.cost.source);
  if (cost.steps) {
    text += (text.empty() ? "" : "; ") + counted(*cost.steps, "step");
    if (cost.tokens) text += ", " + count_text(*cost.tokens) + " tokens";
    if (cost.flops) text += fmt::format(", {:.3g} PFLOP", *cost.flops / 1e15);
    if (cost.seconds) text += ": " + seconds_text(cost.seconds);
    if (cost.dollars) text += ", " + dollars_text(cost.dollars);
  }
  if (!text.empty()) text += "\n";
  return text + (data ? data->description + "\n" : "");
}

constexpr const char* kKeysThatMatter[] = {"method",
                                           "bf16",
                                           "fp16",
                                           "per_device_train_batch_size",
                                           "gradient_accumulation_steps",
                                           "max_length",
                                           "gradient_checkpointing",
                                           "lora_r",
                                           "lora_alpha",
                                           "lora_target_modules",
                                           "optim"};

std::string assumptions(const Plan& plan, const std::vector<std::string>& keys_set, const TextStyle& style) {
  std::string list;
  for (const char* name : kKeysThatMatter) {
    const Key* key = find_key(name);
    if (key == nullptr || !key->get || std::find(keys_set.begin(), keys_set.end(), key->name) != keys_set.end()) continue;
    if (plan.recipe.method == Method::full && std::string_view(name).starts_with("lora_")) continue;
    if (std::string_view(name) == (plan.recipe.fp16 ? "bf16" : "fp16")) continue;
    std::string value = key->get(plan.recipe);
    if (std::string_view(name) == "max_length") value = std::to_string(plan.program.seq_len);
    if (std::string_view(name) == "lora_target_modules" && value.empty())
      value = fmt::format("{}", fmt::join(lora_targets(plan.program, plan.recipe.lora), ","));
    list += (list.empty() ? "" : ", ") + std::string(name) + " " + value;
  }
  std::string text;
  if (!list.empty()) text += "assumed    " + wrapped(list, style.width, 11) + "\n";
  text += saved_text(plan, style);
  text += "precision  " + wrapped(precision_line(plan), style.width, 11) + "\n";
  for (const std::string& note : plan.program.notes) text += "note       " + wrapped(note, style.width, 11) + "\n";
  return text;
}

}  // namespace

std::vector<std::pair<const char*, DType>> precisions(const Plan& plan) {
  const Precision& p = plan.precision;
  return {{"weights", p.weights},         {"master", p.master},       {"compute", plan.compute()},
          {"activations", p.activations}, {"gradients", p.gradients}, {"optimizer", p.optimizer}};
}

std::string flag_of(const Setting& setting) {
  std::string name = setting.key;
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name + " " + (setting.value.empty() ? "\"\"" : setting.value);
}

std::string short_flag_of(const Setting& setting) {
  constexpr size_t kLongest = 40, kKept = 9;
  const std::string& value = setting.value;
  if (value.size() <= kLongest) return flag_of(setting);
  return flag_of({setting.key, value.substr(0, kKept) + "…" + value.substr(value.rfind(',') + 1)});
}

std::string plan_verdict(const Plan& plan) {
  if (const auto home = plan.overfull_home(); home && plan.peak_bytes <= plan.budget_bytes)
    return fmt::format("does not fit: {} are needed on {}, where {} are free", format_bytes(plan.layout.of(*home).bytes),
                       name_of(*home), format_bytes(plan.target.room[static_cast<size_t>(*home)].value_or(0)));
  return fmt::format("{}: {} of {}, peak in {}", plan.fits() ? "fits" : "does not fit", format_bytes(plan.peak_bytes),
                     format_bytes(plan.budget_bytes), name_of(plan.peak_stage));
}

std::vector<std::string> verdict_lines(const Plan& plan, const std::optional<PyTorchAnswer>& pytorch) {
  if (!pytorch) return {plan_verdict(plan)};
  return {pytorch_verdict(*pytorch), "snug: " + plan_verdict(plan)};
}

std::string change_text(const Plan& plan) {
  std::optional<LeverSet> closest;
  const auto found = smallest_set_that_fits(plan, closest);
  const auto flags = [](const LeverSet& set) {
    std::string text, notes;
    for (const Alternative& change : set.changes) {
      for (const Setting& setting : change.settings) text += (text.empty() ? "" : " ") + flag_of(setting);
      notes += (notes.empty() ? "" : "; ") + change.note;
    }
    return std::pair(text, notes);
  };
  if (found) {
    const auto [text, notes] = flags(*found);
    return fmt::format("smallest change that fits: {} needs {} ({})", text, format_bytes(found->peak_bytes), notes);
  }
  if (!closest || closest->changes.empty() || closest->peak_bytes == kNever) return "no change makes it smaller";
  return fmt::format("nothing fits; the least is {} with {}", format_bytes(closest->peak_bytes), flags(*closest).first);
}

std::string levers_text(std::span<const Lever> levers, const TextStyle& style, std::string_view whose) {
  std::string text = fmt::format("\nlevers of {}: each change alone\n  {:>10}  {:>6}  {:<6} {}\n", whose, "saves", "time",
                                 "effect", "change");
  for (const Lever& lever : levers) {
    std::string flags;
    for (const Setting& setting : lever.change.settings) flags += (flags.empty() ? "" : " ") + short_flag_of(setting);
    text += fmt::format("  {:>10}  {:>+5.0f}%  {:<6} {}\n", format_bytes(lever.saved_bytes), 100 * (lever.slowdown - 1),
                        name_of(lever.change.effect), wrapped(flags, style.width, 29));
    text += fmt::format("{:29}{}\n", "", wrapped(lever.change.note, style.width, 29));
  }
  return text;
}

namespace {

// The answer first: PyTorch's, then snug's own.
std::string verdicts(const Plan& plan, const TextStyle& style, const std::optional<PyTorchAnswer>& pytorch) {
  const auto coloured = [&](bool fits, const std::string& line) {
    if (!style.colour) return line + "\n";
    return std::string(fits ? "\033[1;32m" : "\033[1;31m") + line + "\033[0m\n";
  };
  const std::vector<std::string> lines = verdict_lines(plan, pytorch);
  std::string text;
  if (pytorch) text = pytorch->decides() ? coloured(pytorch->plan->fits, lines.front()) : lines.front() + "\n";
  text += coloured(plan.fits(), lines.back());
  if (!plan.fits()) text += change_text(plan) + "\n";
  if (pytorch && plan.target.kind == TargetKind::cuda) text += "snug itself trains on CPUs only; on this card it plans\n";
  return text;
}

// What lies elsewhere, and what it costs to have it there.
std::string away_lines(const Plan& plan) {
  const Away away = away_of(plan.program, plan.layout);
  std::vector<std::string> parts;
  for (const auto& [name, bytes] : away_parts(plan)) parts.push_back(fmt::format("{} {}", name, format_bytes(bytes)));
  return fmt::format("\n{} ({} = {} bytes): {}\n  a step fetches {} and sends {}\n", away_home(plan),
                     format_bytes(plan.away_bytes()), plan.away_bytes(), fmt::join(parts, ", "), format_bytes(away.fetched),
                     format_bytes(away.sent));
}

}  // namespace

std::vector<std::pair<const char*, int64_t>> away_parts(const Plan& plan) {
  const char* const weights = plan.recipe.method == Method::full ? "trained weights" : "frozen weights";
  const std::pair<Role, const char*> kParts[] = {{Role::weight, weights},
                                                 {Role::activation, "saved activations"},
                                                 {Role::gradient, "gradients"},
                                                 {Role::optimizer, "optimizer states"}};
  const Away away = away_of(plan.program, plan.layout);
  std::vector<std::pair<const char*, int64_t>> parts;
  for (const auto& [role, name] : kParts)
    if (const int64_t bytes = away.bytes[static_cast<size_t>(role)]; bytes > 0) parts.emplace_back(name, bytes);
  return parts;
}

const char* away_home(const Plan& plan) { return plan.layout.of(Home::disk).bytes > 0 ? "on disk" : "in host memory"; }

std::string plan_text(const Plan& plan, const std::vector<std::string>& keys_set, const std::optional<CountedData>& data,
                      const TextStyle& style, const std::optional<PyTorchAnswer>& pytorch) {
  std::string text = verdicts(plan, style, pytorch);
  const Program& p = plan.program;
  text += fmt::format("\n{}: {} parameters, {} trained ({:.3g} %)\n", plan.model.name, count_text(p.total_parameters()),
                      count_text(p.trainable_parameters()),
                      100.0 * static_cast<double>(p.trainable_parameters()) / static_cast<double>(p.total_parameters()));
  text += fmt::format("{} x {} x {} a step, {}, {} a step\n", counted(p.batch, "sequence"), counted(p.seq_len, "token"),
                      counted(p.micro_batches, "micro-batch"), device_words(plan.target), flops_text(plan.step_flops));
  text += ranks_line(plan) + cost_lines(plan, data);
  text += fmt::format("\nat the peak ({} = {} bytes)\n", format_bytes(plan.peak_bytes), plan.peak_bytes);
  text += breakdown(plan, style) + "\npeak of each stage\n" + stages(plan, style) + "\nlargest at the peak\n";
  for (const LargeStorage& large : largest_at_peak(plan, 10))
    text += fmt::format("  {:<42} {:>10}  {}\n", large.name, format_bytes(large.bytes), name_of(large.role));
  if (pytorch) text += pytorch_text(*pytorch, style);
  if (plan.away_bytes() > 0) text += away_lines(plan);
  return text + "\n" + assumptions(plan, keys_set, style);
}

}  // namespace snug
