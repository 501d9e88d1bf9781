#include "program/passes/optimizer.h"

#include <map>

#include "base/scalars.h"

namespace snug {

namespace {

constexpr int64_t kElementAlignment = 32;  // 64 bytes of bf16, 128 of fp32: one element offset serves every flat buffer

struct Group {
  bool trainable, decays, adapter;
  DType dtype;
  auto operator<=>(const Group&) const = default;
};

std::string name_of(const Group& group) {
  if (!group.trainable) return "frozen." + std::string(snug::name_of(group.dtype));
  return (group.adapter ? std::string("adapter.") : std::string("trained.")) + (group.decays ? "decayed" : "undecayed");
}

// The flat buffers of one group.
struct Flat {
  StorageId parameter = kNone, gradient = kNone, first = kNone, second = kNone, master = kNone;
  int64_t elements = 0;
};

StorageId flat_storage(Program& program, const std::string& name, int64_t elements, DType dtype, Role role) {
  return program.add_storage(
      {.name = name, .bytes = checked_mul(elements, size_of(dtype)), .role = role, .lifetime = Lifetime::run});
}

// A view of one weight inside a flat buffer whose elements start `element` in.
void place(Tensor& tensor, StorageId storage, DType dtype, int64_t element, int64_t stride) {
  tensor.storage = storage;
  tensor.dtype = dtype;
  tensor.offset = checked_mul(element, size_of(dtype));
  tensor.layer_stride = checked_mul(stride, size_of(dtype));
}

class Placement {
 public:
  Placement(Program& program, const Precision& precision) : program_(program), precision_(precision) {}

