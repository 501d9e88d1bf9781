#include "program/passes/optimizer.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/scalars.h"
#include "program/passes/list.h"
#include "program/passes/offload.h"
#include "program/passes/pages.h"
#include "program/passes/units.h"
#include "program/passes/updates.h"

namespace snug {

namespace {

// `view_of`: what the optimizer sees in place of a view of the weight's.
template <class ViewOf>
Trained trained_by(const Weight& weight, const ViewOf& view_of) {
  Trained group{.parameter = view_of(weight.tensor), .gradient = view_of(weight.gradient), .states = weight.states};
  for (OptimizerState& state : group.states) state.tensor = view_of(state.tensor);
  group.decays = weight.decays;
  group.counts = !weight.repeats;
  return group;
}

std::vector<Trained> trained_groups(Program& program) {
  std::vector<Trained> groups;
  std::set<StorageId> seen;
  for (const Weight& weight : program.weights) {
    if (!weight.trainable) continue;
    const StorageId storage = program.tensor(weight.tensor).storage;
    presume(storage != kNone, "a place for " + weight.parameter.name);
    if (!seen.insert(storage).second) continue;
    groups.push_back(trained_by(weight, [&](TensorId view) { return whole_buffer(program, view); }));
  }
  return groups;
}

// Of a buffer that ranks cut among them each updates its part, unit by unit.
void add_part(Program& program, size_t unit, const Trained& group, Region& norm, Region& update, Updates& updates) {
  const Unit of = program.storage(program.tensor(group.gradient).storage).units[unit];
  const auto part = [&](TensorId view) { return own_part(program, view, unit); };
  Trained own = group;
  own.parameter = part(group.parameter);
  own.gradient = part(group.gradient);
  for (OptimizerState& state : own.states) state.tensor = part(state.tensor);
  Region sums = unit_loop(of, "norm.parts", Stage::optimizer), loop = unit_loop(of, "optimizer.parts", Stage::optimizer);
  sums.add(Op{OpKind::square_sum}).reads(Slot::gradient, own.gradient).updates(Slot::scalars, program.interface.scalars);
  updates.add(loop, own);
  if (group.counts) norm.add(std::move(sums));
  update.add(std::move(loop));
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
    const size_t units = program.storage(program.tensor(group.gradient).storage).units.size();
    if (!come_at_once(program, program.tensor(group.gradient).storage))
      add_in_pages(program, clear, Op{OpKind::zero}.writes(Slot::gradient, group.gradient), elements);
    for (size_t unit = 0; unit < units; ++unit) add_part(program, unit, group, norm, update, updates);
    if (units > 0) continue;
    if (group.counts)
      add_in_pages(program, norm,
                   Op{OpKind::square_sum}.reads(Slot::gradient, group.gradient).updates(Slot::scalars, scalars), elements);
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
