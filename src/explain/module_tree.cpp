#include "explain/module_tree.h"

#include <algorithm>

namespace snug {

ModuleId ModuleTree::add(const ModulePath& path) {
  ModuleId id = 0;
  for (const ModuleCall& module : path) {
    const auto [place, is_new] = ids_.try_emplace({id, module}, static_cast<ModuleId>(nodes_.size()));
    if (is_new) nodes_.push_back({module, id});
    id = place->second;
  }
  return id;
}

ModulePath ModuleTree::path(ModuleId id) const {
  ModulePath path;
  for (; id != 0; id = nodes_[id].parent) path.push_back(nodes_[id].module);
  std::ranges::reverse(path);
  return path;
}

std::vector<ModuleSum> sums_of(const ModuleTree& tree, std::vector<ModuleSum> own) {
  own.resize(tree.size());
  std::vector<std::vector<ModuleId>> inside(tree.size());
  for (auto id = static_cast<ModuleId>(tree.size() - 1); id > 0; --id) {
    ModuleSum& sum = own[id];
    if (sum.bytes == 0) continue;
    sum.module = id;
    own[tree.parent(id)].bytes += sum.bytes;
    own[tree.parent(id)].blocks += sum.blocks;
    inside[tree.parent(id)].push_back(id);
  }
  std::vector<ModuleSum> list;
  std::vector<ModuleId> next{0};
  while (!next.empty()) {
    const ModuleId id = next.back();
    next.pop_back();
    if (id != 0) list.push_back(own[id]);
    const int depth = id == 0 ? 0 : own[id].depth + 1;
    // The last of `next` comes first: the largest, the first seen of equals.
    std::ranges::sort(inside[id], [&](ModuleId a, ModuleId b) {
      return own[a].bytes != own[b].bytes ? own[a].bytes < own[b].bytes : a > b;
    });
    for (const ModuleId one : inside[id]) own[one].depth = depth;
    next.insert(next.end(), inside[id].begin(), inside[id].end());
  }
  return list;
}

}  // namespace snug
