#include "ask/receipts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "formats/file.h"

namespace snug {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kSchema = 3;                        // of probes: 3 moves pages beside compute
constexpr int64_t kMostBytes = int64_t{4} << 20;  // of receipts that are read; older ones lie before
constexpr size_t kMostRuns = 10;

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

fs::path runs_file() { return receipts_directory() / "runs.jsonl"; }

// Text of a file that is there; none where it cannot be read: receipts help, and never stand in the way.
std::optional<std::string> text_of(const fs::path& path) {
  try {
    if (!is_there(path)) return std::nullopt;
    return read_text_file(path, kMostBytes);
  } catch (const Error&) {
    return std::nullopt;
  }
}

double number_or_zero(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number() ? found->get<double>() : 0.0;
}

bool is_text(const Json& json, const char* name, const std::string& expected) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() && found->get<std::string>() == expected;
}

Json parse(const std::string& text) { return Json::parse(text, nullptr, false); }

}  // namespace

fs::path receipts_directory() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') return fs::path(cache) / "snug";
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr && *home != '\0' ? home : ".") / ".cache" / "snug";
}

fs::path probe_file(int32_t threads) { return receipts_directory() / fmt::format("probe-{}-threads.json", threads); }

void keep_probe(const CostModel& model, int32_t threads) {
  Json rates;
  for (int i = 0; i < kCostClassCount; ++i) {
    const CostRate& rate = model.rates[static_cast<size_t>(i)];
    rates[name_of(static_cast<CostClass>(i))] = {
        {"flops_per_second", rate.flops}, {"bytes_per_second", rate.bytes}, {"seconds", rate.seconds}};
  }
  const Json json{
      {"schema", kSchema}, {"processor", processor()}, {"threads", threads}, {"source", model.source}, {"rates", rates}};
  std::error_code problem;
  fs::create_directories(receipts_directory(), problem);
  if (problem) throw Error(problem.message(), receipts_directory().string(), "set XDG_CACHE_HOME to a directory of yours");
  write_file_atomically(probe_file(threads), json.dump(2) + "\n");
}

std::optional<CostModel> kept_probe(int32_t threads) {
  const auto text = text_of(probe_file(threads));
  if (!text) return std::nullopt;
  const Json json = parse(*text);
  if (!json.is_object() || number_or_zero(json, "schema") != kSchema || !is_text(json, "processor", processor()))
    return std::nullopt;
  const auto rates = json.find("rates");
  if (rates == json.end() || !rates->is_object()) return std::nullopt;
  CostModel model = nominal_cpu_rates(threads);
  for (int i = 0; i < kCostClassCount; ++i) {
    const auto rate = rates->find(name_of(static_cast<CostClass>(i)));
    if (rate == rates->end() || !rate->is_object()) return std::nullopt;
    model.rates[static_cast<size_t>(i)] = {.flops = number_or_zero(*rate, "flops_per_second"),
                                           .bytes = number_or_zero(*rate, "bytes_per_second"),
                                           .seconds = number_or_zero(*rate, "seconds")};
  }
  model.source = fmt::format("a probe of this machine with {} threads", threads);
  return model;
}

std::string receipt_json(const RunReceipt& r) {
  return Json{{"schema", kSchema},
              {"model", r.model},
              {"method", r.method},
              {"processor", processor()},
              {"threads", r.threads},
              {"planned_peak_bytes", r.planned_peak_bytes},
              {"measured_peak_bytes", r.measured_peak_bytes},
              {"planned_step_seconds", r.planned_step_seconds > 0 ? Json(r.planned_step_seconds) : Json()},
              {"measured_step_seconds", r.measured_step_seconds}}
      .dump();
}

void keep_receipt(const RunReceipt& receipt) {
  std::error_code ignored;
  if (!fs::is_directory(receipts_directory(), ignored)) return;
  const std::string line = receipt_json(receipt) + "\n";
  const UniqueFd file = open_to_append(runs_file());
  write_all(file.get(), std::as_bytes(std::span(line.data(), line.size())), runs_file());
}

std::optional<Correction> kept_correction(const std::string& model, const std::string& method, int32_t threads) {
  const auto text = text_of(runs_file());
  if (!text) return std::nullopt;
  const std::string here = processor();
  std::vector<double> ratios;
  Correction correction;
  for (size_t end = text->size(); end > 0 && ratios.size() < kMostRuns;) {  // newest first
    const size_t begin = text->rfind('\n', end - 1) == std::string::npos ? 0 : text->rfind('\n', end - 1) + 1;
    const Json json = begin < end ? parse(text->substr(begin, end - begin)) : Json();
    end = begin == 0 ? 0 : begin - 1;
    if (!json.is_object() || !is_text(json, "model", model) || !is_text(json, "method", method) ||
        !is_text(json, "processor", here) || number_or_zero(json, "threads") != threads)
      continue;
    const double planned = number_or_zero(json, "planned_step_seconds"),
                 measured = number_or_zero(json, "measured_step_seconds");
    const double planned_peak = number_or_zero(json, "planned_peak_bytes");
    if (!(planned > 0 && measured > 0 && planned_peak > 0)) continue;
    ratios.push_back(measured / planned);
    const double peak = number_or_zero(json, "measured_peak_bytes") / planned_peak;
    correction.least_peak = std::min(correction.least_peak, peak);
    correction.most_peak = std::max(correction.most_peak, peak);
  }
  if (ratios.empty()) return std::nullopt;
  std::sort(ratios.begin(), ratios.end());
  correction.factor = ratios[ratios.size() / 2];
  correction.runs = static_cast<int64_t>(ratios.size());
  return correction;
}

}  // namespace snug