  void run() {
    std::map<Group, std::vector<Weight*>> groups;
    for (Weight& weight : program_.weights)
      groups[{weight.trainable, weight.decays, weight.adapter, program_.tensor(weight.tensor).dtype}].push_back(&weight);
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
  // Order in the buffer: what comes once, then layer after layer. Elements are padded so that each weight starts a cache
  // line.
  void place_group(const Group& group, const std::vector<Weight*>& weights) {
    int64_t once = 0, layer = 0;
    for (const Weight* weight : weights) {
      int64_t& sum = weight->parameter.per_layer ? layer : once;
      sum = checked_add(sum, align_up(weight->parameter.elements(), kElementAlignment));
    }
    Flat flat{.elements = checked_add(once, checked_mul(layer, program_.layers))};
    make_storages(group, flat);
    int64_t next_once = 0, next_layer = once;
    for (Weight* weight : weights) {
      int64_t& next = weight->parameter.per_layer ? next_layer : next_once;
      place_views(*weight, flat, group, next, weight->parameter.per_layer ? layer : 0);
      next += align_up(weight->parameter.elements(), kElementAlignment);
    }
  }

  void make_storages(const Group& group, Flat& flat) {
    const std::string name = name_of(group);
    const Role role = group.adapter ? Role::adapter : Role::weight;
    flat.parameter = flat_storage(program_, name, flat.elements, group.dtype, role);
    if (!group.trainable) return;
    flat.gradient = flat_storage(program_, name + ".gradient", flat.elements, DType::f32, Role::gradient);
    flat.first = flat_storage(program_, name + ".first_moment", flat.elements, DType::f32, Role::optimizer);
    flat.second = flat_storage(program_, name + ".second_moment", flat.elements, DType::f32, Role::optimizer);
    if (group.dtype != DType::f32 && precision_.master == DType::f32)
      flat.master = flat_storage(program_, name + ".master", flat.elements, DType::f32, Role::optimizer);
  }

  TensorId state(const Weight& weight, const char* what, StorageId storage, int64_t element, int64_t stride) {
    Tensor tensor = program_.tensor(weight.tensor);
    tensor.name += what;
    place(tensor, storage, DType::f32, element, stride);
    return program_.add_tensor(std::move(tensor));
  }

  void place_views(Weight& weight, const Flat& flat, const Group& group, int64_t element, int64_t stride) {
    place(program_.tensor(weight.tensor), flat.parameter, group.dtype, element, stride);
    if (!group.trainable) return;
    place(program_.tensor(weight.gradient), flat.gradient, DType::f32, element, stride);
    weight.first_moment = state(weight, ".first_moment", flat.first, element, stride);
    weight.second_moment = state(weight, ".second_moment", flat.second, element, stride);
    if (flat.master != kNone) weight.master = state(weight, ".master", flat.master, element, stride);
  }

  Program& program_;
  const Precision& precision_;
};

// The whole of a flat buffer as one vector.
TensorId whole(Program& program, const std::string& name, StorageId storage, DType dtype) {
  const int64_t elements = program.storage(storage).bytes / size_of(dtype);
  return program.add_tensor({.name = name, .storage = storage, .dtype = dtype, .shape = {elements}});
}

struct TrainedGroup {
  TensorId parameter, gradient, first, second, master;
  bool decays;
};

std::vector<TrainedGroup> trained_groups(Program& program) {
  std::vector<TrainedGroup> groups;
  std::map<StorageId, size_t> seen;
  const std::vector<Weight> weights = program.weights;
  for (const Weight& weight : weights) {
    if (!weight.trainable) continue;
    const auto storage_of = [&](TensorId id) { return program.tensor(id).storage; };
    const StorageId storage = storage_of(weight.tensor);
    if (!seen.emplace(storage, groups.size()).second) continue;
    const std::string name = program.storage(storage).name;
    const DType dtype = program.tensor(weight.tensor).dtype;
    groups.push_back(
        {.parameter = whole(program, name, storage, dtype),
         .gradient = whole(program, name + ".gradient", storage_of(weight.gradient), DType::f32),
         .first = whole(program, name + ".first_moment", storage_of(weight.first_moment), DType::f32),
         .second = whole(program, name + ".second_moment", storage_of(weight.second_moment), DType::f32),
         .master = weight.master == kNone ? kNone : whole(program, name + ".master", storage_of(weight.master), DType::f32),
         .decays = weight.decays});
  }
  return groups;
}

}  // namespace

void place_weights(Program& program, const Precision& precision) { Placement(program, precision).run(); }

void add_optimizer(Program& program, const Recipe& recipe) {
  const std::vector<TrainedGroup> groups = trained_groups(program);
  const TensorId scalars = program.interface.scalars;
  Region clear{.name = "clear", .stage = Stage::optimizer};
  Region norm{.name = "norm", .stage = Stage::optimizer};
  Region update{.name = "optimizer", .stage = Stage::optimizer, .skip = static_cast<int32_t>(Scalar::skip)};
  for (const TrainedGroup& group : groups) {
    clear.add(Op{OpKind::zero}).writes(Slot::gradient, group.gradient);
    norm.add(Op{OpKind::square_sum}).reads(Slot::gradient, group.gradient).updates(Slot::scalars, scalars);
    Op adamw{OpKind::adamw};
    adamw.attributes = {.epsilon = recipe.adam_epsilon,
                        .beta1 = recipe.adam_beta1,
                        .beta2 = recipe.adam_beta2,
                        .weight_decay = group.decays ? recipe.weight_decay : 0.0};
    adamw.reads(Slot::gradient, group.gradient).reads(Slot::scalars, scalars);
    adamw.with(Slot::parameter, group.master == kNone ? Access::update : Access::write, group.parameter);
    adamw.updates(Slot::first_moment, group.first).updates(Slot::second_moment, group.second);
    if (group.master != kNone) adamw.updates(Slot::master, group.master);
    update.add(std::move(adamw));
  }
  Op clip{OpKind::clip_factor};
  clip.attributes.max_norm = recipe.max_grad_norm;
  norm.add(std::move(clip)).updates(Slot::scalars, scalars);
  Region& step = program.region("step");
  step.items.insert(step.items.begin(), Item{std::move(clear)});
  step.add(std::move(norm));
  step.add(std::move(update));
}

}  // namespace snug
