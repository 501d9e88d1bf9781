#include "run/transfer.h"

#include <algorithm>
#include <stdexcept>

#include "run/binding.h"

namespace snug {

namespace {

// The unit that a byte of the whole buffer lies in.
const Unit& unit_of(const Storage& storage, int64_t byte) {
  const auto found = std::find_if(storage.units.begin(), storage.units.end(), [&](const Unit& unit) {
    return byte >= unit.begin && byte < unit.begin + unit.bytes * unit.layers;
  });
  if (found == storage.units.end()) throw std::logic_error("no unit of " + storage.name + " has this byte");
  return *found;
}

// Where in the whole buffer the layer begins that the byte lies in.
int64_t layer_begin_of(const Storage& storage, int64_t byte) {
  const Unit& unit = unit_of(storage, byte);
  return byte - (byte - unit.begin) % unit.bytes;
}

}  // namespace

// Bytes from the start of the tensor's home.
int64_t Transfer::place_of(TensorId tensor, int64_t layer, int64_t begin, size_t bytes) const {
  const Tensor& moved = program_.tensor(tensor);
  if (begin < 0 || begin + static_cast<int64_t>(bytes) > moved.bytes())
    throw std::logic_error("a transfer beyond the tensor " + moved.name);
  const Binding binding{program_, layout_, homes_.bases(), layer, 0, rank_, turn_};
  if (!moved.spread) return binding.offset(tensor) + begin;
  const auto [first, end] = held_bytes(tensor, layer);
  if (begin < first || begin + static_cast<int64_t>(bytes) > end)
    throw std::logic_error("a transfer of what another rank holds of " + moved.name);
  const Storage& storage = program_.storage(moved.storage);
  const int64_t in_whole = binding.first_byte(tensor) + begin, layer_begin = layer_begin_of(storage, in_whole);
  const int64_t in_part = (in_whole - layer_begin) % (unit_of(storage, in_whole).bytes / storage.ranks);
  return layout_.offset_of(moved.storage, 0) + layer_begin / storage.ranks + in_part;
}

std::pair<int64_t, int64_t> Transfer::held_bytes(TensorId tensor, int64_t layer) const {
  const Tensor& moved = program_.tensor(tensor);
  if (!moved.spread) return {0, moved.bytes()};
  const Storage& storage = program_.storage(moved.storage);
  const int64_t begin = Binding{program_, layout_, {}, layer}.first_byte(tensor);
  const int64_t part = unit_of(storage, begin).bytes / storage.ranks;
  const int64_t own = layer_begin_of(storage, begin) + program_.mesh.index(storage.cut_by, rank_) * part -
                      begin;  // where this rank's part begins, in the view
  return {std::clamp<int64_t>(own, 0, moved.bytes()), std::clamp<int64_t>(own + part, 0, moved.bytes())};
}

void Transfer::read_bytes(TensorId tensor, int64_t layer, int64_t begin, std::span<std::byte> out) const {
  const int64_t place = place_of(tensor, layer, begin, out.size());
  homes_.read(program_.home_of(tensor), place, out);
}

void Transfer::write_bytes(TensorId tensor, int64_t layer, int64_t begin, std::span<const std::byte> bytes) {
  if (program_.tensor(tensor).spread) {
    const auto [first, end] = held_bytes(tensor, layer);
    const int64_t from = std::max(begin, first), until = std::min(begin + static_cast<int64_t>(bytes.size()), end);
    if (from >= until) return;
    bytes = bytes.subspan(static_cast<size_t>(from - begin), static_cast<size_t>(until - from));
    begin = from;
  }
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
