#include "program/passes/optimizer.h"

#include <map>
#include <set>

#include "base/element_count.h"
#include "base/scalars.h"
#include "program/passes/list.h"
#include "program/passes/updates.h"

namespace snug {

namespace {

// The whole of a flat buffer as one vector, seen through one of the views in it.
TensorId whole(Program& program, TensorId view) {
  const StorageId storage = program.tensor(view).storage;
  const DType dtype = program.tensor(view).dtype;
  const int64_t elements = element_count(dtype, program.storage(storage).bytes);
  return program.add_tensor(
      {.name = program.storage(storage).name, .storage = storage, .dtype = dtype, .shape = {elements}});
}

std::vector<Trained> trained_groups(Program& program) {
  std::vector<Trained> groups;
  std::set<StorageId> seen;
  for (const Weight& weight : program.weights) {
    if (!weight.trainable) continue;
    const StorageId storage = program.tensor(weight.tensor).storage;
    presume(storage != kNone, "a place for " + weight.parameter.name);
    if (!seen.insert(storage).second) continue;
    Trained group{
        .parameter = whole(program, weight.tensor), .gradient = whole(program, weight.gradient), .states = weight.states};
    for (OptimizerState& state : group.states) state.tensor = whole(program, state.tensor);
    group.decays = weight.decays;
    groups.push_back(std::move(group));
  }
  return groups;
}

// An op for each weight, in a loop over the layers that have it where there is one for each.
void update_each_weight(const Program& program, Region& update, Updates& updates) {
  std::map<std::pair<int64_t, int64_t>, Region> loops;  // by first layer, and one past the last
  for (const Weight& weight : program.weights) {
    if (!weight.trainable) continue;
    const Parameter& parameter = weight.parameter;
    const int64_t first = parameter.first_layer, end = parameter.end_layer(program.layers);
    Region& loop = loops[{first, end}];
    if (loop.items.empty())
      loop = {
          .name = "optimizer.layers", .stage = Stage::optimizer, .axis = Axis::layer, .first = first, .count = end - first};
    updates.add(parameter.per_layer ? loop : update, {weight.tensor, weight.gradient, weight.states, weight.decays});
  }
  for (auto& [layers, loop] : loops)
    if (!loop.items.empty()) update.add(std::move(loop));
}

}  // namespace

void add_optimizer(Program& program, const Recipe& recipe) {
  presume(program.count(Section::backward) == 1 && program.count(Section::norm) == 0, "a backward, and no optimizer yet");
  const std::vector<Trained> groups = trained_groups(program);
  const TensorId scalars = program.interface.scalars;
  Region clear{.name = "clear", .section = Section::clear, .stage = Stage::optimizer};
  Region norm{.name = "norm", .section = Section::norm, .stage = Stage::optimizer};
  Region update{.name = "optimizer",
                .section = Section::optimizer,
                .stage = Stage::optimizer,
                .skip = static_cast<int32_t>(Scalar::skip)};
  Updates updates(program, recipe);
  for (const Trained& group : groups) {
    clear.add(Op{OpKind::zero}).writes(Slot::gradient, group.gradient);
    norm.add(Op{OpKind::square_sum}).reads(Slot::gradient, group.gradient).updates(Slot::scalars, scalars);
    if (recipe.optim != Optimizer::adafactor) updates.add(update, group);
  }
  if (recipe.optim == Optimizer::adafactor) update_each_weight(program, update, updates);
  Op clip{OpKind::clip_factor};
  clip.attributes.max_norm = recipe.max_grad_norm;
  norm.add(std::move(clip)).updates(Slot::scalars, scalars);
  Region& step = program.region(Section::step);
  step.items.insert(step.items.begin(), Item{std::move(clear)});
  step.add(std::move(norm));
  step.add(std::move(update));
  if (!recipe.fp16) return;
  Region scale{.name = "scale", .section = Section::scale, .stage = Stage::optimizer};
  scale.add(Op{OpKind::update_scale}).updates(Slot::scalars, scalars).attributes.scale_window = recipe.loss_scale_window;
  step.add(std::move(scale));
}

void passes::optimizer(Program& program, const StepRequest& request) {
  if (!request.recipe.optimizer_in_bwd) add_optimizer(program, request.recipe);
}

}  // namespace snug
