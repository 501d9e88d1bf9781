#include "program/passes/optimizer.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/scalars.h"
#include "program/passes/list.h"
#include "program/passes/offload.h"
#include "program/passes/pages.h"
#include "program/passes/updates.h"

namespace snug {

namespace {

std::vector<Trained> trained_groups(Program& program) {
  std::vector<Trained> groups;
  std::set<StorageId> seen;
  for (const Weight& weight : program.weights) {
    if (!weight.trainable) continue;
    const StorageId storage = program.tensor(weight.tensor).storage;
    presume(storage != kNone, "a place for " + weight.parameter.name);
    if (!seen.insert(storage).second) continue;
    Trained group{.parameter = whole_buffer(program, weight.tensor),
                  .gradient = whole_buffer(program, weight.gradient),
                  .states = weight.states};
    for (OptimizerState& state : group.states) state.tensor = whole_buffer(program, state.tensor);
    group.decays = weight.decays;
    groups.push_back(std::move(group));
  }
  return groups;
}

// Whether all gradients of a far buffer are made in windows, with no need to clear the buffer.
bool come_at_once(const Program& program, StorageId buffer) {
  if (program.storage(buffer).home == Home::device) return false;
  return std::all_of(program.weights.begin(), program.weights.end(), [&](const Weight& weight) {
    return !weight.trainable || program.tensor(weight.gradient).storage != buffer || comes_at_once(program, weight.gradient);
  });
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
    const int64_t elements = program.tensor(group.gradient).elements();
    if (!come_at_once(program, program.tensor(group.gradient).storage))
      add_in_pages(program, clear, Op{OpKind::zero}.writes(Slot::gradient, group.gradient), elements);
    add_in_pages(program, norm, Op{OpKind::square_sum}.reads(Slot::gradient, group.gradient).updates(Slot::scalars, scalars),
                 elements);
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
