// The answer of `snug explain` for a memory snapshot.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "explain/size_text.h"
#include "report/explain_parts.h"
#include "report/explain_report.h"
#include "report/json_value.h"
#include "report/units.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostShown = 10, kMostGrowing = 5, kMostListed = 100, kMostModules = 20;
std::string moment_text(const SnapshotExplanation& e) {
  if (e.events == 0) return "the end: the file has no trace of this device";
  const std::string of = fmt::format("{} of {}", e.event, counted(static_cast<int64_t>(e.events), "event"));
  if (e.moment == Moment::peak) return "the peak, after " + of;
  return fmt::format("{}, as it was then, not after the exception{}", of,
                     e.ooms > 1 ? fmt::format("; the first of {} times", e.ooms) : "");
}

std::string sums_text(const SnapshotExplanation& e) {
  std::string text = fmt::format("\nwhat held the memory ({})\n", size_text(e.totals.active_bytes));
  constexpr int kBar = 36;
  const int64_t most = std::max<int64_t>(1, *std::ranges::max_element(e.holders.by_holding));
  for (int i = 0; i < kHoldingCount; ++i) {
    const int64_t bytes = e.holders.by_holding[static_cast<size_t>(i)];
    if (bytes == 0) continue;
    std::string bar;
    for (int64_t k = 0; k < kBar * bytes / most; ++k) bar += "█";
    text += fmt::format("  {:<16} {:>12}  {}\n", name_of(static_cast<Holding>(i)), size_text(bytes), bar);
  }
  return text;
}

std::string holders_text(const SnapshotExplanation& e) {
  std::string text = "\nthe largest\n";
  for (size_t i = 0; i < e.holders.list.size() && i < kMostShown; ++i) {
    const Holder& holder = e.holders.list[i];
    text += fmt::format(
        "  {:>12}  {}\n", size_text(holder.bytes),
        wrapped(fmt::format("{}: {}, {}", name_of(holder.holding), text_of(holder), counted(holder.blocks, "block")),
                kExplainColumns, 16));
    if (holder.module != 0) text += paragraph("in " + text_of(e.holders.tree.path(holder.module)), 16);
  }
  return e.holders.list.empty() ? "" : text;
}

std::string called_text(const ModuleCall& module) {
  if (module.caller_line <= 0) return module.name;
  const std::string file = std::filesystem::path(module.caller_file).filename().string();
  return fmt::format("{}called at {}:{}", module.name == file ? "" : module.name + ", ", file, module.caller_line);
}

