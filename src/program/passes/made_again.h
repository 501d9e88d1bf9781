#pragma once
// Which ops of a block's forward must run once more ahead of its backward, given what the forward let go of: those that make
// what is lost and still read, and in turn what they read themselves.

#include <bitset>
#include <map>
#include <set>
#include <vector>

#include "program/program.h"

namespace snug {

class MadeAgain {
 public:
  static constexpr size_t kMostStorages = 256;  // that a block's ops touch
  using Set = std::bitset<kMostStorages>;

  // `forward`: the body of a loop over layers, of ops alone; `readers`: the backward through the same layers.
  MadeAgain(const Program& program, const Region& forward, const Region& readers);

  // Of `storages`, those that the forward touches.
  Set set_of(const std::set<StorageId>& storages) const;

  // Places in the body of the ops that run again when `lost` is gone, ascending. Throws std::logic_error where one of them
  // would not find what it reads as it was: what is kept has been changed since.
  std::vector<size_t> ops(const Set& lost) const;

  // What the op at this place in the body reads.
  const Set& reads_of(size_t op) const { return ops_[op].reads; }

 private:
  struct Touches {
    Set reads, writes, updates;
  };

  const Program& program_;
  std::map<StorageId, size_t> numbers_;
  std::vector<Touches> ops_;
  Set read_later_;  // by the readers
};

// Storages that a body makes for its own layer: all it writes but what it hands on.
std::set<StorageId> made_by(const Program& program, const Region& body);

}  // namespace snug
