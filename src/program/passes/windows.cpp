#include "program/passes/windows.h"

#include <algorithm>

#include "base/element_count.h"
#include "program/collective.h"

namespace snug {

namespace {

// Views of one instance are taken for one: by its number, and whether it goes with the layer.
using Instance = std::pair<int64_t, bool>;

bool is_page(const Op& op) { return run_by(op.kind) == RunBy::executor; }

// Clears all of a window.
Op cleared(Program& program, const Piece& piece, TensorId view) {
  Tensor whole = program.tensor(view);
  whole.offset = 0;
  whole.shape = {piece.bytes / size_of(whole.dtype)};
  return Op{OpKind::zero}.writes(Slot::gradient, program.add_tensor(std::move(whole)));
}

// Where a page goes: before which item, and a view of what it moves.
using Places = std::map<Instance, std::pair<size_t, TensorId>>;

Op page_out(TensorId far, TensorId window) {
  return Op{OpKind::page_out, Lane::copy_out}.writes(Slot::far, far).reads(Slot::window, window);
}

Op fetched_op(Program& program, const Piece& piece, LayerWindow& window, TensorId view) {
  if (piece.part != kNone)
    return all_gather(program, piece.part, window.whole(program.tensor(piece.part).dtype),
                      {program.storage(piece.storage).cut_by});
  const TensorId bytes = whole_of(program, piece, view);
  return page_in(bytes, window.twin(bytes));
}

Op sent_op(Program& program, const Piece& piece, LayerWindow& window, TensorId view) {
  if (piece.part != kNone)
    return reduce_scatter(program, window.whole(program.tensor(piece.part).dtype), piece.part, true,
                          {program.storage(piece.storage).cut_by});
  const TensorId bytes = whole_of(program, piece, view);
  return page_out(bytes, window.twin(bytes));
}

void collect_bodies(Region& region, std::vector<Region*>& bodies) {
  for (Item& item : region.items)
    if (Region* child = item.region()) collect_bodies(*child, bodies);
  bodies.push_back(&region);
}

}  // namespace

Piece all_of(const Program& program, StorageId id) {
  const Storage& storage = program.storage(id);
  return {.storage = id, .bytes = storage.bytes, .name = storage.name};
}

Piece piece_of(const Program& program, TensorId view) {
  const Tensor& tensor = program.tensor(view);
  presume(tensor.offset % kFarAlignment == 0 && tensor.layer_stride % kFarAlignment == 0, "whole pages of " + tensor.name);
  return {.storage = tensor.storage,
          .offset = tensor.offset,
          .bytes = align_up(tensor.bytes(), kFarAlignment),
          .in_flat_buffer = true,
          .name = tensor.name};
}

// All bytes of the piece that the tensor is a view of, in the layer whose turn it is.
TensorId whole_of(Program& program, const Piece& piece, TensorId id) {
  Tensor whole = program.tensor(id);
  whole.dtype = DType::u8;
  whole.shape = {piece.bytes};
  whole.offset = piece.offset;
  return program.add_tensor(std::move(whole));
}

Op page_in(TensorId far, TensorId window) {
  return Op{OpKind::page_in, Lane::copy_in}.reads(Slot::far, far).writes(Slot::window, window);
}

LayerWindow::LayerWindow(Program& program, const Piece& piece, int64_t turns)
    : program_(program), piece_(piece), turns_(turns) {
  Storage window = program.storage(piece.storage);
  window.name = piece.name + ".window";
  window.bytes = checked_mul(piece.bytes, turns);
  window.home = Home::device;
  window.lifetime = Lifetime::computed;
  window.alignment = kFarAlignment;
  window.instances = 1;
  window.units.clear();
  window.ranks = 1;
  storage_ = program.add_storage(std::move(window));
}

TensorId LayerWindow::twin(TensorId id) {
  if (const auto found = twins_.find(id); found != twins_.end()) return found->second;
  Tensor tensor = program_.tensor(id);
  const bool by_layer = (tensor.instance_by_layer || piece_.per_layer) && turns_ > 1;
  tensor.storage = storage_;
  tensor.offset -= piece_.offset;
  tensor.layer_stride = by_layer ? piece_.bytes : 0;
  tensor.layer_turns = by_layer ? turns_ : 0;
  tensor.first_layer = !by_layer ? 0 : piece_.per_layer ? piece_.first_layer : -tensor.instance;
  if (!tensor.instance_by_layer) tensor.offset += tensor.instance % turns_ * piece_.bytes;
  tensor.instance = 0;
  tensor.instance_by_layer = false;
  tensor.spread = false;
  return twins_[id] = program_.add_tensor(std::move(tensor));
}

TensorId LayerWindow::whole(DType dtype) {
  const bool by_layer = piece_.per_layer && turns_ > 1;
  return program_.add_tensor({.name = piece_.name + ".window",
                              .storage = storage_,
                              .dtype = dtype,
                              .shape = {element_count(dtype, piece_.bytes)},
                              .layer_stride = by_layer ? piece_.bytes : 0,
                              .first_layer = by_layer ? piece_.first_layer : 0,
                              .layer_turns = by_layer ? turns_ : 0});
}

void move(Program& program, Region& body, const Piece& piece, LayerWindow& window, Moves moves) {
  Places fetched, sent;
  for (size_t i = 0; i < body.items.size(); ++i) {
    Op* const op = body.items[i].op();
    if (op == nullptr || is_page(*op)) continue;
    for (Operand& operand : op->operands) {
      const Tensor& tensor = program.tensor(operand.tensor);
      if (!piece.holds(tensor)) continue;
      const Instance instance(tensor.instance, tensor.instance_by_layer);
      if (moves != Moves::out) fetched.try_emplace(instance, i, operand.tensor);
      if (moves != Moves::in && operand.access != Access::read) sent[instance] = {i + 1, operand.tensor};
      operand.tensor = window.twin(operand.tensor);
    }
  }
  std::vector<std::pair<size_t, Op>> pages;
  for (const auto& [instance, place] : fetched) {
    const TensorId view = place.second;
    pages.emplace_back(place.first, moves == Moves::made ? cleared(program, piece, window.twin(view))
                                                         : fetched_op(program, piece, window, view));
  }
  for (const auto& [instance, place] : sent) {
    pages.emplace_back(place.first, sent_op(program, piece, window, place.second));
  }
  std::stable_sort(pages.begin(), pages.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [place, page] : pages)  // from the last on, so that places stay
    body.items.insert(body.items.begin() + static_cast<int64_t>(place), Item{std::move(page)});
}

std::vector<Region*> bodies_of(Region& region) {
  std::vector<Region*> bodies;
  collect_bodies(region, bodies);
  return bodies;
}

bool uses(const Program& program, const Region& body, const Piece& piece) {
  return std::any_of(body.items.begin(), body.items.end(), [&](const Item& item) {
    const Op* op = item.op();
    return op != nullptr && !is_page(*op) &&
           std::any_of(op->operands.begin(), op->operands.end(),
                       [&](const Operand& operand) { return piece.holds(program.tensor(operand.tensor)); });
  });
}

void move_apart(Program& program, Region& region, const Piece& piece, Moves moves) {
  for (Region* body : bodies_of(region)) {
    if (!uses(program, *body, piece)) continue;
    const bool takes_turns = piece.per_layer && body->axis == Axis::layer && body->count > 1;
    LayerWindow window(program, piece, takes_turns ? piece.turns : 1);
    move(program, *body, piece, window, moves);
  }
}

}  // namespace snug
