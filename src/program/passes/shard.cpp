// Sharding: ranks train together, each with its micro-batches. What each holds a part of (ZeRO: Rajbhandari et al., 2020;
// FSDP: Zhao et al., 2023) is cut unit by unit, a unit being a layer's share of a flat buffer. Every rank runs this same
// Program; which part is its own it knows by its number.

#include <set>

#include "base/scalars.h"
#include "program/collective.h"
#include "program/passes/list.h"
#include "program/passes/optimizer.h"
#include "program/passes/pages.h"
#include "program/passes/units.h"
#include "program/passes/windows.h"

namespace snug {

namespace {

// One view in each flat buffer of trained weights.
std::vector<const Weight*> one_of_each_group(const Program& program) {
  std::vector<const Weight*> groups;
  std::set<StorageId> seen;
  for (const Weight& weight : program.weights)
    if (weight.trainable && seen.insert(program.tensor(weight.tensor).storage).second) groups.push_back(&weight);
  return groups;
}

// Of which there is one part: slices, or experts, where each rank of a replica has its own.
std::vector<const Weight*> without_units(const Program& program, std::vector<const Weight*> groups) {
  std::erase_if(groups, [&](const Weight* weight) {
    return !program.storage(program.tensor(weight->gradient).storage).units.empty();
  });
  return groups;
}

void insert_front(Region& region, std::vector<Item> items) {
  region.items.insert(region.items.begin(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
}

// Whose gradients add up to that of what this rank trains: those who have the same share of the weight.
RankGroup ranks_of(const Weight& weight) {
  if (!weight.slice) return RankGroup::stage;
  return weight.slice->group == RankGroup::expert ? RankGroup::expert_data : RankGroup::data;
}

// Who cut what is shared out of it.
RankGroup cut_by(const Program& program, const Weight& weight) {
  return program.storage(program.tensor(weight.gradient).storage).cut_by;
}

// Every rank has all gradients, and sums them when its micro-batches are done.
void sum_gradients(Program& program, const std::vector<const Weight*>& groups) {
  std::vector<Item> sums;
  for (const Weight* weight : groups)
    if (program.mesh.size(ranks_of(*weight)) > 1)
      sums.push_back(Item{all_reduce(program, whole_buffer(program, weight->gradient), {ranks_of(*weight)})});
  insert_front(program.region(Section::norm), std::move(sums));
}

// Every rank has all gradients until then; of the sums it takes its parts.
void scatter_gradients(Program& program, const std::vector<const Weight*>& groups) {
  std::vector<Item> sums;
  for (const Weight* weight : groups) {
    const size_t units = program.storage(program.tensor(weight->gradient).storage).units.size();
    for (size_t unit = 0; unit < units; ++unit) {
      Region loop = unit_loop(program.storage(program.tensor(weight->gradient).storage).units[unit], "reduce_scatter",
                              Stage::optimizer);
      loop.add(reduce_scatter(program, whole_unit(program, weight->gradient, unit),
                              own_part(program, weight->gradient, unit), false, {cut_by(program, *weight)}));
      sums.push_back(Item{std::move(loop)});
    }
  }
  insert_front(program.region(Section::norm), std::move(sums));
}

// Of their sums ranks take their parts, and sum these over the group.
void sum_parts(Program& program, const std::vector<const Weight*>& groups, RankGroup group) {
  std::vector<Item> sums;
  for (const Weight* weight : groups) {
    const std::vector<Unit> units = program.storage(program.tensor(weight->gradient).storage).units;
    for (size_t unit = 0; unit < units.size(); ++unit) {
      Region loop = unit_loop(units[unit], "all_reduce", Stage::optimizer);
      loop.add(all_reduce(program, own_part(program, weight->gradient, unit), {group}));
      sums.push_back(Item{std::move(loop)});
    }
  }
  insert_front(program.region(Section::norm), std::move(sums));
}

// What each rank has updated a part of, all need.
void gather_weights(Program& program, const std::vector<const Weight*>& groups) {
  for (const Weight* weight : groups) {
    const size_t units = program.storage(program.tensor(weight->tensor).storage).units.size();
    for (size_t unit = 0; unit < units; ++unit) {
      Region loop =
          unit_loop(program.storage(program.tensor(weight->tensor).storage).units[unit], "all_gather", Stage::optimizer);
      loop.add(all_gather(program, own_part(program, weight->tensor, unit), whole_unit(program, weight->tensor, unit),
                          {cut_by(program, *weight)}));
      program.region(Section::optimizer).add(std::move(loop));
    }
  }
}

// A storage that ranks hold parts of is seen in windows, unit by unit.
void see_in_windows(Program& program, TensorId view, Moves moves, bool overlaps, std::set<StorageId>& seen) {
  const StorageId id = program.tensor(view).storage;
  if (!program.tensor(view).spread || !seen.insert(id).second) return;
  const std::vector<Unit> units = program.storage(id).units;
  for (size_t i = 0; i < units.size(); ++i) {
    const Piece piece{.storage = id,
                      .offset = units[i].begin,
                      .bytes = units[i].bytes,
                      .in_flat_buffer = true,
                      .name = program.storage(id).name,
                      .part = own_part(program, view, i),
                      .per_layer = units[i].per_layer,
                      .first_layer = units[i].first_layer,
                      .turns = overlaps ? 2 : 1};
    move_apart(program, program.root, piece, moves);
  }
}

void open_windows(Program& program, bool overlaps) {
  std::set<StorageId> seen;
  for (const Weight& weight : std::vector<Weight>(program.weights)) {
    see_in_windows(program, weight.tensor, Moves::in, overlaps, seen);
    if (weight.trainable) see_in_windows(program, weight.gradient, Moves::made, overlaps, seen);
    if (!weight.quantization) continue;
    const Quantization& how = *weight.quantization;
    for (const TensorId scales : {how.absmax, how.nested_absmax, how.absmax_offset})
      if (scales != kNone) see_in_windows(program, scales, Moves::in, overlaps, seen);
  }
}

Op sum_scalar(Program& program, Scalar scalar, RankGroup group) {
  const TensorId scalars = program.interface.scalars;
  const TensorId one = program.view(scalars, "scalars", {1});
  program.tensor(one).offset += static_cast<int64_t>(scalar) * size_of(program.tensor(scalars).dtype);
  return all_reduce(program, one, {group});
}

bool is_square_sum(const Item& item) {
  bool found = false;
  const auto look = [&](const Op& op, const Region&) { found = found || op.kind == OpKind::square_sum; };
  if (const Op* op = item.op()) look(*op, {});
  if (const Region* region = item.region()) for_each_op(*region, look);
  return found;
}

// Norms of a group's slices make that of whole weights; to it those are added which all of its ranks have alike.
void sum_slices(Program& program, const std::vector<const Weight*>& groups, RankGroup group) {
  std::set<StorageId> sliced;
  for (const Weight* weight : groups)
    if (weight->slice && weight->slice->group == group) sliced.insert(program.tensor(weight->gradient).storage);
  if (sliced.empty()) return;
  const auto is_of_slices = [&](const Item& item) {
    bool found = false;
    const auto look = [&](const Op& op, const Region&) {
      found = found || sliced.contains(program.tensor(op.find(Slot::gradient)).storage);
    };
    if (const Op* op = item.op()) look(*op, {});
    if (const Region* region = item.region()) for_each_op(*region, look);
    return found;
  };
  std::vector<Item>& items = program.region(Section::norm).items;
  const auto first = std::find_if(items.begin(), items.end(), is_square_sum);
  const auto end = std::find_if_not(first, items.end(), is_square_sum);
  const auto rest = std::stable_partition(first, end, is_of_slices);
  items.insert(rest, Item{sum_scalar(program, Scalar::square_sum, group)});
}

// Norms of parts make the norm of all, and losses of micro-batches that of the window: before the factor that clips.
void sum_scalars(Program& program, bool parts) {
  Region& norm = program.region(Section::norm);
  const auto before_factor = [&](Op op) {
    const auto factor = std::find_if(norm.items.begin(), norm.items.end(), [](const Item& item) {
      return item.op() != nullptr && item.op()->kind == OpKind::clip_factor;
    });
    presume(factor != norm.items.end(), "a factor that clips");
    norm.items.insert(factor, Item{std::move(op)});
  };
  before_factor(sum_scalar(program, Scalar::loss_sum, RankGroup::all));
  if (parts) before_factor(sum_scalar(program, Scalar::square_sum, RankGroup::shard));
  if (program.mesh.pipeline > 1) before_factor(sum_scalar(program, Scalar::square_sum, RankGroup::pipeline));
}

// What the first stage and the last have both.
std::vector<const Weight*> at_ends(std::vector<const Weight*> groups) {
  std::erase_if(groups, [](const Weight* weight) { return !weight->at_ends; });
  return groups;
}

void sum_over_ends(Program& program, const std::vector<const Weight*>& groups) {
  std::vector<Item> sums;
  for (const Weight* weight : at_ends(groups))
    sums.push_back(Item{all_reduce(program, whole_buffer(program, weight->gradient), {RankGroup::ends})});
  insert_front(program.region(Section::norm), std::move(sums));
}

// Every rank has everything.
void sum_all(Program& program, const std::vector<const Weight*>& groups) {
  sum_over_ends(program, groups);
  sum_gradients(program, groups);
  sum_scalars(program, false);
}

}  // namespace

void passes::shard(Program& program, const StepRequest& request) {
  const Parallel& parallel = request.recipe.parallel;
  if (parallel.ranks == 1) return;
  presume(program.count(Section::norm) == 1 && program.count(Section::load) == 0, "an optimizer, and no load yet");
  const std::vector<const Weight*> groups = one_of_each_group(program);
  const bool cut = program.mesh.size(RankGroup::shard) > 1;  // else each rank that trains the same is a replica
  if (parallel.zero_stage == 0 || !cut) {
    sum_slices(program, groups, RankGroup::tensor);
    sum_slices(program, groups, RankGroup::expert);
    return sum_all(program, groups);
  }
  // Behind what comes before them here:
  if (parallel.replicas > 1) sum_parts(program, groups, RankGroup::replica);
  sum_parts(program, at_ends(groups), RankGroup::ends);
  sum_gradients(program, without_units(program, groups));
  if (parallel.zero_stage == 1) scatter_gradients(program, groups);
  if (parallel.zero_stage == 1 || parallel.zero_stage == 2) gather_weights(program, groups);
  open_windows(program, parallel.overlaps);
  sum_scalars(program, true);
}

}  // namespace snug