// Places in the list of the modules that hold most, in its order: the callers of each are among them.
std::vector<size_t> largest_modules(const std::vector<ModuleSum>& sums) {
  std::vector<size_t> places(sums.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::ranges::stable_sort(places, [&](size_t a, size_t b) { return sums[a].bytes > sums[b].bytes; });
  places.resize(std::min(places.size(), kMostModules));
  std::ranges::sort(places);
  return places;
}

std::string modules_text(const SnapshotExplanation& e) {
  constexpr int64_t kLeastShare = 100;
  std::string text;
  for (const size_t place : largest_modules(e.holders.modules)) {
    const ModuleSum& sum = e.holders.modules[place];
    if (sum.bytes < e.totals.active_bytes / kLeastShare) continue;
    const std::string indent(2 * static_cast<size_t>(sum.depth), ' ');
    text += fmt::format("  {:>12}  {}{}\n", size_text(sum.bytes), indent, called_text(e.holders.tree.module(sum.module)));
  }
  return text.empty() ? "" : "\nmade by the forward of these modules and those inside\n" + text;
}

std::string growth_text(const Growth& growth) {
  if (growth.list.empty()) return "";
  std::string text = fmt::format("\nwhat grows from step to step ({} seen)\n", counted(growth.rounds(), "step"));
  for (size_t i = 0; i < growth.list.size() && i < kMostGrowing; ++i) {
    const Growing& one = growth.list[i];
    const std::string place = one.place ? place_text(*one.place) : std::string("no line of Python is known");
    text += fmt::format("  {:>12}  {}\n", size_text(one.bytes_a_step),
                        wrapped(fmt::format("a step, {}: {}", name_of(one.holding), place), kExplainColumns, 16));
  }
  return text;
}

std::string cause_text(const SnapshotExplanation& e) {
  const std::string_view of = e.verdict.filler == Filler::none ? "" : name_of(e.verdict.filler);
  const std::string other = e.diagnosis.or_cause ? fmt::format(", or {}", name_of(*e.diagnosis.or_cause)) : std::string();
  return fmt::format("cause: {}{}{}{}\n", name_of(e.diagnosis.cause), of.empty() ? "" : ", ", of, other);
}

Json contents_json(const Contents& c) {
  return {{"weights", c.weights},
          {"second_weights", c.second_weights},
          {"gradients", c.gradients},
          {"states", c.states},
          {"temporaries", c.temporaries},
          {"activations", c.activations},
          {"logits", c.logits},
          {"scores", c.scores},
          {"cache", c.cache},
          {"buckets", c.buckets},
          {"gathered", c.gathered},
          {"collected", c.collected},
          {"copied", c.copied},
          {"other", c.other}};
}

Json tried_json(const Verdict& verdict) {
  Json list = Json::array();
  for (const Counterfactual& one : verdict.tried)
    list.push_back({{"without", one.without}, {"needed_bytes", one.peak_bytes}, {"passes", one.passes}});
  return list;
}

// Of the loop around the moment; the last round is the moment's own.
Json rounds_json(const Course& course) {
  constexpr size_t kMost = 64;
  Json list = Json::array();
  const size_t first = course.rounds.size() > kMost ? course.rounds.size() - kMost : 0;
  for (size_t i = first; i < course.rounds.size(); ++i) {
    const Round& round = course.rounds[i];
    list.push_back({{"event", round.begin},
                    {"begin_bytes", round.begin_bytes},
                    {"peak_bytes", round.peak_bytes},
                    {"requested_bytes", round.requested_bytes},
                    {"further_bytes", round.further_bytes},
                    {"comparable", round.matched}});
  }
  return list;
}

Json holders_json(const Holders& holders) {
  Json list = Json::array();
  for (size_t i = 0; i < holders.list.size() && i < kMostListed; ++i) {
    const Holder& h = holders.list[i];
    list.push_back({{"holding", name_of(h.holding)},
                    {"bytes", h.bytes},
                    {"blocks", h.blocks},
                    {"module", h.module == 0 ? Json() : Json(text_of(holders.tree.path(h.module)))},
                    {"source", frame_json(h.place)},
                    {"node", h.node.empty() ? Json() : Json(h.node)},
                    {"forward", frame_json(h.forward)}});
  }
  return list;
}

Json modules_json(const Holders& holders) {
  Json list = Json::array();
  for (const ModuleSum& sum : holders.modules) {
    if (list.size() == kMostListed) break;
    const ModuleCall& module = holders.tree.module(sum.module);
    std::optional<Frame> caller;
    if (module.caller_line > 0) caller = Frame{module.caller_file, module.caller_line, "", ""};
    list.push_back({{"module", text_of(holders.tree.path(sum.module))},
                    {"name", module.name},
                    {"file", module.file},
                    {"called_at", frame_json(caller)},
                    {"depth", sum.depth},
                    {"bytes", sum.bytes},
                    {"own_bytes", sum.own_bytes},
                    {"blocks", sum.blocks}});
  }
  return list;
}

Json growth_json(const Growth& growth) {
  Json list = Json::array();
  for (const Growing& g : growth.list)
    list.push_back({{"holding", name_of(g.holding)},
                    {"bytes_a_step", g.bytes_a_step},
                    {"bytes", g.bytes},
                    {"source", frame_json(g.place)}});
  return {{"steps", growth.rounds()},
          {"active_bytes_a_step", growth.active_a_step ? Json(*growth.active_a_step) : Json()},
          {"kept_bytes_a_step", growth.kept_a_step},
          {"list", list}};
}

}  // namespace

