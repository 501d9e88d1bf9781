#include <algorithm>
#include <map>
#include <optional>

#include "base/element_count.h"
#include "base/scalars.h"
#include "program/passes/list.h"
#include "program/passes/optimizer.h"
#include "program/passes/optimizer_states.h"

namespace snug {

namespace {

constexpr int64_t kElementAlignment = 32;  // 64 bytes of bf16, 128 of fp32: one element offset serves every flat buffer
constexpr int64_t k4bitAlignment = 128;    // 64 bytes
constexpr int64_t kPageElements = kFarAlignment / 2;  // whole pages of weights and gradients, whatever the dtype

struct Group {
  bool trainable, decays, adapter;
  DType dtype;
  bool in_blocks = false;               // states are codes in blocks, which must not span two weights
  std::optional<RankGroup> slice = {};  // whose ranks have slices of it: gradients, and norms, are summed by others
  bool at_ends = false;                 // of the first stage and the last: gradients are summed over both
  bool of_layers = false;  // trained matrices of layers: those that may lie far, in the same order wherever they lie
  auto operator<=>(const Group&) const = default;
};

std::string name_of(const Group& group) {
  const char* const slice = !group.slice ? "" : *group.slice == RankGroup::expert ? ".experts" : ".sliced";
  if (!group.trainable) return "frozen." + std::string(snug::name_of(group.dtype)) + slice;
  return (group.adapter ? std::string("adapter.") : std::string("trained.")) + (group.decays ? "decayed" : "undecayed") +
         (group.in_blocks ? ".8bit" : "") + (group.at_ends ? ".tied" : "") + slice + (group.of_layers ? ".layers" : "");
}

// A flat buffer of one group and the views that it will hold.
struct Buffer {
  std::string name;
  DType dtype;
  Role role;
  int64_t alignment = kElementAlignment;  // elements
  Home home = Home::device;
  int64_t part = 0;   // elements that a rank's part of a unit is a multiple of; 0: ranks do not cut it
  int64_t ranks = 1;  // that hold a part each
  RankGroup cut_by = RankGroup::shard;
  struct View {
    TensorId tensor;
    const Parameter* parameter;
  };
  std::vector<View> views = {};
};

class Placement {
 public:
  Placement(Program& program, const Precision& precision, const Recipe& recipe)
      : program_(program), precision_(precision), recipe_(recipe) {}

  void run() {
    std::map<Group, std::vector<Weight*>> groups;
    for (Weight& weight : program_.weights) {
      const Tensor& tensor = program_.tensor(weight.tensor);
      presume(tensor.storage == kNone, "an unplaced weight " + tensor.name);
      presume(weight.trainable == (weight.gradient != kNone), "a gradient of what is trained alone: " + tensor.name);
      groups[{weight.trainable, weight.decays, weight.adapter, program_.tensor(weight.tensor).dtype,
              weight.trainable && keeps_blocks(weight, recipe_), slice_of(weight), weight.trainable && weight.at_ends,
              weight.trainable && !weight.adapter && is_matrix_of_layers(weight)}]
          .push_back(&weight);
    }
    // Frozen weights have one group for each dtype: whether they decay says nothing.
    std::map<Group, std::vector<Weight*>> merged;
    for (auto& [group, weights] : groups) {
      Group key = group;
      if (!key.trainable) key.decays = key.adapter = false;
      merged[key].insert(merged[key].end(), weights.begin(), weights.end());
    }
    for (auto& [group, weights] : merged) place_group(group, weights);
  }

