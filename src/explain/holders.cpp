#include "explain/holders.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace snug {

namespace {

// Node, module, file, line, function.
using Key = std::tuple<Holding, std::string, ModuleId, std::string, int64_t, std::string>;

Key key_of(const Holder& holder) {
  const Frame frame = holder.place.value_or(Frame{});
  return {holder.holding, holder.node, holder.module, frame.file, frame.line, frame.function};
}

Holder holder_of(const LiveStack& live, StackReader& reader) {
  const StackReading& reading = reader.read(live.stack);
  Holder holder{.holding = reading.holding, .place = reading.line, .module = reading.module};
  if (live.older && holder.holding == Holding::other) holder.holding = Holding::older;
  if (holder.holding == Holding::backward) holder.node = reading.node;
  if (!holder.node.empty()) holder.forward = reader.forward_of(holder.node);
  return holder;
}

// The file and its folder: enough to know it by.
std::string_view short_path(std::string_view file) {
  const size_t slash = file.rfind('/');
  const size_t before = slash == std::string_view::npos || slash == 0 ? slash : file.rfind('/', slash - 1);
  return before == std::string_view::npos ? file : file.substr(before + 1);
}

std::string place_text(const Frame& frame) {
  const std::string_view file = short_path(frame.file);
  const std::string where = frame.line > 0 ? fmt::format("{}:{}", file, frame.line) : std::string(file);
  return frame.function.empty() ? where : fmt::format("{} in {}", where, frame.function);
}

// By id.
std::vector<ModuleSum> own_sums(const ModuleTree& tree, const std::vector<Holder>& list) {
  std::vector<ModuleSum> sums(tree.size());
  for (const Holder& holder : list) {
    if (holder.module == 0) continue;
    ModuleSum& sum = sums[holder.module];
    sum.bytes += holder.bytes;
    sum.own_bytes += holder.bytes;
    sum.blocks += holder.blocks;
  }
  return sums;
}

}  // namespace

Holders holders_of(const Replay& replay, StackReader& reader) {
  Holders holders;
  std::map<Key, Holder> merged;
  for (const LiveStack& live : live_by_stack(replay)) {
    Holder holder = holder_of(live, reader);
    holders.by_holding[static_cast<size_t>(holder.holding)] += live.bytes;
    Holder& sum = merged.try_emplace(key_of(holder), holder).first->second;
    sum.bytes += live.bytes;
    sum.blocks += live.blocks;
  }
  for (auto& [key, holder] : merged) holders.list.push_back(std::move(holder));
  std::ranges::stable_sort(holders.list, [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  holders.tree = reader.modules();
  holders.modules = sums_of(holders.tree, own_sums(holders.tree, holders.list));
  return holders;
}

std::string text_of(const Holder& holder) {
  if (!holder.node.empty()) {
    if (holder.forward) return fmt::format("{}, of {}", holder.node, place_text(*holder.forward));
    return holder.place ? fmt::format("{}, {}", holder.node, place_text(*holder.place)) : holder.node;
  }
  if (holder.place) return place_text(*holder.place);
  return holder.holding == Holding::older ? "allocated before recording began" : "no line of Python is known";
}

}  // namespace snug
