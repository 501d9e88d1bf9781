#include <algorithm>
#include <map>

#include "base/element_count.h"
#include "base/scalars.h"
#include "program/passes/optimizer.h"
#include "program/passes/optimizer_states.h"

namespace snug {

namespace {

constexpr int64_t kElementAlignment = 32;  // 64 bytes of bf16, 128 of fp32: one element offset serves every flat buffer
constexpr int64_t k4bitAlignment = 128;    // 64 bytes

struct Group {
  bool trainable, decays, adapter;
  DType dtype;
  bool in_blocks = false;  // states are codes in blocks, which must not span two weights
  auto operator<=>(const Group&) const = default;
};

std::string name_of(const Group& group) {
  if (!group.trainable) return "frozen." + std::string(snug::name_of(group.dtype));
  return (group.adapter ? std::string("adapter.") : std::string("trained.")) + (group.decays ? "decayed" : "undecayed") +
         (group.in_blocks ? ".8bit" : "");
}

// A flat buffer of one group and the views that it will hold.
struct Buffer {
  std::string name;
  DType dtype;
  Role role;
  int64_t alignment = kElementAlignment;  // elements
  struct View {
    TensorId tensor;
    bool per_layer;
  };
  std::vector<View> views = {};
};

class Placement {
 public:
  Placement(Program& program, const Precision& precision, const Recipe& recipe)
      : program_(program), precision_(precision), recipe_(recipe) {}

  void run() {
    std::map<Group, std::vector<Weight*>> groups;
    for (Weight& weight : program_.weights)
      groups[{weight.trainable, weight.decays, weight.adapter, program_.tensor(weight.tensor).dtype,
              weight.trainable && keeps_blocks(weight, recipe_)}]
          .push_back(&weight);
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
    Buffer parameters{name, group.dtype, group.adapter ? Role::adapter : Role::weight, alignment_of(group)};
    Buffer gradients{name + ".gradient", DType::f32, Role::gradient, alignment_of(group)};
    std::vector<Buffer> states, scales;
    for (Weight* weight : weights) {
      parameters.views.push_back({weight->tensor, weight->parameter.per_layer});
      if (weight->quantization) add_scales(*weight, name, scales);
      if (!group.trainable) continue;
      if (recipe_.optimizer_in_bwd) {
        place_apart(weight->gradient);
      } else {
        gradients.views.push_back({weight->gradient, weight->parameter.per_layer});
      }
      add_states(*weight, group, name, states);
    }
    place_buffer(parameters);
    place_buffer(gradients);
    for (const Buffer& buffer : scales) place_buffer(buffer);
    for (const Buffer& buffer : states) place_buffer(buffer);
  }

  // The scales of quantized weights, a buffer for each kind.
  void add_scales(const Weight& weight, const std::string& group_name, std::vector<Buffer>& buffers) {
    const Quantization& how = *weight.quantization;
    const std::pair<const char*, TensorId> parts[] = {
        {"absmax", how.absmax}, {"nested_absmax", how.nested_absmax}, {"nested_offset", how.absmax_offset}};
    for (const auto& [part, tensor] : parts) {
      if (tensor == kNone) continue;
      const DType dtype = program_.tensor(tensor).dtype;
      Buffer& buffer = buffer_of(buffers, {group_name + "." + part, dtype, Role::weight, element_count(dtype, kAlignment)});
      buffer.views.push_back({tensor, weight.parameter.per_layer});
    }
  }

  // The one of this name, added if there is none.
  static Buffer& buffer_of(std::vector<Buffer>& buffers, const Buffer& wanted) {
    const auto found = std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.name == wanted.name; });
    return found != buffers.end() ? *found : buffers.emplace_back(wanted);
  }

  static int64_t alignment_of(const Group& group) {
    if (is_4bit(group.dtype)) return k4bitAlignment;
    return group.in_blocks ? kStateBlock : kElementAlignment;
  }

  static int64_t alignment_of(const Group& group, Slot slot) {
    const bool one_for_a_block = slot == Slot::first_absmax || slot == Slot::second_absmax;
    return one_for_a_block ? 1 : alignment_of(group);
  }

  void add_states(Weight& weight, const Group& group, const std::string& group_name, std::vector<Buffer>& buffers) {
    for (StateShape& state : optimizer_states(weight, group.dtype, precision_, recipe_)) {
      const std::string what = std::string(".") + snug::name_of(state.slot);
      Tensor tensor = program_.tensor(weight.tensor);
      tensor.name += what;
      tensor.dtype = state.dtype;
      tensor.shape = std::move(state.shape);
      weight.states.push_back({state.slot, state.name, program_.add_tensor(std::move(tensor))});
      Buffer& buffer =
          buffer_of(buffers, {group_name + what, state.dtype, Role::optimizer, alignment_of(group, state.slot)});
      buffer.views.push_back({weight.states.back().tensor, weight.parameter.per_layer});
    }
  }

  // A gradient that lives from a weight's backward to its update; the same memory serves layer after layer.
  void place_apart(TensorId gradient) {
    const Storage storage{
        .name = program_.tensor(gradient).name, .bytes = program_.tensor(gradient).bytes(), .role = Role::gradient};
    program_.tensor(gradient).storage = program_.add_storage(storage);
  }

  // Order in the buffer: what comes once, then layer after layer, each padded to the alignment.
  void place_buffer(const Buffer& buffer) {
    if (buffer.views.empty()) return;
    const auto padded = [&](const Buffer::View& view) {
      return align_up(program_.tensor(view.tensor).elements(), buffer.alignment);
    };
    int64_t once = 0, layer = 0;
    for (const Buffer::View& view : buffer.views) {
      int64_t& sum = view.per_layer ? layer : once;
      sum = checked_add(sum, padded(view));
    }
    const int64_t elements = checked_add(once, checked_mul(layer, program_.layers));
    const bool far = buffer.role == Role::optimizer && recipe_.pages_states;
    const StorageId storage = program_.add_storage({.name = buffer.name,
                                                    .bytes = bytes_of(buffer.dtype, elements),
                                                    .role = buffer.role,
                                                    .home = far ? Home::disk : Home::device,
                                                    .lifetime = Lifetime::run});
    int64_t next_once = 0, next_layer = once;
    for (const Buffer::View& view : buffer.views) {
      int64_t& next = view.per_layer ? next_layer : next_once;
      Tensor& tensor = program_.tensor(view.tensor);
      tensor.storage = storage;
      tensor.dtype = buffer.dtype;
      tensor.offset = bytes_of(buffer.dtype, next);
      tensor.layer_stride = view.per_layer ? bytes_of(buffer.dtype, layer) : 0;
      next += padded(view);
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

}  // namespace snug
