#include "torch/oom_figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string>

#include "torch/words.h"

namespace snug {

namespace {

struct Unit {
  std::string_view name;
  double bytes;
  bool decimal;
};

constexpr double kKi = 1024.0;
constexpr std::array<Unit, 15> kUnits = {{{"bytes", 1, false},
                                          {"KiB", kKi, false},
                                          {"MiB", kKi* kKi, false},
                                          {"GiB", kKi* kKi* kKi, false},
                                          {"kib", kKi, false},  // somebody's lower case
                                          {"mib", kKi* kKi, false},
                                          {"gib", kKi* kKi* kKi, false},
                                          {"TiB", kKi* kKi* kKi* kKi, false},
                                          {"PiB", kKi* kKi* kKi* kKi* kKi, false},
                                          {"EiB", kKi* kKi* kKi* kKi* kKi* kKi, false},
                                          {"kB", kKi, false},  // of the kernel
                                          {"KB", 1e3, true},
                                          {"MB", 1e6, true},
                                          {"GB", 1e9, true},
                                          {"TB", 1e12, true}}};

constexpr double kMostBytes = 4611686018427387904.0;  // 2^62
constexpr int64_t kMostMemory = int64_t{1} << 50;     // no device or process has more

// The digits of a number at the front of `text`; a terminal may have broken them after any of them but the last decimal.
size_t read_number(std::string_view text, std::string& digits) {
  size_t at = 0, decimals = 0;
  bool point = false;
  digits.clear();
  for (; at < text.size() && digits.size() < 32; ++at) {
    const char c = text[at];
    if (is_digit(c)) {
      decimals += point ? 1 : 0;
    } else if (c == '.' && !point && at + 1 < text.size() && (is_digit(text[at + 1]) || is_blank(text[at + 1]))) {
      point = true;  // numpy's "876. GiB"
    } else if (c == '\n' && decimals < 2 && at + 1 < text.size() &&
               (is_digit(text[at + 1]) || (text[at + 1] == '.' && !point))) {
      continue;
    } else {
      break;
    }
    digits += c;
  }
  return at;
}

const Unit* unit_at(std::string_view text, size_t& length) {
  for (const Unit& unit : kUnits) {
    length = phrase_length(text, unit.name);
    if (length == 0) continue;
    const bool ends = length >= text.size() || !((text[length] >= 'a' && text[length] <= 'z') || is_digit(text[length]));
    if (ends) return &unit;
  }
  return nullptr;
}

bool may_begin(std::string_view text, size_t at) {
  if (!is_digit(text[at])) return false;
  if (at == 0) return true;
  const char before = text[at - 1];
  return !is_digit(before) && before != '.' && !(before >= 'a' && before <= 'z') && !(before >= 'A' && before <= 'Z') &&
         before != '_';
}

// What a size is called by the words beside it.
struct Label {
  std::string_view before, behind;  // either may be empty
  std::optional<int64_t> OomMessage::*field;
  std::string_view name;
};

constexpr auto kLabels = std::to_array<Label>({
    {"ried to allocate", "", &OomMessage::tried_bytes, "tried"},
    {"", "total capacity", &OomMessage::capacity_bytes, "capacity"},
    {"", "total capacty", &OomMessage::capacity_bytes, "capacity"},
    {"total capacity of", "", &OomMessage::capacity_bytes, "capacity"},
    {"total capacty of", "", &OomMessage::capacity_bytes, "capacity"},
    {"of which", "", &OomMessage::free_bytes, "free"},
    {"this process has", "", &OomMessage::process_bytes, "process"},
    {"Of the allocated memory", "", &OomMessage::allocated_bytes, "allocated"},
    {"", "is allocated by PyTorch", &OomMessage::allocated_bytes, "allocated"},
    {"", "allocated in private pools", &OomMessage::private_pool_bytes, "private_pools"},
    {"", "is reserved", &OomMessage::unallocated_bytes, "unallocated"},
    {"allocated by PyTorch, and", "", &OomMessage::unallocated_bytes, "unallocated"},
    {"Graphs), and", "", &OomMessage::unallocated_bytes, "unallocated"},
    {"", "reserved in total by", &OomMessage::reserved_bytes, "reserved"},
    {"", "rese", &OomMessage::reserved_bytes, "reserved"},  // cut short
    {"", "already allocated", &OomMessage::allocated_bytes, "allocated"},
    {"", "free;", &OomMessage::free_bytes, "free"},
    {"", "is free", &OomMessage::free_bytes, "free"},
    {"", "cached)", &OomMessage::unallocated_bytes, "unallocated"},
    {"", "allowed;", &OomMessage::allowed_bytes, "allowed"},
    {"Currently allocated :", "", &OomMessage::allocated_bytes, "allocated"},
    {"Requested :", "", &OomMessage::tried_bytes, "tried"},
    {"Invalid buffer size:", "", &OomMessage::tried_bytes, "tried"},
    {"Requested size:", "", &OomMessage::tried_bytes, "tried"},
    {"Device limit :", "", &OomMessage::capacity_bytes, "capacity"},
    {"Free (according to CUDA):", "", &OomMessage::free_bytes, "free"},
    {"memory fraction) :", "", &OomMessage::allowed_bytes, "allowed"},
    {"block with size larger than", "", &OomMessage::allowed_bytes, "allowed"},
    {"MPS allocated:", "", &OomMessage::allocated_bytes, "allocated"},
    {"other allocations:", "", &OomMessage::other_bytes, "other"},
    {"max allowed:", "", &OomMessage::allowed_bytes, "allowed"},
    {"nable to allocate", "", &OomMessage::tried_bytes, "tried"},
    {"allocate request for", "", &OomMessage::tried_bytes, "tried"},
    {"Error allocating device buffer: Attempting to allocate", "", &OomMessage::tried_bytes, "tried"},
    {"while trying to allocate", "", &OomMessage::tried_bytes, "tried"},
    {"ut of memory allocating", "", &OomMessage::tried_bytes, "tried"},
    {"ut of memory trying to allocate", "", &OomMessage::tried_bytes, "tried"},
    {"Cannot allocate", "memory on GPU", &OomMessage::tried_bytes, "tried"},
    {"", "memory has been allocated", &OomMessage::allocated_bytes, "allocated"},
    {"available memory is only", "", &OomMessage::free_bytes, "free"},
    {"allocating", "on device", &OomMessage::tried_bytes, "tried"},
    {"", "KV cache is needed", &OomMessage::tried_bytes, "tried"},
    {"available KV cache memory (", "", &OomMessage::allowed_bytes, "allowed"},
    {"CUDA calloc", "", &OomMessage::tried_bytes, "tried"},
    {"CUDA malloc", "", &OomMessage::tried_bytes, "tried"},
    {"nable to mmap", "", &OomMessage::tried_bytes, "tried"},
    {"anon-rss:", "", &OomMessage::process_bytes, "process"},
});

// The words before a figure without the blank and the colon's blanks between.
bool stands_before(std::string_view text, std::string_view phrase) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  if (phrase.ends_with(" :")) {
    if (!text.ends_with(':')) return false;
    text.remove_suffix(1);
    phrase.remove_suffix(2);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  }
  return phrase_length_before(text, phrase) > 0;
}

bool stands_behind(std::string_view text, std::string_view phrase) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return phrase_length(text, phrase) > 0;
}

