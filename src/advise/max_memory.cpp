#include "advise/max_memory.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/edit_distance.h"
#include "base/error.h"
#include "base/quote.h"
#include "base/trimmed.h"
#include "recipe/bytes.h"

namespace snug {

namespace {

constexpr size_t kMostDevices = 64, kLongestEntry = 40;
constexpr const char* kExample = "write 0:80GiB,cpu:200GiB";

bool is_index(std::string_view text) {
  constexpr size_t kMostDigits = 3;
  return !text.empty() && text.size() <= kMostDigits && (text == "0" || text[0] != '0') &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string nearest_of(std::string_view word, const auto& names) {
  return std::string(*std::min_element(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return edit_distance(lower(word), lower(a)) < edit_distance(lower(word), lower(b));
  }));
}

std::string nearest_device(std::string_view name) {
  const auto digit = std::find_if(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (digit != name.end()) {  // "cuda:1", "gpu0"
    const std::string_view digits = name.substr(static_cast<size_t>(digit - name.begin()));
    if (is_index(digits)) return std::string(digits);
  }
  constexpr auto kNames = std::to_array<std::string_view>({"0", "cpu", "disk", "gpu", "cuda", "ram", "host"});
  const std::string nearest = nearest_of(name, kNames);
  if (nearest == "ram" || nearest == "host") return "cpu";
  return nearest == "gpu" || nearest == "cuda" ? "0" : nearest;
}

// "80GBB" is most like "80GB"; a size without a number becomes 24GiB.
std::string nearest_size(std::string_view size) {
  std::string digits, unit;
  for (const char c : size) {
    if ((c >= '0' && c <= '9') || (c == '.' && !digits.empty() && unit.empty() && digits.find('.') == std::string::npos)) {
      if (unit.empty()) digits += c;
    } else if (!digits.empty() && c != ' ') {
      unit += c;
    }
  }
  if (digits.empty() || digits.size() > 15) return "24GiB";
  constexpr auto kUnits = std::to_array<std::string_view>({"GB", "GiB", "MB", "MiB", "TB", "TiB", "KB", "KiB", "B"});
  const std::string small = lower(unit);
  if (small.empty() || small == "g") return digits + "GiB";
  if (small == "m") return digits + "MiB";
  if (small == "t") return digits + "TiB";
  return digits + nearest_of(small.ends_with('i') ? unit + "B" : unit, kUnits);  // "80Gi"
}

[[noreturn]] void refuse(std::string_view entry, const std::string& what, const std::string& where,
                         const std::string& mend) {
  throw Error(quote(entry.substr(0, kLongestEntry)) + " " + what, where, "did you mean " + mend + "?");
}

DeviceRoom room_of(std::string_view entry, const std::string& where) {
  const size_t colon = entry.rfind(':');
  if (colon == std::string_view::npos) {
    const bool device = is_index(entry) || lower(entry) == "cpu" || lower(entry) == "disk";
    if (device) refuse(entry, "has no size", where, lower(entry) + ":24GiB");
    refuse(entry, "names no device", where, "0:" + nearest_size(entry));
  }
  const std::string_view size = trimmed(entry.substr(colon + 1));
  DeviceRoom room{.name = lower(trimmed(entry.substr(0, colon)))};
  if (room.name == "cpu") {
    room.kind = DeviceKind::host;
  } else if (room.name == "disk") {
    room.kind = DeviceKind::disk;
  } else if (!is_index(room.name)) {
    const std::string name = nearest_device(std::string_view(room.name).substr(0, kLongestEntry));
    refuse(entry, "names no device", where, name + ":" + nearest_size(size.substr(0, kLongestEntry)));
  }
  try {
    room.bytes = parse_bytes(size);
  } catch (const Error& error) {
    refuse(entry, "has no size that can be read", where, room.name + ":" + nearest_size(size.substr(0, kLongestEntry)));
  }
  if (room.bytes == 0) throw Error(quote(entry) + " leaves nothing on the device", where, "leave " + room.name + " out");
  return room;
}

}  // namespace

std::vector<DeviceRoom> parse_max_memory(std::string_view text, const std::string& where) {
  std::vector<DeviceRoom> rooms;
  if (trimmed(text).empty()) throw Error("no device is named", where, kExample);
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view entry = trimmed(text.substr(0, comma));
    if (entry.empty()) throw Error("an entry is empty", where, kExample);
    DeviceRoom room = room_of(entry, where);
    const auto same = [&](const DeviceRoom& other) { return other.name == room.name; };
    if (std::any_of(rooms.begin(), rooms.end(), same))
      throw Error("device " + room.name + " comes twice", where, "keep one of them");
    if (rooms.size() == kMostDevices) throw Error("more than 64 devices", where, kExample);
    rooms.push_back(std::move(room));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  std::stable_sort(rooms.begin(), rooms.end(), [](const auto& a, const auto& b) { return a.kind < b.kind; });
  return rooms;
}

}  // namespace snug
