#pragma once
// Copies of storages that a pass gives to a body of its own: the same shapes, temporary, one instance.

#include <map>
#include <set>

#include "program/program.h"

namespace snug {

class Clones {
 public:
  // Storages in `cloned` are replaced by fresh ones; all others are kept.
  Clones(Program& program, std::set<StorageId> cloned) : program_(program), cloned_(std::move(cloned)) {}

  void rename(Op& op);
  void rename(Region& region);
  TensorId of(TensorId id);

 private:
  Program& program_;
  std::set<StorageId> cloned_;
  std::map<StorageId, StorageId> storages_;
  std::map<TensorId, TensorId> tensors_;
};

}  // namespace snug
