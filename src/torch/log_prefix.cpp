#include "torch/log_prefix.h"

#include <algorithm>
#include <array>

#include "torch/words.h"

namespace snug {

namespace {

// "2025-11-14T03:12:34.123Z", "2025-11-14 03:12:34,123", "04-01 23:46:56", "23:46:56.123": bytes at the front, else 0.
size_t timestamp_length(std::string_view text) {
  size_t at = 0, digits = 0, colons = 0;
  for (; at < text.size() && at < 40; ++at) {
    const char c = text[at];
    if (is_digit(c)) {
      ++digits;
    } else if (c == ':') {
      ++colons;
    } else if (!(c == '-' || c == '/' || c == '.' || c == ',' || c == 'T' || c == 'Z' || c == '+' ||
                 (c == ' ' && colons == 0 && at + 1 < text.size() && is_digit(text[at + 1])))) {
      break;
    }
  }
  return digits >= 6 && colons >= 2 && (at == text.size() || text[at] == ' ' || text[at] == ']') ? at : 0;
}

std::optional<int> rank_in(std::string_view prefix) {
  size_t end = prefix.size();
  while (end > 0 && !is_digit(prefix[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && is_digit(prefix[begin - 1])) --begin;
  if (begin == end || end - begin > 6) return std::nullopt;
  return static_cast<int>(number_at(prefix.substr(begin, end - begin)));
}

// "[rank1]:", "rank4]:", "[default0]:", "[1,3]<stderr>:": bytes at the front, else 0; sets the rank.
size_t rank_length(std::string_view text, std::optional<int>& rank) {
  const size_t opened = text.starts_with('[') ? 1 : 0;
  constexpr std::array<std::string_view, 5> kNames = {"rank", "Rank", "RANK", "default", "trainer"};
  for (const std::string_view name : kNames) {
    if (!text.substr(opened).starts_with(name)) continue;
    size_t at = opened + name.size();
    while (at < text.size() && (is_digit(text[at]) || text[at] == ' ')) ++at;
    if (at == opened + name.size() || at >= text.size() || text[at] != ']') continue;
    rank = rank_in(text.substr(0, at));
    ++at;
    return at < text.size() && text[at] == ':' ? at + 1 : at;
  }
  const size_t end = text.substr(0, 48).find(':');  // mpirun's tags
  if (opened == 1 && end != std::string_view::npos && text.substr(0, end).ends_with("]<stderr>")) {
    rank = rank_in(text.substr(0, end));
    return end + 1;
  }
  return 0;
}

// "(EngineCore_DP0 pid=1234)" and "(pid=1234, ip=10.0.0.1)" of vLLM and Ray.
size_t actor_length(std::string_view text) {
  if (!text.starts_with('(')) return 0;
  const size_t end = text.substr(0, 160).find(')');
  return end != std::string_view::npos && text.substr(0, end).find("pid=") != std::string_view::npos ? end + 1 : 0;
}

// The level that is the first word of `text`; none if it is no level.
std::string_view level_of(std::string_view text) {
  constexpr std::array<std::string_view, 7> kLevels = {"ERROR", "WARNING", "WARN", "INFO", "CRITICAL", "DEBUG", "FATAL"};
  for (const std::string_view level : kLevels)
    if (text.starts_with(level) && (text.size() == level.size() || text[level.size()] < 'A' || text[level.size()] > 'Z'))
      return level;
  return {};
}

bool is_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
}

size_t name_length(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && at < 80 && is_name(text[at])) ++at;
  return at;
}

// "ERROR 04-01 23:46:56 [engine.py:160]" of vLLM: the level before a time, and the place behind one; also
// "[launch.py:3:main]",
// "[ERROR]" behind a time and "[stderr]".
size_t logger_length(std::string_view text, bool behind_time) {
  const std::string_view level = level_of(text);
  if (!level.empty() && text.substr(level.size()).starts_with(' ') && timestamp_length(text.substr(level.size() + 1)) > 0)
    return level.size() + 1;
  const size_t place = behind_time ? name_length(text) : 0;  // "engine.py:160] "
  if (text.substr(0, place).ends_with(".py") && text.substr(place).starts_with(':')) {
    const size_t bracket = place + 1 + digits_of(text.substr(place + 1)).size();
    if (text.substr(bracket).starts_with(']')) return bracket + 1;
  }
  const size_t end = text.starts_with('[') ? text.substr(0, 80).find(']') : std::string_view::npos;
  if (end == std::string_view::npos) return 0;
  const std::string_view inside = text.substr(1, end - 1);
  if (inside == "stderr" || inside == "stdout") return end + 1;
  if (behind_time && level_of(inside).size() == inside.size() && !inside.empty() && contains(text.substr(end, 80), "] [")) {
    return end + 1;  // a place follows
  }
  const size_t colon = inside.find(".py:");
  if (colon == std::string_view::npos) return 0;
  const std::string_view digits = digits_of(inside.substr(colon + 4));
  const std::string_view rest = inside.substr(colon + 4 + digits.size());
  return !digits.empty() && (rest.empty() || rest.starts_with(':')) ? end + 1 : 0;
}

// Behind a time: "| ERROR    | __main__:main:12 - ", "- ERROR - train - ", "- train - ERROR - ", "ERROR train: ",
// "stderr F ", "ERROR/MainProcess] ".
size_t record_length(std::string_view text) {
  if (text.starts_with("stderr F ") || text.starts_with("stdout F ")) return 9;
  if (text.substr(level_of(text).size()).starts_with('/')) {
    const size_t end = text.substr(0, 80).find("] ");
    return !level_of(text).empty() && end != std::string_view::npos ? end + 1 : 0;
  }
  const std::string_view mark = text.starts_with("| ") ? " | " : text.starts_with("- ") ? " - " : std::string_view();
  if (mark.empty()) {
    const std::string_view level = level_of(text);
    if (level.empty() || !text.substr(level.size()).starts_with(' ')) return 0;
    const size_t name = name_length(text.substr(level.size() + 1));
    const size_t end = level.size() + 1 + name;
    return name > 0 && text.substr(end).starts_with(": ") ? end + 2 : 0;
  }
  size_t at = 2;
  bool levelled = false;
  for (int fields = 0; fields < 3; ++fields) {
    const std::string_view rest = text.substr(at);
    const std::string_view level = level_of(rest);
    levelled = levelled || !level.empty();
    size_t length = 0;
    while (length < rest.size() && length < 80 && (is_name(rest[length]) || rest[length] == ':')) ++length;
    size_t end = length;
    while (end < rest.size() && rest[end] == ' ') ++end;
    if (length == 0 || end == length || end + 1 >= rest.size() || (rest[end] != '|' && rest[end] != '-') ||
        rest[end + 1] != ' ')
      break;
    at += end + 2;
  }
  return levelled && at > 2 ? at : 0;
}

// "trainer-1  | " and "algo-1-abcde | " of containers: a name with a number.
size_t container_length(std::string_view text) {
  const size_t name = name_length(text);
  if (name < 3) return 0;
  const std::string_view word = text.substr(0, name);
  const bool numbered =
      word.find_first_of("0123456789") != std::string_view::npos && word.find_first_of("-_") != std::string_view::npos;
  size_t at = name;
  while (at < text.size() && at < name + 40 && text[at] == ' ') ++at;
  return numbered && at > name && text.substr(at).starts_with("| ") ? at + 2
         : text.substr(at) == "|" && numbered                       ? at + 1
                                                                    : 0;
}

// "Nov 22 10:54:34 gpu01 python[12345]: " of syslog and the journal.
size_t syslog_length(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() < 20 || kMonths.find(text.substr(0, 3)) % 3 != 0 || text[3] != ' ') return 0;
  if (text[9] != ':' || text[12] != ':' || !is_digit(text[8]) || !is_digit(text[14])) return 0;
  const size_t host = name_length(text.substr(16));
  const size_t end = text.substr(0, 160).find(": ", 16 + host);
  if (host == 0 || end == std::string_view::npos) return 0;
  const std::string_view tag = text.substr(17 + host, end - 17 - host);
  return !tag.empty() && !contains(tag, " ") ? end + 2 : 0;
}

// "train  Run tests  2025-11-14T03:12:34.1234567Z ": what GitHub's tool puts in front of a job's log.
size_t job_length(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00.0000000Z ";
  const std::string_view front = text.substr(0, 200);
  for (size_t at = front.find("Z "); at != std::string_view::npos; at = front.find("Z ", at + 1)) {
    if (at + 2 < kShape.size()) continue;
    const std::string_view time = text.substr(at + 2 - kShape.size(), kShape.size());
    const bool alike =
        std::ranges::equal(time, kShape, [](char c, char shape) { return shape == '0' ? is_digit(c) : c == shape; });
    if (alike) return at + 1;
  }
  return 0;
}

// "3: " of `srun --label`, and "ERROR:root:" of Python's default format.
size_t label_length(std::string_view text, std::optional<int>& rank) {
  const std::string_view digits = digits_of(text);
  if (!digits.empty() && digits.size() <= 5 && text.substr(digits.size()).starts_with(": ")) {
    rank = static_cast<int>(number_at(digits));
    return digits.size() + 2;
  }
  const std::string_view level = level_of(text);
  if (level.empty() || !text.substr(level.size()).starts_with(':')) return 0;
  const size_t name = name_length(text.substr(level.size() + 1));
  const size_t end = level.size() + 1 + name;
  return name > 0 && text.substr(end).starts_with(':') ? end + 1 : 0;
}

size_t mark_length(std::string_view text) {
  constexpr std::array<std::string_view, 4> kMarks = {"│", "┃", "E   ", "❱"};
  for (const std::string_view mark : kMarks)
    if (text.starts_with(mark)) return mark.size();
  return 0;
}

size_t prefix_length(std::string_view text, std::optional<int>& rank, bool& behind_time) {
  if (const size_t length = rank_length(text, rank)) return length;
  if (const size_t length = timestamp_length(text)) {
    behind_time = true;
    return length;
  }
  if (const size_t length = actor_length(text)) return length;
  if (const size_t length = logger_length(text, behind_time)) return length;
  if (const size_t length = behind_time ? record_length(text) : 0) return length;
  if (const size_t length = container_length(text)) return length;
  if (const size_t length = syslog_length(text)) return length;
  if (const size_t length = behind_time ? 0 : job_length(text)) return length;
  if (const size_t length = behind_time ? 0 : label_length(text, rank)) return length;
  if (text.starts_with('[')) {  // "[2024-01-01 00:00:00,123]", "[2024-01-01 00:00:00,123: ERROR/MainProcess]"
    const size_t length = timestamp_length(text.substr(1));
    if (length > 0 && 1 + length < text.size() && (text[1 + length] == ']' || text[length] == ':')) {
      behind_time = true;
      return length + 2;
    }
  }
  return 0;
}

// "(VllmWorker rank=0 pid=12)", "(EngineCore_DP0 pid=12)", "[vllm/v1/engine/core.py:842]"
bool is_vllms(std::string_view prefix) {
  constexpr std::array<std::string_view, 5> kNames = {"VllmWorker", "RayWorkerWrapper", "EngineCore", "Worker_TP", "[vllm/"};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return prefix.find(name) != std::string_view::npos; });
}

}  // namespace

LogLine without_prefix(std::string_view text) {
  LogLine line;
  bool behind_time = false;
  for (int most = 0; most < 8; ++most) {
    const size_t first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) break;
    const std::string_view rest = text.substr(first);
    const size_t length = prefix_length(rest, line.rank, behind_time);
    const size_t mark = length == 0 ? mark_length(rest) : 0;
    if (length + mark == 0) break;
    line.by_vllm = line.by_vllm || is_vllms(rest.substr(0, length));
    text = rest.substr(length + mark);
    const bool parted = mark > 0 || !rest.substr(0, length).ends_with(' ');  // the blank behind it is not the line's
    if (text.starts_with(' ') && parted) text.remove_prefix(1);
  }
  while (text.ends_with(' ')) text.remove_suffix(1);
  constexpr std::string_view kBar = "│";
  if (text.ends_with(kBar)) text.remove_suffix(kBar.size());
  while (text.ends_with(' ')) text.remove_suffix(1);
  line.text = text;
  return line;
}

}  // namespace snug