const Label* label_of(std::string_view before, std::string_view behind) {
  for (const Label& label : kLabels) {
    if (!label.before.empty() && !stands_before(before, label.before)) continue;
    if (!label.behind.empty() && !stands_behind(behind, label.behind)) continue;
    return &label;
  }
  return nullptr;
}

// The number of "Process 26469 has" at the end of `text`.
std::optional<int64_t> process_before(std::string_view text) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  const size_t has = phrase_length_before(text, "has");
  if (has == 0) return std::nullopt;
  text.remove_suffix(has);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  size_t begin = text.size();
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  const int64_t pid = number_at(text.substr(begin));
  if (pid < 0 || phrase_length_before(text.substr(0, begin), "Process ") == 0) return std::nullopt;
  return pid;
}

// The index behind "GPU " or "device " where what follows shows that it was not cut short.
std::optional<int> device_in(std::string_view text) {
  constexpr std::array<std::string_view, 6> kNames = {"GPU ", "gpu ", "XPU ", "NPU ", "on device ", "device ordinal "};
  for (const std::string_view name : kNames) {
    for (size_t at = text.find(name[0]); at != std::string_view::npos; at = text.find(name[0], at + 1)) {
      const size_t length = phrase_length(text.substr(at), name);
      if (length == 0) continue;
      size_t end = at + length;
      while (end < text.size() && is_digit(text[end])) ++end;
      const int64_t index = number_at(text.substr(at + length, end - at - length));
      const std::string_view rest = text.substr(end);
      if (index >= 0 && index < 4096 &&
          (rest.starts_with(';') || rest.starts_with(": ") || phrase_length(rest, " has a") > 0 ||
           phrase_length(rest, " would") > 0))
        return static_cast<int>(index);
    }
  }
  return std::nullopt;
}

