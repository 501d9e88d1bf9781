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

// All bytes of the layer that the tensor is a view of.
TensorId whole_layer(Program& program, TensorId id) {
  Tensor whole = program.tensor(id);
  whole.dtype = DType::u8;
  whole.shape = {program.storage(whole.storage).bytes};
  whole.offset = 0;
  return program.add_tensor(std::move(whole));
}

Op page_in(TensorId far, TensorId window) {
  return Op{OpKind::page_in, Lane::copy_in}.reads(Slot::far, far).writes(Slot::window, window);
}

Op page_out(TensorId far, TensorId window) {
  return Op{OpKind::page_out, Lane::copy_out}.writes(Slot::far, far).reads(Slot::window, window);
}

// Stands for a storage where ops see a layer's bytes of it.
class Window {
 public:
  // `turns`: windows that follow each other from layer to layer, for what is handed from one to the next.
  Window(Program& program, StorageId far, int64_t turns) : program_(program), turns_(turns) {
    Storage window = program.storage(far);
    bytes_ = window.bytes;
    window.name += ".window";
    window.bytes = checked_mul(bytes_, turns);
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
    tensor.layer_stride = by_layer ? bytes_ : 0;
    tensor.layer_turns = by_layer ? turns_ : 0;
    tensor.first_layer = by_layer ? -tensor.instance : 0;
    if (!tensor.instance_by_layer) tensor.offset += tensor.instance % turns_ * bytes_;
    tensor.instance = 0;
    tensor.instance_by_layer = false;
    return twins_[id] = program_.add_tensor(std::move(tensor));
  }

 private:
  Program& program_;
  StorageId storage_ = kNone;
  int64_t turns_, bytes_ = 0;
  std::map<TensorId, TensorId> twins_;
};

// Views of one instance are taken for one: by its number, and whether it goes with the layer.
using Instance = std::pair<int64_t, bool>;

// What a body does with what lies far: fetch each instance before the first op that uses it, or send it behind the last that
// writes it.
enum class Moves : uint8_t { in, out };

// The ops of a body see `far` through the window; regions within are bodies of their own.
void move(Program& program, Region& body, StorageId far, Window& window, Moves moves) {
  std::map<Instance, std::pair<size_t, TensorId>> places;  // before which item, and a view
  for (size_t i = 0; i < body.items.size(); ++i) {
    Op* const op = body.items[i].op();
    if (op == nullptr) continue;
    for (Operand& operand : op->operands) {
      const Tensor& tensor = program.tensor(operand.tensor);
      if (tensor.storage != far) continue;
      const Instance instance(tensor.instance, tensor.instance_by_layer);
      if (moves == Moves::in) places.try_emplace(instance, i, operand.tensor);
      if (moves == Moves::out && operand.access != Access::read) places[instance] = {i + 1, operand.tensor};
      operand.tensor = window.twin(operand.tensor);
    }
  }
  std::vector<std::pair<size_t, TensorId>> order;
  for (const auto& [instance, place] : places) order.push_back(place);
  std::sort(order.rbegin(), order.rend());  // from the last on, so that places stay
  for (const auto& [place, view] : order) {
    const TensorId bytes = whole_layer(program, view);
    body.items.insert(body.items.begin() + static_cast<int64_t>(place),
                      Item{moves == Moves::in ? page_in(bytes, window.twin(bytes)) : page_out(bytes, window.twin(bytes))});
  }
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

bool uses(const Program& program, const Region& body, StorageId storage) {
  return std::any_of(body.items.begin(), body.items.end(), [&](const Item& item) {
    const Op* op = item.op();
    return op != nullptr && std::any_of(op->operands.begin(), op->operands.end(), [&](const Operand& operand) {
             return program.tensor(operand.tensor).storage == storage;
           });
  });
}

// Each body below `region` has a window of its own.
void move_apart(Program& program, Region& region, StorageId far, Moves moves) {
  for (Region* body : bodies_of(region)) {
    if (!uses(program, *body, far)) continue;
    Window window(program, far, 1);
    move(program, *body, far, window, moves);
  }
}

void send_to_disk(Storage& storage) {
  storage.home = Home::disk;
  storage.bytes = align_up(storage.bytes, kFarAlignment);
}

// What blocks save for their backward, and the residual stream, which is handed from block to block.
void offload_activations(Program& program) {
  std::set<StorageId> saved;
  for (const BlockRun& block : program.blocks) saved.insert(block.saved.begin(), block.saved.end());
  std::set<StorageId> streams;
  for (int32_t i = 0; i < program.count(Section::blocks); ++i)
    for (const Carry& carry : program.region(Section::blocks, i).carries) streams.insert(program.tensor(carry.in).storage);
  Region &forward = program.region(Section::forward), &backward = program.region(Section::backward);
  for (StorageId stream : streams) {
    send_to_disk(program.storage(stream));
    Window window(program, stream, 2);
    for (Region* body : bodies_of(forward)) move(program, *body, stream, window, Moves::out);
    move_apart(program, backward, stream, Moves::in);
  }
  for (StorageId storage : saved) {
    send_to_disk(program.storage(storage));
    move_apart(program, forward, storage, Moves::out);
    move_apart(program, backward, storage, Moves::in);
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
          const TensorId bytes = whole_layer(program, operand.tensor);
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
void offload_weights(Program& program, const std::vector<int64_t>& on_disk) {
  std::set<StorageId> far;
  for (const Weight& weight : program.weights)
    if (program.home_of(weight.tensor) != Home::device) far.insert(program.tensor(weight.tensor).storage);
  if (far.empty()) return;
  Region fills{.name = "keep", .section = Section::keep, .stage = Stage::load};
  for (int32_t i = 0; i < program.count(Section::blocks) && !on_disk.empty(); ++i)
    if (!std::binary_search(on_disk.begin(), on_disk.end(), program.region(Section::blocks, i).first))
      keep(program, i, far, fills);
  for (StorageId storage : far) move_apart(program, program.root, storage, Moves::in);
  if (!fills.items.empty()) program.root.items.insert(program.root.items.begin(), Item{std::move(fills)});
}

}  // namespace

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
  if (request.recipe.offload_activations) offload_activations(program);
  offload_weights(program, layers_on_disk(request.model, request.recipe));
}

}  // namespace snug
