#include "run/transfer.h"

#include <cstring>
#include <stdexcept>

#include "run/binding.h"

namespace snug {

bool Transfer::is_far(TensorId tensor) const {
  return program_.storage(program_.tensor(tensor).storage).home != Home::device;
}

// Bytes from the start of the tensor's home.
int64_t Transfer::place_of(TensorId tensor, int64_t layer, int64_t begin, size_t bytes) const {
  const Tensor& moved = program_.tensor(tensor);
  if (begin < 0 || begin + static_cast<int64_t>(bytes) > moved.bytes())
    throw std::logic_error("a transfer beyond the tensor " + moved.name);
  return Binding{program_, layout_, near_, layer}.offset(tensor) + begin;
}

void Transfer::read_bytes(TensorId tensor, int64_t layer, int64_t begin, std::span<std::byte> out) const {
  const int64_t place = place_of(tensor, layer, begin, out.size());
  if (is_far(tensor)) return far_->read(place, out);
  if (!out.empty()) std::memcpy(out.data(), near_ + place, out.size());
}

void Transfer::write_bytes(TensorId tensor, int64_t layer, int64_t begin, std::span<const std::byte> bytes) {
  const int64_t place = place_of(tensor, layer, begin, bytes.size());
  if (is_far(tensor)) return far_->write(place, bytes);
  if (!bytes.empty()) std::memcpy(near_ + place, bytes.data(), bytes.size());
}

void Transfer::clear(StorageId storage) {
  const Storage& cleared = program_.storage(storage);
  if (cleared.home != Home::device) return far_->clear(layout_.offset_of(storage, 0), cleared.bytes);
  std::memset(near_ + layout_.offset_of(storage, 0), 0, static_cast<size_t>(cleared.bytes));
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
  return {near_ + place_of(tensor, 0, 0, bytes), bytes};
}

void Transfer::require_size(TensorId tensor, size_t bytes) const {
  if (size_of(program_.tensor(tensor).dtype) != static_cast<int64_t>(bytes))
    throw std::logic_error("the elements of " + program_.tensor(tensor).name + " are of another size");
}

}  // namespace snug
