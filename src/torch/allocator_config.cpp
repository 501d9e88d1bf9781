#include "torch/allocator_config.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace snug {

namespace {

constexpr size_t kMostUnknown = 16, kLongestKey = 64;
constexpr int64_t kLeastLargeSegment = int64_t{10} << 20U;  // a smaller one would not hold what it is for

// Settings that change no size and no place of a block on the device.
constexpr auto kWithoutEffect = std::to_array<std::string_view>({"release_lock_on_cudamalloc", "release_lock_on_hipmalloc",
                                                                 "graph_capture_record_stream_reuse",
                                                                 "throw_on_cudamalloc_oom", "expandable_segments_reserve"});

std::string without_blanks(std::string_view text) {
  std::string letters;
  std::ranges::copy_if(text, std::back_inserter(letters), [](char c) { return c != ' ' && c != '\t' && c != '\n'; });
  return letters;
}

// Up to the next comma outside of brackets, which is taken off with it.
std::string_view take_item(std::string_view& rest) {
  int depth = 0;
  size_t end = 0;
  for (; end < rest.size() && (depth > 0 || rest[end] != ','); ++end)
    depth += rest[end] == '[' ? 1 : rest[end] == ']' ? -1 : 0;
  const std::string_view item = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return item;
}

template <class T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> mib_of(std::string_view text) {
  const auto mib = number_of<int64_t>(text);
  if (!mib || *mib <= 0) return std::nullopt;
  return std::min(*mib, int64_t{1} << 30U) << 20U;
}

std::optional<double> share_of(std::string_view text) {
  const auto share = number_of<double>(text);
  return share && *share >= 0 && *share <= 1 ? share : std::nullopt;
}

std::optional<bool> truth_of(std::string_view text) {
  if (text == "True") return true;
  return text == "False" ? std::optional(false) : std::nullopt;
}

// "4" for all sizes, or "[256:1,512:2,>:8]": of the intervals that start at so many MiB. The first also holds below, ">" for
// all above the last named.
std::optional<std::array<int64_t, 16>> divisions_of(std::string_view text) {
  std::array<int64_t, 16> divisions{};
  if (!text.starts_with('[')) {
    const auto all = number_of<int64_t>(text);
    if (!all) return std::nullopt;
    divisions.fill(*all);
    return divisions;
  }
  text = text.substr(1, text.size() - (text.ends_with(']') ? 2 : 1));
  bool first = true;
  size_t behind = 0;  // the last named
  while (!text.empty()) {
    const std::string_view item = take_item(text);
    const size_t colon = std::min(item.find(':'), item.size());
    const auto value = number_of<int64_t>(item.substr(std::min(colon + 1, item.size())));
    if (!value) return std::nullopt;
    if (item.substr(0, colon) == ">") {
      std::fill(divisions.begin() + static_cast<ptrdiff_t>(behind), divisions.end(), *value);
      continue;
    }
    const auto start = number_of<uint64_t>(item.substr(0, colon));
    if (!start || *start == 0) return std::nullopt;
    const size_t index = std::min<size_t>(static_cast<size_t>(std::bit_width(*start)) - 1, divisions.size() - 1);
    if (first) std::fill_n(divisions.begin(), index, *value);
    first = false;
    divisions[index] = *value;
    behind = index + 1;
  }
  return divisions;
}

void read_setting(AllocatorConfig& config, std::string_view key, std::string_view value) {
  if (key == "max_split_size_mb") {
    config.max_split_bytes = mib_of(value);
  } else if (key == "max_non_split_rounding_mb") {
    config.max_non_split_rounding_bytes = mib_of(value);
  } else if (key == "large_segment_size_mb") {
    if (const auto bytes = mib_of(value); bytes && *bytes > kLeastLargeSegment) config.large_segment_bytes = bytes;
  } else if (key == "garbage_collection_threshold") {
    config.garbage_collection_threshold = share_of(value);
  } else if (key == "per_process_memory_fraction") {
    config.memory_fraction = share_of(value);
  } else if (key == "expandable_segments") {
    config.expandable_segments = truth_of(value);
  } else if (key == "roundup_power2_divisions") {
    config.roundup_divisions = divisions_of(value);
  } else if (key == "backend") {
    config.native = value == "native";
  } else if (!key.empty() && !key.starts_with("pinned_") && std::ranges::find(kWithoutEffect, key) == kWithoutEffect.end() &&
             config.unknown.size() < kMostUnknown && key.size() <= kLongestKey) {
    config.unknown.emplace_back(key);
  }
}

}  // namespace

AllocatorConfig read_allocator_config(std::string_view text) {
  AllocatorConfig config;
  const std::string letters = without_blanks(text);
  std::string_view rest = letters;
  while (!rest.empty()) {
    const std::string_view item = take_item(rest);
    const size_t colon = std::min(item.find(':'), item.size());
    read_setting(config, item.substr(0, colon), item.substr(std::min(colon + 1, item.size())));
  }
  return config;
}

}  // namespace snug