 private:
  void place_group(const Group& group, const std::vector<Weight*>& weights) {
    const std::string name = name_of(group);
    const auto home = [&](bool far) {
      return far && group.of_layers && !updates_each_weight(recipe_) ? Home::disk : Home::device;
    };
    Buffer parameters{name, group.dtype, group.adapter ? Role::adapter : Role::weight, alignment_of(group),
                      home(recipe_.offload_weights)};
    Buffer gradients{name + ".gradient", precision_.gradients, Role::gradient, alignment_of(group),
                     home(recipe_.offload_gradients)};
    if (group.trainable || recipe_.parallel.zero_stage == 3) cut(parameters, group, part_of(group), 3);
    cut(gradients, group, part_of(group), 2);
    std::vector<Buffer> states, scales;
    for (Weight* weight : weights) {
      if (!group.trainable && is_offloaded(*weight)) {
        place_far(*weight);
        continue;
      }
      parameters.views.push_back({weight->tensor, &weight->parameter});
      if (weight->quantization) add_scales(*weight, group, scales);
      if (!group.trainable) continue;
      if (recipe_.optimizer_in_bwd) {
        place_apart(weight->gradient);
      } else {
        gradients.views.push_back({weight->gradient, &weight->parameter});
      }
      add_states(*weight, group, name, states);
    }
    place_buffer(parameters);
    place_buffer(gradients);
    for (const Buffer& buffer : scales) place_buffer(buffer);
    for (const Buffer& buffer : states) place_buffer(buffer);
  }

  // What other ranks cut, and whose gradients others sum, is apart.
  static std::optional<RankGroup> slice_of(const Weight& weight) {
    return weight.slice ? std::optional(weight.slice->group) : std::nullopt;
  }

  // Whether each rank holds a part of what this stage of ZeRO is the first to share out.
  bool is_spread(RankGroup by, int64_t stage) const {
    return program_.mesh.size(by) > 1 && recipe_.parallel.zero_stage >= stage;
  }

  // What ranks update, or hold, a part of.
  void cut(Buffer& buffer, const Group& group, int64_t part, int64_t spread_from) const {
    buffer.cut_by = !group.slice                        ? RankGroup::shard
                    : *group.slice == RankGroup::expert ? RankGroup::expert_shard
                                                        : RankGroup::slice_shard;
    if (!is_spread(buffer.cut_by, 1)) return;
    buffer.part = part;
    if (is_spread(buffer.cut_by, spread_from)) buffer.ranks = program_.mesh.size(buffer.cut_by);
  }

  // Elements: blocks of states and kernels' alignment are whole in every rank's part.
  static int64_t part_of(const Group& group) { return std::max(kStateBlock, alignment_of(group)); }

  static int64_t part_of(const Group& group, Slot slot) {
    const bool scales = slot == Slot::first_absmax || slot == Slot::second_absmax;
    return scales ? part_of(group) / kStateBlock : part_of(group);
  }

  // The scales of quantized weights, a buffer for each kind.
  void add_scales(const Weight& weight, const Group& group, std::vector<Buffer>& buffers) {
    const Quantization& how = *weight.quantization;
    const std::pair<const char*, TensorId> parts[] = {
        {"absmax", how.absmax}, {"nested_absmax", how.nested_absmax}, {"nested_offset", how.absmax_offset}};
    for (const auto& [part, tensor] : parts) {
      if (tensor == kNone) continue;
      const DType dtype = program_.tensor(tensor).dtype;
      Buffer wanted{name_of(group) + "." + part, dtype, Role::weight, element_count(dtype, kAlignment)};
      if (recipe_.parallel.zero_stage == 3) cut(wanted, group, wanted.alignment, 3);
      Buffer& buffer = buffer_of(buffers, wanted);
      buffer.views.push_back({tensor, &weight.parameter});
    }
  }

  // The one of this name, added if there is none.
  static Buffer& buffer_of(std::vector<Buffer>& buffers, const Buffer& wanted) {
    const auto found = std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.name == wanted.name; });
    return found != buffers.end() ? *found : buffers.emplace_back(wanted);
  }

  static int64_t alignment_of(const Group& group) {
    if (group.of_layers) return kPageElements;
    if (is_4bit(group.dtype)) return k4bitAlignment;
    return group.in_blocks ? kStateBlock : kElementAlignment;
  }

