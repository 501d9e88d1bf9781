// Offload: what lies in the far home is brought into windows of memory around the ops that use it. A window holds one
// layer's bytes; its copies have lanes of their own, so they go on beside compute, and a layer is fetched while another is
// worked on.

#include <algorithm>
#include <map>
#include <set>

#include "program/passes/list.h"
#include "program/passes/named_layers.h"
#include "program/passes/offload.h"

namespace snug {

namespace {

// What is fetched and sent at once: all that a storage has of a layer, or one view of a flat buffer in it.
struct Piece {
  StorageId storage = kNone;
  int64_t offset = 0, bytes = 0;  // of the first layer's
  bool in_flat_buffer = false;
  std::string name;

  bool holds(const Tensor& tensor) const {
    return tensor.storage == storage && tensor.offset >= offset && tensor.offset < offset + bytes;
  }
};

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

Op page_out(TensorId far, TensorId window) {
  return Op{OpKind::page_out, Lane::copy_out}.writes(Slot::far, far).reads(Slot::window, window);
}

// Stands for a piece where ops see a layer's bytes of it.
class Window {
 public:
  // `turns`: windows that follow each other from layer to layer, for what is handed from one to the next.
  Window(Program& program, const Piece& piece, int64_t turns) : program_(program), piece_(piece), turns_(turns) {
    Storage window = program.storage(piece.storage);
    window.name = piece.name + ".window";
    window.bytes = checked_mul(piece.bytes, turns);
    window.home = Home::device;
    window.lifetime = Lifetime::computed;
    window.alignment = kFarAlignment;
    window.instances = 1;
    storage_ = program.add_storage(std::move(window));
  }

  // The same view in the window.
  TensorId twin(TensorId id) {
    if (const auto found = twins_.find(id); found != twins_.end()) return found->second;
    Tensor tensor = program_.tensor(id);
    const bool by_layer = tensor.instance_by_layer && turns_ > 1;
    tensor.storage = storage_;
    tensor.offset -= piece_.offset;
    tensor.layer_stride = by_layer ? piece_.bytes : 0;
    tensor.layer_turns = by_layer ? turns_ : 0;
    tensor.first_layer = by_layer ? -tensor.instance : 0;
    if (!tensor.instance_by_layer) tensor.offset += tensor.instance % turns_ * piece_.bytes;
    tensor.instance = 0;
    tensor.instance_by_layer = false;
    return twins_[id] = program_.add_tensor(std::move(tensor));
  }

