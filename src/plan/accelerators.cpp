#include "plan/accelerators.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/edit_distance.h"

namespace snug {

extern const std::string_view kAcceleratorsText;  // accelerators.csv

namespace {

constexpr double kUsableShare = 0.97;  // where the drivers' figure is not known; accelerators.csv says why
constexpr int64_t kGiB = int64_t{1} << 30, kMiB = int64_t{1} << 20;
constexpr auto kVendorWords =
    std::to_array<std::string_view>({"nvidia", "geforce", "tesla", "amd", "instinct", "radeon", "intel", "apple", "google"});

// Takes what stands before `separator` off the front of `text`; all of it where there is none.
std::string_view next(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

double number(std::string_view& line) {  // 0 where the field is empty
  const std::string_view field = next(line, ',');
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (!field.empty() && (error != std::errc() || end != field.data() + field.size()))
    throw std::logic_error("accelerators.csv: not a number: " + std::string(field));
  return value;
}

Accelerator read_line(std::string_view line) {
  Accelerator a;
  a.name = next(line, ',');
  for (std::string_view names = next(line, ','); !names.empty();) a.aliases.emplace_back(next(names, '/'));
  a.vendor = next(line, ',');
  a.generation = next(line, ',');
  a.compute_capability = static_cast<int32_t>(number(line));
  a.multiprocessors = static_cast<int32_t>(number(line));
  const double memory = number(line), usable = number(line);
  if (std::string_view context = next(line, ','); !context.empty()) {
    std::string_view least = next(context, '/');
    a.context_least_bytes = static_cast<int64_t>(number(least)) * kMiB;
    a.context_most_bytes = static_cast<int64_t>(number(context)) * kMiB;
  }
  const auto bytes = [](double gib) { return static_cast<int64_t>(std::llround(gib * static_cast<double>(kGiB))); };
  a.memory_bytes = bytes(memory);
  a.usable_bytes = bytes(usable > 0 ? usable : kUsableShare * memory);
  a.bandwidth = number(line) * 1e9;
  for (double* rate : {&a.fp32_flops, &a.tf32_flops, &a.fp16_flops, &a.bf16_flops, &a.fp8_flops, &a.int8_ops})
    *rate = number(line) * 1e12;
  a.host_link = number(line) * 1e9;
  a.peer_link = number(line) * 1e9;
  if (const double price = number(line); price > 0) a.dollars_per_hour = price;
  a.best_use = line;
  return a;
}

std::vector<Accelerator> read_all() {
  std::vector<Accelerator> all;
  bool heading = true;  // the first line that is no comment names the columns
  for (std::string_view text = kAcceleratorsText; !text.empty();) {
    const std::string_view line = next(text, '\n');
    if (line.empty() || line.front() == '#') continue;
    if (!heading) all.push_back(read_line(line));
    heading = false;
  }
  return all;
}

// What counts of a name: its letters, in lower case, and digits, without the vendors' words.
std::string essence(std::string_view name) {
  std::string result, word;
  const auto finish_word = [&] {
    bool counts = true;
    for (const std::string_view vendor : kVendorWords) counts &= word != vendor;
    if (counts) result += word;
    word.clear();
  };
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      word += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else {
      finish_word();
    }
  }
  finish_word();
  return result;
}

}  // namespace

const std::vector<Accelerator>& accelerators() {
  static const std::vector<Accelerator> all = read_all();
  return all;
}

const Accelerator* find_accelerator(std::string_view name) {
  const std::string asked = essence(name.substr(0, 200));
  if (asked.empty()) return nullptr;
  for (const Accelerator& accelerator : accelerators()) {
    if (essence(accelerator.name) == asked) return &accelerator;
    for (const std::string& alias : accelerator.aliases)
      if (essence(alias) == asked) return &accelerator;
  }
  return nullptr;
}

std::string nearest_accelerator(std::string_view name) {
  const std::string asked = essence(name.substr(0, 200));
  const Accelerator* nearest = nullptr;
  int64_t least = std::numeric_limits<int64_t>::max();
  const auto consider = [&](const Accelerator& accelerator, std::string_view called) {
    const int64_t distance = edit_distance(asked, essence(called));
    if (distance < least) least = distance, nearest = &accelerator;
  };
  for (const Accelerator& accelerator : accelerators()) {
    consider(accelerator, accelerator.name);
    for (const std::string& alias : accelerator.aliases) consider(accelerator, alias);
  }
  return nearest == nullptr ? std::string() : nearest->name;
}

}  // namespace snug