std::vector<std::pair<std::string_view, std::string>> facts_of(const SnapshotExplanation& e) {
  const char* unknown = e.has_frames ? "no frame of that moment tells" : "the snapshot was recorded without frames";
  std::vector<std::pair<std::string_view, std::string>> facts{{"stage", stage_text(e.stage, unknown)}};
  if (e.own) {
    facts.emplace_back("your line", place_text(*e.own));
  } else if (e.caller) {
    facts.emplace_back("called by", place_text(*e.caller));
  }
  facts.emplace_back("moment", moment_text(e));
  return facts;
}

std::string explain_text(const SnapshotExplanation& e) {
  std::string text = wrapped(e.diagnosis.answer, kExplainColumns, 0) + "\n";
  if (e.moment == Moment::out_of_memory) text += cause_text(e);
  text += lines_of("the arithmetic", e.diagnosis.arithmetic);
  text += "\nwhere\n";
  for (const auto& [label, what] : facts_of(e)) text += fact(label, what);
  text += sums_text(e) + modules_text(e) + holders_text(e) + growth_text(e.growth);
  return text + lines_of("to note", e.diagnosis.remarks) + advice_text(e.advice);
}

Json explain_json(const SnapshotExplanation& e) {
  Json sums = Json::object();
  for (int i = 0; i < kHoldingCount; ++i)
    sums[std::string(name_of(static_cast<Holding>(i)))] = e.holders.by_holding[static_cast<size_t>(i)];
  const bool ran_out = e.moment == Moment::out_of_memory;
  return {{"schema", 1},
          {"kind", "snapshot"},
          {"answer", e.diagnosis.answer},
          {"cause", ran_out ? Json(name_of(e.diagnosis.cause)) : Json()},
          {"or_cause", e.diagnosis.or_cause ? Json(name_of(*e.diagnosis.or_cause)) : Json()},
          {"what", ran_out && e.verdict.filler != Filler::none ? Json(name_of(e.verdict.filler)) : Json()},
          {"limit_bytes", ran_out ? Json(e.verdict.limit_bytes) : Json()},
          {"needed_bytes", ran_out ? Json(e.verdict.needed_bytes) : Json()},
          {"needed_whole", ran_out ? Json(e.verdict.whole()) : Json()},
          {"needed_told_by", ran_out && e.verdict.whole() ? Json(name_of(e.verdict.need_told)) : Json()},
          {"contents", ran_out ? contents_json(e.verdict.contents) : Json()},
          {"counterfactuals", tried_json(e.verdict)},
          {"stage", name_of(e.stage.stage)},
          {"stage_told_by", e.stage.by},
          {"recompute", e.stage.recompute},
          {"source", frame_json(e.own)},
          {"called_by", frame_json(e.caller)},
          {"arithmetic", e.diagnosis.arithmetic},
          {"remarks", e.diagnosis.remarks},
          {"device", e.device},
          {"moment", ran_out        ? "out_of_memory"
                     : e.events > 0 ? "peak"
                                    : "end"},
          {"event", e.event},
          {"events", e.events},
          {"ooms", e.ooms},
          {"asked_bytes", or_null(e.asked_bytes)},
          {"free_bytes", or_null(e.free_bytes)},
          {"requested_bytes", e.totals.requested_bytes},
          {"allocated_bytes", e.totals.allocated_bytes},
          {"active_bytes", e.totals.active_bytes},
          {"reserved_bytes", e.totals.reserved_bytes},
          {"largest_free_bytes", e.largest_free_bytes},
          {"held", sums},
          {"holders", holders_json(e.holders)},
          {"modules", modules_json(e.holders)},
          {"steps", rounds_json(e.course)},
          {"growth", growth_json(e.growth)},
          {"advice", advice_json(e.advice)}};
}

}  // namespace snug
