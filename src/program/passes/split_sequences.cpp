// Context parallelism: ranks split every sequence, each has a stretch of its rows. All but attention goes row by row; each
// layer's keys and values are gathered from all ranks, as Llama 3 was trained (Grattafiori et al., 2024, section 3.3.2), and
// attention is that of this rank's queries to all of them. Everyone who trains a row has all weights: to their gradients
// and to what is shared out these ranks are as those that have other batches.

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

}  // namespace

void passes::split_sequences(Program& program, const StepRequest& /*request*/) {
  if (program.mesh.context == 1) return;
  presume(program.batch == 1 && program.count(Section::evaluate) + program.count(Section::backward) == 0,
          "a forward of one row, and no copies of it");
  program.seq_len *= program.mesh.context;  // what it was built for is this rank's stretch
  for (Tensor& tensor : program.tensors) {
    if (tensor.storage == kNone || program.storage(tensor.storage).lifetime == Lifetime::run) continue;
    tensor.rank_group = RankGroup::context;
    tensor.rank_elements = tensor.elements();
  }
  gather_keys_and_values(program, program.region(Section::forward));
}

}  // namespace snug
