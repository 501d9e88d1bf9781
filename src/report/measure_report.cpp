#include "report/measure_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "recipe/bytes.h"
#include "report/explain_report.h"
#include "report/units.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kBar = 32;

struct Interval {
  int64_t low = 0, high = 0;
};

// What the device itself gives for a rank: what PyTorch reserved, what others took of the driver, and CUDA's context.
Interval device_bytes(const MeasuredView& view, const MeasuredRank& rank) {
  const int64_t taken = std::max(rank.driver_bytes, rank.peak.reserved_bytes);
  return {taken + view.card.context_least_bytes, taken + view.card.context_most_bytes};
}

// The rank that asks for most of its device.
const MeasuredRank& largest(const Measurement& measurement) {
  return *std::ranges::max_element(measurement.ranks, {}, [](const MeasuredRank& rank) { return rank.peak.reserved_bytes; });
}

std::string interval_text(const Interval& bytes) {
  return fmt::format("{} – {}", format_bytes(bytes.low), format_bytes(bytes.high));
}

std::string answer_text(const MeasuredView& view, const MeasuredRank& rank) {
  const std::string device =
      fmt::format("{} of {}", format_bytes(view.request.device.memory_bytes), view.request.device.name);
  for (const MeasuredRank& one : view.measurement.ranks) {
    if (!one.out_of_memory) continue;
    const OutOfMemory& oom = *one.out_of_memory;
    const bool went_on = view.measurement.exit_code == 0;
    return fmt::format("{}: {} more asked for in {}, {} of {} free{}\n",
                       went_on ? "ran out of memory once, and went on" : "out of memory", format_bytes(oom.asked_bytes),
                       oom.phase, format_bytes(oom.free_bytes), device,
                       view.measurement.ranks.size() > 1 ? fmt::format(", on rank {}", one.rank) : "");
  }
  return fmt::format("fits: {} allocated, {} reserved, {} on the device, {}\n", format_bytes(rank.peak.allocated_bytes),
                     format_bytes(rank.peak.reserved_bytes), interval_text(device_bytes(view, rank)), device);
}

std::string phases_text(const MeasuredRank& rank) {
  std::string text = fmt::format("\n{:<26} {:>10} {:>10}\n", "peak of each phase", "allocated", "reserved");
  for (const auto& [name, peak] : rank.phases) {
    std::string bar;
    for (int64_t k = 0; k < kBar * peak.allocated_bytes / std::max<int64_t>(1, rank.peak.allocated_bytes); ++k) bar += "█";
    text += fmt::format("  {:<24} {:>10} {:>10}  {}\n", name, format_bytes(peak.allocated_bytes),
                        format_bytes(peak.reserved_bytes), bar);
  }
  return text;
}

std::string ranks_text(const Measurement& measurement) {
  if (measurement.ranks.size() < 2) return "";
  std::string text = fmt::format("\n{:<26} {:>10} {:>10}\n", "ranks", "allocated", "reserved");
  for (const MeasuredRank& rank : measurement.ranks)
    text += fmt::format("  {:<24} {:>10} {:>10}\n", rank.rank, format_bytes(rank.peak.allocated_bytes),
                        format_bytes(rank.peak.reserved_bytes));
  return text;
}

std::string notes_text(const MeasuredView& view, const MeasuredRank& rank) {
  std::string text = "\n";
  for (const auto& [name, version] : rank.versions)
    text += fmt::format("{}{} {}", text.size() > 1 ? ", " : "", name, version);
  text += fmt::format("\n{:.1f} s, {} of this machine's memory", rank.seconds, format_bytes(rank.host_peak_bytes));
  if (rank.pinned_bytes > (1 << 20)) text += fmt::format(", {} asked for as pinned", format_bytes(rank.pinned_bytes));
  if (rank.managed_bytes > 0) text += fmt::format(", {} as managed", format_bytes(rank.managed_bytes));
  text += "\n";
  for (const std::string& name : rank.refused)
    text += fmt::format("the program called {}, which the null device refuses\n", name);
  if (view.measurement.exit_code != 0 && !rank.out_of_memory)
    text +=
        fmt::format("the program ended with exit code {}: the peaks are those up to there\n", view.measurement.exit_code);
  return text;
}

