#include "run/transfer.h"

#include <stdexcept>

#include "run/binding.h"

namespace snug {

// Bytes from the start of the tensor's home.
int64_t Transfer::place_of(TensorId tensor, int64_t layer, int64_t begin, size_t bytes) const {
  const Tensor& moved = program_.tensor(tensor);
  if (begin < 0 || begin + static_cast<int64_t>(bytes) > moved.bytes())
    throw std::logic_error("a transfer beyond the tensor " + moved.name);
  return Binding{program_, layout_, homes_.bases(), layer}.offset(tensor) + begin;
}

void Transfer::read_bytes(TensorId tensor, int64_t layer, int64_t begin, std::span<std::byte> out) const {
  const int64_t place = place_of(tensor, layer, begin, out.size());
  homes_.read(program_.home_of(tensor), place, out);
}

void Transfer::write_bytes(TensorId tensor, int64_t layer, int64_t begin, std::span<const std::byte> bytes) {
  const int64_t place = place_of(tensor, layer, begin, bytes.size());
  homes_.write(program_.home_of(tensor), place, bytes);
}

void Transfer::clear(StorageId storage) {
  const Storage& cleared = program_.storage(storage);
  const int64_t from = layout_.offset_of(storage, 0), last = layout_.offset_of(storage, cleared.instances - 1);
  homes_.clear(cleared.home, from, last - from + cleared.bytes);  // nothing else lies between
}

std::span<std::byte> Transfer::host_bytes(TensorId tensor) const {
  const StorageId room = program_.tensor(tensor).storage;
  for_each_op(program_.root, [&](const Op& op, const Region&) {
    if (run_by(op.kind) == RunBy::host) return;
    for (const Operand& operand : op.operands)
      if (program_.tensor(operand.tensor).storage == room)
        throw std::logic_error(std::string(name_of(op.kind)) + " works in " + program_.storage(room).name);
  });
  const auto bytes = static_cast<size_t>(program_.tensor(tensor).bytes());
  return {homes_.bases()[static_cast<size_t>(program_.home_of(tensor))] + place_of(tensor, 0, 0, bytes), bytes};
}

void Transfer::require_size(TensorId tensor, size_t bytes) const {
  if (size_of(program_.tensor(tensor).dtype) != static_cast<int64_t>(bytes))
    throw std::logic_error("the elements of " + program_.tensor(tensor).name + " are of another size");
}

}  // namespace snug
