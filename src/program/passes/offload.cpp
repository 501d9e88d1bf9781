// Offload: what lies in the far home is brought into windows of memory around the ops that use it. A window holds one
// layer's bytes; its copies have lanes of their own, so they go on beside compute, and a layer is fetched while another is
// worked on.

#include <algorithm>
#include <map>
#include <set>

#include "program/passes/list.h"
#include "program/passes/named_layers.h"
#include "program/passes/offload.h"
#include "program/passes/windows.h"

namespace snug {

namespace {

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
    LayerWindow window(program, piece, 2);
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
