#include "program/passes/clone.h"

namespace snug {

TensorId Clones::of(TensorId id) {
  const StorageId old_storage = program_.tensor(id).storage;
  if (old_storage == kNone || !cloned_.contains(old_storage)) return id;
  if (const auto found = tensors_.find(id); found != tensors_.end()) return found->second;
  auto storage = storages_.find(old_storage);
  if (storage == storages_.end()) {
    Storage copy = program_.storage(old_storage);
    copy.instances = 1;
    if (copy.role == Role::activation) copy.role = Role::temporary;
    storage = storages_.emplace(old_storage, program_.add_storage(std::move(copy))).first;
  }
  Tensor copy = program_.tensor(id);
  copy.storage = storage->second;
  copy.instance = 0;
  copy.instance_by_layer = false;
  return tensors_[id] = program_.add_tensor(std::move(copy));
}

void Clones::rename(Op& op) {
  for (Operand& operand : op.operands) operand.tensor = of(operand.tensor);
}

void Clones::rename(Region& region) {
  for_each_op(region, [this](Op& op, const Region&) { rename(op); });
}

}  // namespace snug