 private:
  Program& program_;
  Piece piece_;
  StorageId storage_ = kNone;
  int64_t turns_;
  std::map<TensorId, TensorId> twins_;
};

// Views of one instance are taken for one: by its number, and whether it goes with the layer.
using Instance = std::pair<int64_t, bool>;

// What a body does with what lies far: fetch each instance before the first op that uses it, send it behind the last that
// writes it, or both; or make it from nothing and send it.
enum class Moves : uint8_t { in, out, both, made };

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

// The ops of a body see the piece through the window; regions within are bodies of their own.
void move(Program& program, Region& body, const Piece& piece, Window& window, Moves moves) {
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
    const TensorId bytes = whole_of(program, piece, place.second);
    pages.emplace_back(place.first, moves == Moves::made ? cleared(program, piece, window.twin(place.second))
                                                         : page_in(bytes, window.twin(bytes)));
  }
  for (const auto& [instance, place] : sent) {
    const TensorId bytes = whole_of(program, piece, place.second);
    pages.emplace_back(place.first, page_out(bytes, window.twin(bytes)));
  }
  std::stable_sort(pages.begin(), pages.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [place, page] : pages)  // from the last on, so that places stay
    body.items.insert(body.items.begin() + static_cast<int64_t>(place), Item{std::move(page)});
}

// The innermost first: what is put into a body moves the regions within.
void collect_bodies(Region& region, std::vector<Region*>& bodies) {
  for (Item& item : region.items)
    if (Region* child = item.region()) collect_bodies(*child, bodies);
  bodies.push_back(&region);
}

std::vector<Region*> bodies_of(Region& region) {
  std::vector<Region*> bodies;
  collect_bodies(region, bodies);
  return bodies;
}

template <class Visit>
void for_each_body(const Region& region, const Visit& visit) {
  for (const Item& item : region.items)
    if (const Region* child = item.region()) for_each_body(*child, visit);
  visit(region);
}

bool uses(const Program& program, const Region& body, const Piece& piece) {
  return std::any_of(body.items.begin(), body.items.end(), [&](const Item& item) {
    const Op* op = item.op();
    return op != nullptr && !is_page(*op) &&
           std::any_of(op->operands.begin(), op->operands.end(),
                       [&](const Operand& operand) { return piece.holds(program.tensor(operand.tensor)); });
  });
}

// Each body below `region` has a window of its own.
void move_apart(Program& program, Region& region, const Piece& piece, Moves moves) {
  for (Region* body : bodies_of(region)) {
    if (!uses(program, *body, piece)) continue;
    Window window(program, piece, 1);
    move(program, *body, piece, window, moves);
  }
}

void send_to_disk(Storage& storage) {
  storage.home = Home::disk;
  storage.bytes = align_up(storage.bytes, kFarAlignment);
}

// The residual stream, which is handed from block to block.
void offload_streams(Program& program) {
  std::set<StorageId> streams;
  for (int32_t i = 0; i < program.count(Section::blocks); ++i)
    for (const Carry& carry : program.region(Section::blocks, i).carries) streams.insert(program.tensor(carry.in).storage);
  Region &forward = program.region(Section::forward), &backward = program.region(Section::backward);
  for (StorageId stream : streams) {
    send_to_disk(program.storage(stream));
    const Piece piece = all_of(program, stream);
    Window window(program, piece, 2);
    for (Region* body : bodies_of(forward)) move(program, *body, piece, window, Moves::out);
    move_apart(program, backward, piece, Moves::in);
  }
}

// A storage of the same layers that these blocks see in place of `id`, which others keep.
StorageId apart(Program& program, StorageId id, const std::vector<int32_t>& blocks) {
  const StorageId twin = program.add_storage(Storage(program.storage(id)));
  std::map<TensorId, TensorId> twins;
  for (int32_t block : blocks) {
    BlockRun& run = program.blocks[static_cast<size_t>(block)];
    for (std::vector<StorageId>* list : {&run.saved, &run.away}) {
      std::replace(list->begin(), list->end(), id, twin);
      std::sort(list->begin(), list->end());
    }
    for (const Section section : {Section::blocks, Section::blocks_backward})
      for_each_op(program.region(section, block), [&](Op& op, const Region&) {
        for (Operand& operand : op.operands) {
          if (program.tensor(operand.tensor).storage != id) continue;
          const auto [known, fresh] = twins.try_emplace(operand.tensor, kNone);
          if (fresh) {
            Tensor tensor = program.tensor(operand.tensor);
            tensor.storage = twin;
            known->second = program.add_tensor(std::move(tensor));
          }
          operand.tensor = known->second;
        }
      });
  }
  return twin;
}

// What blocks save for their backward and may not keep.
void offload_saved(Program& program) {
  std::map<StorageId, std::vector<int32_t>> away;  // by which blocks
  std::set<StorageId> kept;                        // by others
  for (size_t i = 0; i < program.blocks.size(); ++i) {
    const BlockRun& block = program.blocks[i];
    for (StorageId id : block.saved) {
      const bool is_away = std::find(block.away.begin(), block.away.end(), id) != block.away.end();
      if (is_away) away[id].push_back(static_cast<int32_t>(i));
      if (!is_away) kept.insert(id);
    }
  }
  for (const auto& [id, blocks] : away) {
    const StorageId storage = kept.contains(id) ? apart(program, id, blocks) : id;
    send_to_disk(program.storage(storage));
    const Piece piece = all_of(program, storage);
    move_apart(program, program.region(Section::forward), piece, Moves::out);
    move_apart(program, program.region(Section::backward), piece, Moves::in);
  }
}

// What stays of a weight in memory: the bytes of a run of layers, filled once when all is loaded.
class Stay {
 public:
  Stay(Program& program, StorageId far, const Region& run) : program_(program), first_(run.first) {
    Storage kept = program.storage(far);
    kept.name += ".kept";
    kept.home = Home::device;
    kept.alignment = kFarAlignment;
    kept.instances = run.count;
    storage_ = program.add_storage(std::move(kept));
  }

  TensorId twin(TensorId id) {
    Tensor tensor = program_.tensor(id);
    tensor.storage = storage_;
    tensor.instance = -first_;
    return program_.add_tensor(std::move(tensor));
  }

