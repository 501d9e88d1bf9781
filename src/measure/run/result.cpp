#include "measure/run/result.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostBytes = int64_t{64} << 20;

MeasuredPeak peak_of(const Json& json) { return {json.at("allocated_bytes"), json.at("reserved_bytes")}; }

std::optional<OutOfMemory> out_of_memory_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return OutOfMemory{json.at("phase"), json.at("asked_bytes"), json.at("free_bytes"), json.value("snapshot", std::string())};
}

MeasuredRank rank_of(const Json& json) {
  MeasuredRank rank;
  rank.rank = json.at("rank");
  rank.peak = peak_of(json);
  if (!json.at("phase").is_null()) rank.phase = json.at("phase");
  rank.driver_bytes = json.at("driver_bytes");
  if (!json.at("steady_bytes").is_null()) rank.steady_bytes = json.at("steady_bytes").get<int64_t>();
  rank.pinned_bytes = json.at("pinned_bytes");
  rank.managed_bytes = json.at("managed_bytes");
  rank.host_peak_bytes = json.at("host_peak_bytes");
  rank.seconds = json.at("seconds");
  for (const auto& [name, peak] : json.at("phases").items()) rank.phases.emplace_back(name, peak_of(peak));
  for (const Json& step : json.at("steps")) rank.steps.push_back(peak_of(step));
  rank.versions = json.at("versions");
  rank.refused = json.at("refused");
  rank.out_of_memory = out_of_memory_of(json.at("out_of_memory"));
  return rank;
}

}  // namespace

std::vector<MeasuredRank> read_results(const std::filesystem::path& directory) {
  std::map<int64_t, MeasuredRank> ranks;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".json") continue;
    MeasuredRank rank;
    try {
      rank = rank_of(Json::parse(read_text(entry.path(), kMostBytes, 0, "run it again")));
    } catch (const Json::exception& error) {
      throw Error(error.what(), entry.path(), "run it again");
    }
    const auto [it, is_new] = ranks.try_emplace(rank.rank, rank);
    if (!is_new && rank.peak.allocated_bytes > it->second.peak.allocated_bytes) it->second = rank;
  }
  std::vector<MeasuredRank> all;
  for (auto& [number, rank] : ranks) all.push_back(std::move(rank));
  return all;
}

}  // namespace snug
