// Context parallelism: ranks split every sequence, each has a stretch of its rows. All but attention goes row by row. That
// of a rank's queries is to all ranks' keys and values: these are gathered for each layer, as Llama 3 was trained
// (Grattafiori et al., 2024, section 3.3.2), or go round a ring (passes/ring_attention.cpp). Everyone who trains a row has
// all weights: to their gradients and to what is shared out these ranks are as those that have other batches.

#include "program/collective.h"
#include "program/find_op.h"
#include "program/passes/list.h"

namespace snug {

namespace {

// All ranks' rows of x [1, T, K, D].
TensorId gathered(Program& program, TensorId x) {
  const Tensor part = program.tensor(x);
  std::vector<Extent> shape = part.shape;
  shape[1].bound *= program.mesh.context;
  return program.make(part.name + ".gathered", part.dtype, std::move(shape), Role::temporary);
}

void gather_keys_and_values(Program& program, Region& region) {
  for (size_t i = 0; i < region.items.size(); ++i) {
    if (Region* child = region.items[i].region()) gather_keys_and_values(program, *child);
    const Op* op = region.items[i].op();
    if (op == nullptr || op->kind != OpKind::attention) continue;
    std::vector<Item> before;
    for (const Slot slot : {Slot::k, Slot::v}) {
      const TensorId part = region.items[i].op()->find(slot), all = gathered(program, part);
      before.push_back({all_gather(program, part, all, {RankGroup::context, Lane::compute})});
      operand(*region.items[i].op(), slot).tensor = all;
    }
    const auto at = region.items.begin() + static_cast<int64_t>(i);
    region.items.insert(at, std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
    i += before.size();
  }
}

void pass_round(Program& program, Region& region) {
  for_each_op(region, [&](Op& op, const Region&) {
    if (op.kind != OpKind::attention) return;
    op.attributes.ranks = program.mesh.context;
    op.attributes.group = RankGroup::context;
  });
}

}  // namespace

void passes::split_sequences(Program& program, const StepRequest& request) {
  if (program.mesh.context == 1) return;
  presume(program.batch == 1 && program.count(Section::evaluate) + program.count(Section::backward) == 0,
          "a forward of one row, and no copies of it");
  program.seq_len *= program.mesh.context;  // what it was built for is this rank's stretch
  for (Tensor& tensor : program.tensors) {
    if (tensor.storage == kNone || program.storage(tensor.storage).lifetime == Lifetime::run) continue;
    tensor.rank_group = RankGroup::context;
    tensor.rank_elements = tensor.elements();
  }
  Region& forward = program.region(Section::forward);
  if (request.recipe.parallel.context_comm == ContextComm::p2p) return pass_round(program, forward);
  gather_keys_and_values(program, forward);
}

}  // namespace snug
