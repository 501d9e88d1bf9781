#include "report/watch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "recipe/bytes.h"

namespace snug {

namespace {

constexpr std::array<const char*, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr size_t kMostUsers = 8;

std::string use_text(const MemorySample& sample) {
  return fmt::format("{} of {} ({:.0f} %)", format_bytes(sample.used_bytes), format_bytes(sample.limit_bytes),
                     100 * sample.share());
}

bool nearly_full(const MemorySample& sample) { return sample.share() >= kNearlyFull; }

std::string history(const std::deque<double>& shares, size_t most) {
  std::string text;
  for (size_t i = shares.size() > most ? shares.size() - most : 0; i < shares.size(); ++i)
    text += kBars[static_cast<size_t>(std::clamp(std::lround(7 * shares[i]), 0L, 7L))];
  return text;
}

std::string user_text(const MemoryUser& user) {
  return fmt::format("  {:>10}  process {}{}", user.bytes ? format_bytes(*user.bytes) : "not told", user.pid,
                     user.name.empty() ? "" : ", " + user.name);
}

}  // namespace

std::string watch_screen(const MemorySample& sample, const std::deque<double>& shares, const TextStyle& style) {
  const bool full = nearly_full(sample);
  const char* on = !style.colour ? "" : full ? "\033[1;31m" : "\033[1m";
  const char* off = style.colour ? "\033[0m" : "";
  std::string text = fmt::format("{}\n  {}{}{}{}", sample.what, on, use_text(sample), full ? ", nearly full" : "", off);
  if (sample.peak_bytes) text += fmt::format(", peak {}", format_bytes(*sample.peak_bytes));
  text += "\n  " + history(shares, static_cast<size_t>(style.width - 4)) + "\n";
  for (size_t i = 0; i < sample.users.size() && i < kMostUsers; ++i) text += user_text(sample.users[i]) + "\n";
  if (sample.users.size() > kMostUsers) text += fmt::format("  and {} more\n", sample.users.size() - kMostUsers);
  return text;
}

std::string watch_line(const MemorySample& sample, double seconds) {
  std::string text = fmt::format("{:8.1f} s  {}: {}", seconds, sample.what, use_text(sample));
  if (sample.peak_bytes) text += fmt::format(", peak {}", format_bytes(*sample.peak_bytes));
  return text + (nearly_full(sample) ? ", nearly full\n" : "\n");
}

std::string watch_json(const MemorySample& sample, double seconds) {
  nlohmann::ordered_json users = nlohmann::ordered_json::array();
  for (const MemoryUser& user : sample.users)
    users.push_back({{"pid", user.pid},
                     {"name", user.name},
                     {"bytes", user.bytes ? nlohmann::ordered_json(*user.bytes) : nlohmann::ordered_json()}});
  const nlohmann::ordered_json json = {
      {"seconds", seconds},
      {"what", sample.what},
      {"used_bytes", sample.used_bytes},
      {"limit_bytes", sample.limit_bytes},
      {"peak_bytes", sample.peak_bytes ? nlohmann::ordered_json(*sample.peak_bytes) : nlohmann::ordered_json()},
      {"nearly_full", nearly_full(sample)},
      {"processes", users}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace snug
