#pragma once
// Writes pickles of plain data, for files that PyTorch would not write.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace snug::pickled {

inline std::string integer(int64_t value) {
  std::string text = "\x8a\x08";
  for (int i = 0; i < 8; ++i) text += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  return text;
}

inline std::string text(std::string_view value) {
  std::string written = "X";
  for (int i = 0; i < 4; ++i) written += static_cast<char>(value.size() >> (8 * i));
  return written.append(value);
}

inline std::string list(const std::vector<std::string>& items) {
  std::string written = "](";
  for (const std::string& item : items) written += item;
  return written + "e";
}

using Entries = std::vector<std::pair<std::string_view, std::string>>;

inline std::string dict(const Entries& entries) {
  std::string written = "}(";
  for (const auto& [key, value] : entries) written += text(key) + value;
  return written + "u";
}

inline std::string file(const std::string& value) { return "\x80\x04" + value + "."; }

inline std::string frame(std::string_view name, int64_t line) {
  return dict(
      {{"filename", text("model.py")}, {"name", text(name)}, {"line", integer(line)}, {"fx_node_op", text("output")}});
}

inline std::string event(std::string_view action, int64_t address, int64_t size, const std::string& frames = "]") {
  return dict({{"action", text(action)},
               {"addr", integer(address)},
               {"size", integer(size)},
               {"stream", "K\x05"},
               {"frames", frames}});
}

inline std::string block(int64_t address, int64_t size, std::string_view state, int64_t requested) {
  return dict({{"address", integer(address)},
               {"size", integer(size)},
               {"requested_size", integer(requested)},
               {"state", text(state)}});
}

inline std::string segment(int64_t address, int64_t size, const std::vector<std::string>& blocks) {
  return dict({{"address", integer(address)},
               {"total_size", integer(size)},
               {"segment_type", text("large")},
               {"blocks", list(blocks)}});
}

inline std::string snapshot(const std::vector<std::string>& segments, const std::vector<std::string>& events) {
  return file(dict({{"segments", list(segments)}, {"device_traces", list({list(events)})}}));
}

}  // namespace snug::pickled
