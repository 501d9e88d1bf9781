#include "explain/holders.h"

#include <fmt/format.h>

#include <algorithm>

namespace snug {

namespace {

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

HolderTable::Key HolderTable::key_of(const Holder& holder) {
  const Frame frame = holder.place.value_or(Frame{});
  return {holder.holding, holder.node, holder.module, frame.file, frame.line, frame.function};
}

Holder HolderTable::holder_of(StackId stack, bool older) {
  const StackReading& reading = reader_.read(stack);
  Holder holder{.holding = reading.holding, .place = reading.line, .module = reading.module};
  if (older && (stack == 0 || holder.holding == Holding::other)) holder.holding = Holding::older;
  if (holder.holding == Holding::backward) holder.node = reading.node;
  if (!holder.node.empty()) holder.forward = reader_.forward_of(holder.node);
  return holder;
}

size_t HolderTable::index_of(StackId stack, bool older) {
  const auto [known, is_new] = by_stack_.try_emplace(uint64_t{stack} * 2 + (older ? 1 : 0));
  if (!is_new) return known->second;
  Holder holder = holder_of(stack, older);
  known->second = by_key_.try_emplace(key_of(holder), list_.size()).first->second;
  if (known->second == list_.size()) list_.push_back(std::move(holder));
  return known->second;
}

Holders holders_of(const Replay& replay, StackReader& reader) {
  HolderTable table(reader);
  Holders holders;
  for (const LiveStack& live : live_by_stack(replay)) {
    const size_t index = table.index_of(live.stack, live.older);
    if (index == holders.list.size()) holders.list.push_back(table.list()[index]);
    Holder& sum = holders.list[index];
    holders.by_holding[static_cast<size_t>(sum.holding)] += live.bytes;
    sum.bytes += live.bytes;
    sum.blocks += live.blocks;
  }
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