  static int64_t alignment_of(const Group& group, Slot slot) {
    switch (slot) {
      case Slot::first_absmax:
      case Slot::second_absmax: return group.of_layers ? kPageElements / kStateBlock : 1;
      case Slot::row_factor:
      case Slot::column_factor: return kElementAlignment;  // no element for each of the weight's
      default: return alignment_of(group);
    }
  }

  void add_states(Weight& weight, const Group& group, const std::string& group_name, std::vector<Buffer>& buffers) {
    for (StateShape& state : optimizer_states(weight, Tensor(program_.tensor(weight.tensor)), precision_, recipe_)) {
      const std::string what = std::string(".") + snug::name_of(state.slot);
      Tensor tensor = program_.tensor(weight.tensor);
      tensor.name += what;
      tensor.dtype = state.dtype;
      tensor.shape = std::move(state.shape);
      weight.states.push_back({state.slot, state.name, program_.add_tensor(std::move(tensor))});
      if (states_lie_far(recipe_) && updates_each_weight(recipe_)) {
        place_far(weight.parameter, {weight.states.back().tensor}, Role::optimizer);
        continue;
      }
      Buffer wanted{group_name + what, state.dtype, Role::optimizer, alignment_of(group, state.slot),
                    states_lie_far(recipe_) ? Home::disk : Home::device};
      cut(wanted, group, part_of(group, state.slot), 1);
      Buffer& buffer = buffer_of(buffers, wanted);
      buffer.views.push_back({weight.states.back().tensor, &weight.parameter});
    }
  }

  // A gradient that lives from a weight's backward to its update; the same memory serves layer after layer.
  void place_apart(TensorId gradient) {
    const Storage storage{
        .name = program_.tensor(gradient).name, .bytes = program_.tensor(gradient).bytes(), .role = Role::gradient};
    program_.tensor(gradient).storage = program_.add_storage(storage);
  }

  // The matrices of blocks; what is small stays.
  static bool is_matrix_of_layers(const Weight& weight) {
    return weight.parameter.per_layer && weight.parameter.shape.size() > 1;
  }

  bool is_offloaded(const Weight& weight) const { return recipe_.offload_weights && is_matrix_of_layers(weight); }

  // A frozen weight with its scales: they are fetched together.
  void place_far(const Weight& weight) {
    std::vector<TensorId> parts = {weight.tensor};
    if (weight.quantization)
      for (const TensorId part :
           {weight.quantization->absmax, weight.quantization->nested_absmax, weight.quantization->absmax_offset})
        if (part != kNone) parts.push_back(part);
    place_far(weight.parameter, parts, Role::weight);
  }

  // In the far home, on pages of each layer's own.
  void place_far(const Parameter& parameter, const std::vector<TensorId>& parts, Role role) {
    const int64_t layers = parameter.per_layer ? parameter.end_layer(program_.layers) - parameter.first_layer : 1;
    int64_t bytes = 0;
    for (TensorId part : parts) {
      Tensor& tensor = program_.tensor(part);
      tensor.offset = bytes;
      tensor.instance_by_layer = parameter.per_layer;
      tensor.instance = -parameter.first_layer;
      bytes = checked_add(bytes, align_up(tensor.bytes(), kAlignment));
    }
    const StorageId storage = program_.add_storage({.name = program_.tensor(parts.front()).name,
                                                    .bytes = align_up(bytes, kFarAlignment),
                                                    .role = role,
                                                    .home = Home::disk,
                                                    .lifetime = Lifetime::run,
                                                    .instances = layers});
    for (TensorId part : parts) program_.tensor(part).storage = storage;
  }

  // Views of a buffer that repeat over the same layers, side by side.
  struct Block {
    int64_t first = 0, count = 1;      // layers; what comes once is a block of its own
    int64_t elements = 0;              // of one layer
    const Parameter* alone = nullptr;  // what comes once and is cut over ranks: it is gathered and summed by itself
  };

