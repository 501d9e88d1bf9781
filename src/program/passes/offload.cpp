// Offload: what lies in the far home is brought into windows of memory around the ops that use it. A window holds one
// layer's bytes; its copies have lanes of their own, so they go on beside compute, and a layer is fetched while another is
// worked on.

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "program/passes/list.h"
#include "program/passes/offload.h"

namespace snug {

namespace {

// Stands for a storage where ops see a layer's bytes of it.
class Window {
 public:
  // `turns`: windows that follow each other from layer to layer, for what is handed from one to the next.
  Window(Program& program, StorageId far, int64_t turns) : program_(program), far_(far), turns_(turns) {
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
    return twins_[id] = program_.add_tensor(moved(program_.tensor(id)));
  }

  // Moves the whole of the layer's bytes that the tensor is a view of.
  Op page(OpKind kind, TensorId id) {
    Tensor far = program_.tensor(id);
    far.dtype = DType::u8;
    far.shape = {bytes_};
    far.offset = 0;
    Op op{kind, kind == OpKind::page_in ? Lane::copy_in : Lane::copy_out};
    op.with(Slot::far, kind == OpKind::page_in ? Access::read : Access::write, program_.add_tensor(far));
    return op.with(Slot::window, kind == OpKind::page_in ? Access::write : Access::read, program_.add_tensor(moved(far)));
  }

 private:
  Tensor moved(Tensor tensor) const {
    const bool by_layer = tensor.instance_by_layer && turns_ > 1;
    tensor.storage = storage_;
    tensor.layer_stride = by_layer ? bytes_ : 0;
    tensor.layer_turns = by_layer ? turns_ : 0;
    tensor.first_layer = by_layer ? -tensor.instance : 0;
    if (!tensor.instance_by_layer) tensor.offset += tensor.instance % turns_ * bytes_;
    tensor.instance = 0;
    tensor.instance_by_layer = false;
    return tensor;
  }

