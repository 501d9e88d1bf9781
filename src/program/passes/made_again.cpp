#include "program/passes/made_again.h"

#include <algorithm>

namespace snug {

MadeAgain::MadeAgain(const Program& program, const Region& forward, const Region& readers) : program_(program) {
  for (const Item& item : forward.items) {
    presume(item.op() != nullptr, "a block of ops alone");
    Touches& touches = ops_.emplace_back();
    for (const Operand& operand : item.op()->operands) {
      const StorageId storage = program.tensor(operand.tensor).storage;
      if (storage == kNone) continue;  // a weight that has no place yet
      const size_t number = numbers_.emplace(storage, numbers_.size()).first->second;
      presume(number < kMostStorages, "a block that touches few storages");
      Set& set = operand.access == Access::read    ? touches.reads
                 : operand.access == Access::write ? touches.writes
                                                   : touches.updates;
      set.set(number);
    }
  }
  for_each_op(readers, [&](const Op& op, const Region&) {
    for (const Operand& operand : op.operands)
      if (operand.access != Access::write)
        if (const auto found = numbers_.find(program.tensor(operand.tensor).storage); found != numbers_.end())
          read_later_.set(found->second);
  });
}

MadeAgain::Set MadeAgain::set_of(const std::set<StorageId>& storages) const {
  Set set;
  for (StorageId storage : storages)
    if (const auto found = numbers_.find(storage); found != numbers_.end()) set.set(found->second);
  return set;
}

std::vector<size_t> MadeAgain::ops(const Set& lost) const {
  std::vector<size_t> again;
  again.reserve(ops_.size());
  Set needed = read_later_, changed;  // by readers, by ops further down
  for (size_t i = ops_.size(); i-- > 0;) {
    const Touches& op = ops_[i];
    changed |= op.updates & ~lost;
    if (((op.writes | op.updates) & lost & needed).none()) continue;
    presume(((op.reads | op.updates) & changed).none(), "what is kept as it was, for what is done again");
    needed |= op.reads | op.writes | op.updates;
    again.push_back(i);
  }
  std::reverse(again.begin(), again.end());
  return again;
}

std::set<StorageId> made_by(const Program& program, const Region& body) {
  std::set<StorageId> carried, made;
  for (const Carry& carry : body.carries) carried.insert(program.tensor(carry.out).storage);
  for_each_op(body, [&](const Op& op, const Region&) {
    for (const Operand& operand : op.operands)
      if (operand.access == Access::write && !carried.contains(program.tensor(operand.tensor).storage))
        made.insert(program.tensor(operand.tensor).storage);
  });
  return made;
}

}  // namespace snug
