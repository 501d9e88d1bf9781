#pragma once
// The modules of many stacks, each held once below the one that calls it, and what those of one moment hold. Only memory
// whose stack shows a forward counts: parameters, gradients and the optimizer's states have none.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "explain/module_path.h"

namespace snug {

using ModuleId = uint32_t;  // 0: no module

class ModuleTree {
 public:
  // The innermost module of `path`; 0 for an empty path.
  ModuleId add(const ModulePath& path);

  const ModuleCall& module(ModuleId id) const { return nodes_[id].module; }
  ModuleId parent(ModuleId id) const { return nodes_[id].parent; }
  ModulePath path(ModuleId id) const;
  size_t size() const { return nodes_.size(); }  // ids are below; a parent's is below its modules'

 private:
  struct Node {
    ModuleCall module;
    ModuleId parent = 0;
  };

  std::vector<Node> nodes_{1};
  std::map<std::pair<ModuleId, ModuleCall>, ModuleId> ids_;
};

struct ModuleSum {
  ModuleId module = 0;
  int depth = 0;                  // 0: the outermost
  int64_t bytes = 0, blocks = 0;  // with the modules inside of it
  int64_t own_bytes = 0;          // without
};

// `own`: by id, what was made in the forward of each module itself. Each module that holds something before those inside of
// it, the largest first among siblings.
std::vector<ModuleSum> sums_of(const ModuleTree& tree, std::vector<ModuleSum> own);

}  // namespace snug