  // What comes once, then what all layers have, then what only some have, or stands alone.
  std::vector<Block> blocks_of(const Buffer& buffer) const {
    std::vector<Block> blocks = {Block{}, Block{.count = program_.layers}};
    for (const Buffer::View& view : buffer.views) {
      const Parameter& parameter = *view.parameter;
      const size_t at = block_of(buffer, blocks, parameter);
      if (at == blocks.size() && parameter.per_layer) blocks.push_back({parameter.first_layer, parameter.layer_count});
      if (at == blocks.size()) blocks.push_back({.alone = &parameter});
      blocks[at].elements = checked_add(blocks[at].elements, padded(buffer, view));
    }
    if (buffer.part > 0)
      for (Block& block : blocks)
        block.elements = align_up(block.elements, checked_mul(program_.mesh.size(buffer.cut_by), buffer.part));
    return blocks;
  }

  static size_t block_of(const Buffer& buffer, const std::vector<Block>& blocks, const Parameter& parameter) {
    if (!parameter.per_layer && buffer.part == 0) return 0;
    if (parameter.per_layer && parameter.layer_count == 0) return 1;
    const auto is_its = [&](const Block& block) {
      if (!parameter.per_layer) return block.alone == &parameter;
      return block.alone == nullptr && block.first == parameter.first_layer && block.count == parameter.layer_count;
    };
    return static_cast<size_t>(std::find_if(blocks.begin() + 2, blocks.end(), is_its) - blocks.begin());
  }

  static std::vector<Unit> units_of(const Buffer& buffer, const std::vector<Block>& blocks) {
    std::vector<Unit> units;
    int64_t begin = 0;
    for (const Block& block : blocks) {
      const int64_t bytes = bytes_of(buffer.dtype, block.elements);
      if (bytes > 0)
        units.push_back({begin, bytes, block.first, block.count, &block != blocks.data() && block.alone == nullptr});
      begin = checked_add(begin, checked_mul(bytes, block.count));
    }
    return units;
  }

  int64_t padded(const Buffer& buffer, const Buffer::View& view) const {
    return align_up(program_.tensor(view.tensor).elements(), buffer.alignment);
  }

  // Order in the buffer: block after block, in each layer after layer, each view padded to the alignment.
  void place_buffer(const Buffer& buffer) {
    if (buffer.views.empty()) return;
    const std::vector<Block> blocks = blocks_of(buffer);
    int64_t elements = 0;
    std::vector<int64_t> next;  // by block
    for (const Block& block : blocks) {
      next.push_back(elements);
      elements = checked_add(elements, checked_mul(block.elements, block.count));
    }
    const int64_t bytes = bytes_of(buffer.dtype, elements) / buffer.ranks;
    Storage placed{.name = buffer.name,
                   .bytes = buffer.home == Home::device ? bytes : align_up(bytes, kFarAlignment),
                   .role = buffer.role,
                   .home = buffer.home,
                   .lifetime = Lifetime::run};
    placed.ranks = buffer.ranks;
    placed.cut_by = buffer.cut_by;
    if (buffer.part > 0) placed.units = units_of(buffer, blocks);
    const StorageId storage = program_.add_storage(std::move(placed));
    for (const Buffer::View& view : buffer.views) {
      const size_t at = block_of(buffer, blocks, *view.parameter);
      Tensor& tensor = program_.tensor(view.tensor);
      tensor.storage = storage;
      tensor.spread = buffer.ranks > 1;
      tensor.dtype = buffer.dtype;
      tensor.offset = bytes_of(buffer.dtype, next[at]);
      tensor.layer_stride = view.parameter->per_layer ? bytes_of(buffer.dtype, blocks[at].elements) : 0;
      tensor.first_layer = view.parameter->first_layer;
      next[at] += padded(buffer, view);
    }
  }

  Program& program_;
  const Precision& precision_;
  const Recipe& recipe_;
};

}  // namespace

void place_weights(Program& program, const Precision& precision, const Recipe& recipe) {
  Placement(program, precision, recipe).run();
}

void passes::place_weights(Program& program, const StepRequest& request) {
  snug::place_weights(program, request.precision, request.recipe);
}

}  // namespace snug
