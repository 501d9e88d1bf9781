// The optimizer in backward ("LOMO", Lv et al., 2023; torchtune's optimizer_in_bwd): each weight is updated as soon as its
// gradient is complete and nothing reads it again in this step, so the gradients of all weights never exist together.

#include <algorithm>
#include <optional>

#include "base/scalars.h"
#include "program/passes/clone.h"
#include "program/passes/list.h"
#include "program/passes/updates.h"

namespace snug {

namespace {

using Parts = std::vector<Region*>;  // one after the other in time

struct Place {
  size_t part = 0, item = 0;
};

bool touches(const Op& op, TensorId a, TensorId b) {
  return std::any_of(op.operands.begin(), op.operands.end(),
                     [&](const Operand& operand) { return operand.tensor == a || operand.tensor == b; });
}

bool touches(const Item& item, TensorId a, TensorId b) {
  if (const Op* op = item.op()) return touches(*op, a, b);
  bool found = false;
  for_each_op(*item.region(), [&](const Op& op, const Region&) { found = found || touches(op, a, b); });
  return found;
}

Place end_of(const Parts& parts) { return {parts.size() - 1, parts.back()->items.size()}; }

// Before the first item that touches the gradient; none if no gradient reaches the weight.
std::optional<Place> first_use(const Parts& parts, TensorId gradient) {
  for (size_t part = 0; part < parts.size(); ++part)
    for (size_t item = 0; item < parts[part]->items.size(); ++item)
      if (touches(parts[part]->items[item], gradient, gradient)) return Place{part, item};
  return std::nullopt;
}

// Behind the last item that touches the gradient, or reads the weight with the value that this step began with.
Place last_use(const Parts& parts, TensorId gradient, TensorId weight) {
  for (size_t part = parts.size(); part-- > 0;)
    for (size_t item = parts[part]->items.size(); item-- > 0;)
      if (touches(parts[part]->items[item], gradient, weight)) return {part, item + 1};
  return end_of(parts);
}

void insert(const Parts& parts, const Place& place, std::vector<Item> items) {
  std::vector<Item>& into = parts[place.part]->items;
  into.insert(into.begin() + static_cast<int64_t>(place.item), std::make_move_iterator(items.begin()),
              std::make_move_iterator(items.end()));
}

// Clears the gradient before its first use, and updates the weight after the last. What no gradient reaches decays all the
// same.
void update_within(Program& program, const Parts& parts, const Weight& weight, TensorId gradient, Updates& updates) {
  const std::optional<Place> first = first_use(parts, gradient);
  const Place last = first ? last_use(parts, gradient, weight.tensor) : end_of(parts);
  Region after{.stage = parts[last.part]->stage};
  after.add(Op{OpKind::square_sum}).reads(Slot::gradient, gradient).updates(Slot::scalars, program.interface.scalars);
  updates.add(after, {weight.tensor, gradient, weight.states, weight.decays});
  insert(parts, last, std::move(after.items));
  Region before;
  before.add(Op{OpKind::zero}).writes(Slot::gradient, gradient);
  insert(parts, first.value_or(last), std::move(before.items));
}

Region factor_region(const Program& program, Section section) {
  Region region{.name = name_of(section), .section = section, .stage = Stage::optimizer};
  region.add(Op{OpKind::clip_factor}).updates(Slot::scalars, program.interface.scalars);
  return region;
}

// Backward's loops over layers, one for each run of layers that are treated alike, as they run.
Parts layer_loops(Program& program) {
  Parts loops;
  for (auto i = static_cast<int32_t>(program.blocks.size()); i-- > 0;)
    loops.push_back(&program.region(Section::blocks_backward, i));
  return loops;
}

bool is_updated_in(const Program& program, const Region& loop, const Weight& weight) {
  const Parameter& parameter = weight.parameter;
  return weight.trainable && parameter.per_layer && parameter.first_layer < loop.first + loop.count &&
         loop.first < parameter.end_layer(program.layers);
}

// Each loop has gradients of its own, so that they need no place between the loops.
void separate_gradients(Program& program, const Parts& loops, std::vector<std::vector<TensorId>>& gradients) {
  std::set<StorageId> layered;
  for (const Weight& weight : program.weights)
    if (weight.trainable && weight.parameter.per_layer) layered.insert(program.tensor(weight.gradient).storage);
  for (Region* loop : loops) {
    std::vector<TensorId>& of_loop = gradients.emplace_back();
    Clones clones(program, loop == loops.front() ? std::set<StorageId>() : layered);
    clones.rename(*loop);
    for (const Weight& weight : program.weights)
      of_loop.push_back(is_updated_in(program, *loop, weight) ? clones.of(weight.gradient) : kNone);
  }
}

}  // namespace

// Instead of the optimizer, with gradients that place_weights() placed apart. One micro-batch a step, no clipping: both
// would need all gradients at once. Adds the regions "clear", which sets the factor of gradients to 1, and "norm", which
// reports their norm.
void passes::optimizer_in_backward(Program& program, const StepRequest& request) {
  if (!request.recipe.optimizer_in_bwd) return;
  presume(program.count(Section::backward) == 1 && program.count(Section::norm) == 0, "a backward, and no optimizer yet");
  presume(program.micro_batches == 1, "one micro-batch a step");
  Updates updates(program, request.recipe);
  const Parts loops = layer_loops(program);
  std::vector<std::vector<TensorId>> gradients;  // by loop, by weight
  separate_gradients(program, loops, gradients);
  for (size_t i = 0; i < program.weights.size(); ++i) {
    const Weight weight = program.weights[i];
    for (size_t loop = 0; loop < loops.size(); ++loop)
      if (is_updated_in(program, *loops[loop], weight))
        update_within(program, {loops[loop]}, weight, gradients[loop][i], updates);
  }
  const Parts whole = {&program.region(Section::forward),
                       &program.region(Section::backward)};  // `loops` may move from here on
  for (size_t i = 0; i < program.weights.size(); ++i) {
    const Weight weight = program.weights[i];
    if (weight.trainable && !weight.parameter.per_layer) update_within(program, whole, weight, weight.gradient, updates);
  }
  Region& step = program.region(Section::step);
  step.items.insert(step.items.begin(), Item{factor_region(program, Section::clear)});
  step.add(factor_region(program, Section::norm));
}

}  // namespace snug