 private:
  Program& program_;
  int64_t first_;
  StorageId storage_ = kNone;
};

// The ops of both loops through these layers see what stays.
void keep(Program& program, int32_t index, const std::set<StorageId>& far, Region& fills) {
  std::map<StorageId, Stay> stays;
  std::map<TensorId, TensorId> twins;
  const Region& run = program.region(Section::blocks, index);
  Region fill{.name = "keep", .stage = Stage::load, .axis = Axis::layer, .first = run.first, .count = run.count};
  for (const Section section : {Section::blocks, Section::blocks_backward})
    for_each_op(program.region(section, index), [&](Op& op, const Region&) {
      for (Operand& operand : op.operands) {
        const StorageId storage = program.tensor(operand.tensor).storage;
        if (!far.contains(storage)) continue;
        const auto [stay, fresh] = stays.try_emplace(storage, program, storage, run);
        if (fresh) {
          const TensorId bytes = whole_of(program, all_of(program, storage), operand.tensor);
          fill.add(page_in(bytes, stay->second.twin(bytes)));
        }
        const auto [twin, unknown] = twins.try_emplace(operand.tensor, kNone);
        if (unknown) twin->second = stay->second.twin(operand.tensor);
        operand.tensor = twin->second;
      }
    });
  if (!fill.items.empty()) fills.add(std::move(fill));
}

// Those that were placed in the far home. Of blocks that are not to lie there a copy stays in memory.
void offload_frozen(Program& program, const std::vector<int64_t>& on_disk) {
  std::set<StorageId> far;
  for (const Weight& weight : program.weights)
    if (!weight.trainable && program.home_of(weight.tensor) != Home::device)
      far.insert(program.tensor(weight.tensor).storage);
  if (far.empty()) return;
  Region fills{.name = "keep", .section = Section::keep, .stage = Stage::load};
  for (int32_t i = 0; i < program.count(Section::blocks) && !on_disk.empty(); ++i)
    if (!std::binary_search(on_disk.begin(), on_disk.end(), program.region(Section::blocks, i).first))
      keep(program, i, far, fills);
  for (StorageId storage : far) move_apart(program, program.root, all_of(program, storage), Moves::in);
  if (!fills.items.empty()) program.root.items.insert(program.root.items.begin(), Item{std::move(fills)});
}

// Whether the step clears a gradient before its first micro-batch.
bool is_cleared(const Program& program, StorageId gradient) {
  bool found = false;
  for_each_op(program.region(Section::clear), [&](const Op& op, const Region&) {
    for (const Operand& operand : op.operands) found = found || program.tensor(operand.tensor).storage == gradient;
  });
  return found;
}

// Trained weights and their gradients, a view of their flat buffers at a time; the optimizer goes through them in chunks.
void offload_trained(Program& program) {
  std::vector<std::pair<Piece, Moves>> far;
  for (const Weight& weight : program.weights) {
    if (!weight.trainable) continue;
    if (program.home_of(weight.tensor) != Home::device) far.emplace_back(piece_of(program, weight.tensor), Moves::in);
    if (program.home_of(weight.gradient) == Home::device) continue;
    const bool cleared_before = is_cleared(program, program.tensor(weight.gradient).storage);
    far.emplace_back(piece_of(program, weight.gradient), cleared_before ? Moves::both : Moves::made);
  }
  for (const auto& [piece, moves] : far) move_apart(program, program.root, piece, moves);
}

}  // namespace

bool comes_at_once(const Program& program, TensorId gradient) {
  if (program.micro_batches != 1) return false;
  const Piece piece = piece_of(program, gradient);
  std::set<int64_t> layers;
  bool once = true;
  for_each_body(program.region(Section::backward), [&](const Region& body) {
    if (!uses(program, body, piece)) return;
    once = once && body.axis == Axis::layer;
    for (int64_t i = 0; i < body.count; ++i) once = layers.insert(body.layer_of(i)).second && once;
  });
  const auto weight =
      std::find_if(program.weights.begin(), program.weights.end(), [&](const Weight& w) { return w.gradient == gradient; });
  const Parameter& parameter = weight->parameter;
  return once && static_cast<int64_t>(layers.size()) == parameter.end_layer(program.layers) - parameter.first_layer;
}

std::vector<int64_t> layers_on_disk(const ModelSpec& spec, const Recipe& recipe) {
  if (!recipe.offload_weights) return {};
  return named_layers(recipe.offload_layers, spec, "offload_layers");
}

std::set<int64_t> borders_of(const std::vector<int64_t>& on_disk) {
  std::set<int64_t> borders;
  for (size_t i = 0; i < on_disk.size(); ++i) {
    if (i == 0 || on_disk[i - 1] + 1 != on_disk[i]) borders.insert(on_disk[i]);
    if (i + 1 == on_disk.size() || on_disk[i] + 1 != on_disk[i + 1]) borders.insert(on_disk[i] + 1);
  }
  return borders;
}

void passes::offload(Program& program, const StepRequest& request) {
  presume(program.count(Section::load) == 0, "no load yet: it fills what lies far");
  if (request.saved != nullptr ? request.saved->inputs_away : request.recipe.offload_activations) offload_streams(program);
  offload_saved(program);
  offload_frozen(program, layers_on_disk(request.model, request.recipe));
  offload_trained(program);
}

}  // namespace snug