Json peak_json(const MeasuredPeak& peak) {
  return {{"allocated_bytes", peak.allocated_bytes}, {"reserved_bytes", peak.reserved_bytes}};
}

Json phases_json(const MeasuredRank& rank) {
  Json phases = Json::object();
  for (const auto& [name, peak] : rank.phases) phases[name] = peak_json(peak);
  return phases;
}

Json rank_json(const MeasuredView& view, const MeasuredRank& rank) {
  const Interval device = device_bytes(view, rank);
  Json json = peak_json(rank.peak);
  json["device_bytes"] = {{"low", device.low}, {"high", device.high}};
  json["phase"] = rank.phase;
  json["steady_bytes"] = rank.steady_bytes ? Json(*rank.steady_bytes) : Json();
  return json;
}

// One entry for each distinct rank, with its count.
Json ranks_json(const MeasuredView& view) {
  Json list = Json::array();
  for (const MeasuredRank& rank : view.measurement.ranks) {
    Json entry = rank_json(view, rank);
    const auto same = std::ranges::find_if(list, [&](const Json& one) {
      return one["allocated_bytes"] == entry["allocated_bytes"] && one["reserved_bytes"] == entry["reserved_bytes"];
    });
    if (same != list.end()) {
      (*same)["count"] = (*same)["count"].get<int64_t>() + 1;
    } else {
      entry["first_rank"] = rank.rank;
      entry["count"] = 1;
      list.push_back(entry);
    }
  }
  return list;
}

Json out_of_memory_json(const MeasuredView& view) {
  for (const MeasuredRank& rank : view.measurement.ranks) {
    if (!rank.out_of_memory) continue;
    return {{"rank", rank.rank},
            {"phase", rank.out_of_memory->phase},
            {"asked_bytes", rank.out_of_memory->asked_bytes},
            {"free_bytes", rank.out_of_memory->free_bytes}};
  }
  return {};
}

}  // namespace

std::string measure_text(const MeasuredView& view) {
  const MeasuredRank& rank = largest(view.measurement);
  std::string text = "\n" + answer_text(view, rank);
  text += fmt::format("peak in {}: {} bytes allocated, {} reserved", rank.phase, rank.peak.allocated_bytes,
                      rank.peak.reserved_bytes);
  if (rank.steady_bytes) text += fmt::format("; {} allocated between steps", format_bytes(*rank.steady_bytes));
  text += fmt::format("; {}\n", counted(static_cast<int64_t>(rank.steps.size()), "step"));
  text += phases_text(rank) + ranks_text(view.measurement) + notes_text(view, rank);
  if (view.explanation) text += "\n" + explain_text(*view.explanation);
  return text;
}

Json measure_json(const MeasuredView& view) {
  const MeasuredRank& rank = largest(view.measurement);
  Json measured = rank_json(view, rank);
  measured["phases"] = phases_json(rank);
  measured["fits"] =
      std::ranges::none_of(view.measurement.ranks, [](const MeasuredRank& one) { return one.out_of_memory.has_value(); });
  measured["out_of_memory"] = out_of_memory_json(view);
  measured["stack"] = rank.versions;
  measured["steps"] = Json::array();
  for (const MeasuredPeak& step : rank.steps) measured["steps"].push_back(peak_json(step));
  measured["ranks"] = ranks_json(view);
  measured["pinned_bytes"] = rank.pinned_bytes;
  measured["managed_bytes"] = rank.managed_bytes;
  measured["host_peak_bytes"] = rank.host_peak_bytes;
  measured["seconds"] = rank.seconds;
  measured["refused"] = rank.refused;
  Json json{{"schema", 1},
            {"command", view.request.command},
            {"exit_code", view.measurement.exit_code},
            {"device",
             {{"name", view.request.device.name},
              {"memory_bytes", view.request.device.memory_bytes},
              {"context_bytes", view.request.device.context_bytes},
              {"compute_capability", view.request.device.compute_capability},
              {"multiprocessors", view.request.device.multiprocessors},
              {"count", view.request.device.count}}},
            {"measured", measured}};
  if (view.explanation) json["explanation"] = explain_json(*view.explanation);
  return json;
}

}  // namespace snug