// "Free memory on device cuda:0 (2.6/121.63 GiB) on startup is less than desired … utilization (0.9, 109.47 GiB)".
void read_vllm_start(OomMessage& message, std::string_view text) {
  const auto total = next_size(text, 0, false);
  if (!total || !stands_behind(text.substr(total->end), ") on startup")) return;
  message.capacity_bytes = total->bytes;
  const std::string_view before = text.substr(0, total->begin);
  const size_t open = before.rfind('(');
  if (open != std::string_view::npos && before.ends_with('/')) {
    const std::string_view unit = text.substr(text.find(' ', total->begin), 5);
    const std::string alone = std::string(before.substr(open + 1, before.size() - open - 2)) + std::string(unit);
    if (const auto free = next_size(alone, 0, false)) message.free_bytes = free->bytes;
  }
  const auto wanted = next_size(text, total->end, false);
  if (wanted && text.substr(wanted->end).starts_with(')')) message.tried_bytes = wanted->bytes;
}

// The count behind the words `before`: "estimated maximum model length is 14784".
std::optional<int64_t> count_behind(std::string_view text, std::string_view before) {
  for (size_t at = text.find(before[0]); at != std::string_view::npos; at = text.find(before[0], at + 1)) {
    const size_t length = phrase_length(text.substr(at), before);
    const int64_t count = length > 0 ? number_at(digits_of(text.substr(at + length))) : -1;
    if (count > 0) return count;
  }
  return std::nullopt;
}

// Of a sequence that is longer than the key-value cache.
void read_vllm_lengths(OomMessage& message, std::string_view text) {
  message.wanted_tokens = count_behind(text, "max seq len (");
  message.possible_tokens = count_behind(text, "stored in KV cache (");
  if (!message.possible_tokens) message.possible_tokens = count_behind(text, "maximum model length is ");
}

void note_impossible(OomMessage& message, std::string_view name) {
  if (std::ranges::find(message.impossible, name) == message.impossible.end()) message.impossible.emplace_back(name);
}

}  // namespace

std::optional<SizeFound> next_size(std::string_view text, size_t from, bool binary_units) {
  std::string digits;
  for (size_t at = from; at < text.size(); ++at) {
    if (!may_begin(text, at)) continue;
    const size_t number = read_number(text.substr(at), digits);
    size_t behind = at + number;
    while (behind < text.size() && is_blank(text[behind]) && behind < at + number + 8) ++behind;
    size_t length = 0;
    const Unit* unit = unit_at(text.substr(behind), length);
    if (unit == nullptr) {
      at += number > 0 ? number - 1 : 0;
      continue;
    }
    double scale = unit->bytes;
    if (unit->decimal && binary_units)
      scale = unit->name == "KB"   ? kKi
              : unit->name == "MB" ? kKi * kKi
              : unit->name == "GB" ? kKi * kKi * kKi
                                   : kKi * kKi * kKi * kKi;
    const double value = std::strtod(digits.c_str(), nullptr) * scale;
    SizeFound found{at, behind + length, std::nullopt};
    if (value < kMostBytes) found.bytes = std::llround(value);
    return found;
  }
  return std::nullopt;
}

void read_figures(OomMessage& message, std::string_view text) {
  const bool binary = message.source == OomSource::torch_mps || message.source == OomSource::torch_xpu;
  for (auto size = next_size(text, 0, binary); size; size = next_size(text, size->end, binary)) {
    const std::string_view before = text.substr(0, size->begin), behind = text.substr(size->end);
    if (const auto pid = process_before(before)) {
      if (message.processes.size() >= 1024) continue;
      const bool possible = size->bytes && *size->bytes <= kMostMemory;
      message.processes.push_back({*pid, possible ? size->bytes : std::nullopt});
      if (!possible) note_impossible(message, "process");
      continue;
    }
    const Label* label = label_of(before, behind);
    if (label == nullptr || message.*label->field) continue;
    const bool request = label->field == &OomMessage::tried_bytes;  // a wrong shape may ask for anything
    if (size->bytes && (request || *size->bytes <= kMostMemory)) {
      message.*label->field = size->bytes;
    } else {
      note_impossible(message, label->name);
    }
  }
  message.device = device_in(text);
  if (message.source != OomSource::vllm) return;
  read_vllm_start(message, text);
  read_vllm_lengths(message, text);
}

}  // namespace snug