  Program& program_;
  StorageId far_, storage_ = kNone;
  int64_t turns_, bytes_ = 0;
  std::map<TensorId, TensorId> twins_;
};

// Views of one instance are taken for one: by its number, and whether it goes with the layer.
using Instance = std::pair<int64_t, bool>;

// What of a far storage the ops of a body use. Loops over chunks are part of the body that they stand in.
struct Use {
  TensorId view = kNone;
  size_t first = 0, last_write = 0;  // items
  bool reads = false, writes = false;
};

template <class Visit>
void for_each_op_of(Item& item, const Visit& visit) {
  if (Op* op = item.op()) visit(*op);
  if (Region* chunks = item.region(); chunks != nullptr && chunks->axis == Axis::chunk)
    for_each_op(*chunks, [&](Op& op, const Region&) { visit(op); });
}

std::map<Instance, Use> uses_of(Program& program, Region& body, StorageId far) {
  std::map<Instance, Use> uses;
  for (size_t i = 0; i < body.items.size(); ++i)
    for_each_op_of(body.items[i], [&](const Op& op) {
      if (run_by(op.kind) == RunBy::executor) return;  // a page of this or another window
      for (const Operand& operand : op.operands) {
        const Tensor& tensor = program.tensor(operand.tensor);
        if (tensor.storage != far) continue;
        Use& use = uses.try_emplace({tensor.instance, tensor.instance_by_layer}, Use{operand.tensor, i, i}).first->second;
        use.reads = use.reads || (operand.access != Access::write && !use.writes);
        use.writes = use.writes || operand.access != Access::read;
        if (operand.access != Access::read) use.last_write = i;
      }
    });
  return uses;
}

// What a body does with what lies far.
struct Moves {
  bool in = true;   // before the first op that uses it, unless that writes it anew
  bool out = true;  // behind the last op that writes it
};

// The ops of a body see `far` through the window.
void move(Program& program, Region& body, StorageId far, Window& window, Moves moves) {
  std::vector<std::pair<size_t, Op>> pages;  // each before an item
  for (const auto& [instance, use] : uses_of(program, body, far)) {
    if (moves.in && use.reads) pages.emplace_back(use.first, window.page(OpKind::page_in, use.view));
    if (moves.out && use.writes) pages.emplace_back(use.last_write + 1, window.page(OpKind::page_out, use.view));
  }
  for (Item& item : body.items)
    for_each_op_of(item, [&](Op& op) {
      if (run_by(op.kind) == RunBy::executor) return;
      for (Operand& operand : op.operands)
        if (program.tensor(operand.tensor).storage == far) operand.tensor = window.twin(operand.tensor);
    });
  std::stable_sort(pages.begin(), pages.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [place, page] : pages)  // from the last on, so that places stay
    body.items.insert(body.items.begin() + static_cast<int64_t>(place), Item{std::move(page)});
}

// The innermost first: what is put into a body moves the regions within.
void collect_bodies(Region& region, std::vector<Region*>& bodies) {
  for (Item& item : region.items)
    if (Region* child = item.region(); child != nullptr && child->axis != Axis::chunk) collect_bodies(*child, bodies);
  bodies.push_back(&region);
}

std::vector<Region*> bodies_of(Region& region) {
  std::vector<Region*> bodies;
  collect_bodies(region, bodies);
  return bodies;
}

// Each body below `region` has a window of its own.
void move_apart(Program& program, Region& region, StorageId far, Moves moves) {
  for (Region* body : bodies_of(region)) {
    if (uses_of(program, *body, far).empty()) continue;
    Window window(program, far, 1);
    move(program, *body, far, window, moves);
  }
}

void send_to(Home home, Storage& storage) {
  storage.home = home;
  storage.bytes = align_up(storage.bytes, kFarAlignment);
}

// What blocks save for their backward, and the residual stream, which is handed from block to block.
void offload_activations(Program& program) {
  std::set<StorageId> saved;
  for (const BlockRun& block : program.blocks) saved.insert(block.saved.begin(), block.saved.end());
  std::set<StorageId> streams;
  for (int32_t i = 0; i < program.count(Section::blocks); ++i)
    for (const Carry& carry : program.region(Section::blocks, i).carries) streams.insert(program.tensor(carry.in).storage);
  constexpr Moves kSend = {.in = false}, kFetch = {.out = false};
  Region &forward = program.region(Section::forward), &backward = program.region(Section::backward);
  for (StorageId stream : streams) {
    send_to(Home::disk, program.storage(stream));
    Window window(program, stream, 2);
    for (Region* body : bodies_of(forward)) move(program, *body, stream, window, kSend);
    move_apart(program, backward, stream, kFetch);
  }
  for (StorageId storage : saved) {
    send_to(Home::disk, program.storage(storage));
    move_apart(program, forward, storage, kSend);
    move_apart(program, backward, storage, kFetch);
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

  Op fill(TensorId id) {
    Tensor far = program_.tensor(id);
    far.dtype = DType::u8;
    far.shape = {program_.storage(far.storage).bytes};
    far.offset = 0;
    const TensorId whole = program_.add_tensor(far);
    return Op{OpKind::page_in, Lane::copy_in}.reads(Slot::far, whole).writes(Slot::window, twin(whole));
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
        if (fresh) fill.add(stay->second.fill(operand.tensor));
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
  for (StorageId storage : far) move_apart(program, program.root, storage, {});
  if (!fills.items.empty()) program.root.items.insert(program.root.items.begin(), Item{std::move(fills)});
}

}  // namespace

std::vector<int64_t> named_layers(std::vector<int64_t> layers, const ModelSpec& spec, const char* key) {
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  if (!layers.empty() && (layers.front() < 0 || layers.back() >= spec.layers))
    throw Error("layer " + std::to_string(layers.front() < 0 ? layers.front() : layers.back()) + " does not exist",
                std::string("recipe: ") + key, "the model has layers 0 to " + std::to_string(spec.layers - 1));
  return layers;
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
  if (request.recipe.offload_activations) offload_activations(program);
  offload_weights(program, layers_on_disk(request.model, request.recipe));
}

}  // namespace snug
