// Expert parallelism (Lepikhin et al., "GShard", 2020): ranks split the experts of every layer. Each gathers the rows of all
// that have experts with it, routes them, gives its own experts theirs, and scatters, summed, what its experts made: every
// token reaches all that it chose, wherever they are, and what a rank needs at most is known beforehand. Routing is done by
// all of them alike; its gradients are this rank's share of a sum, as its experts' are all of theirs.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "op/routed_rows.h"
#include "program/collective.h"
#include "program/find_op.h"
#include "program/passes/list.h"

namespace snug {

namespace {

class SplitExperts {
 public:
  SplitExperts(Program& program, const ModelSpec& model) : program_(program), model_(model), ways_(program.mesh.expert) {}

  void run() {
    if (model_.experts.count % ways_ != 0)
      throw Error(fmt::format("ep_size {} does not go with {} experts", ways_, model_.experts.count), "recipe",
                  "give an ep_size that divides them");
    for (Weight& weight : program_.weights)
      if (weight.parameter.experts > 0) slice(weight);
    split(program_.region(Section::forward));
  }

 private:
  void slice(Weight& weight) {
    weight.slice = {.group = RankGroup::expert, .axis = 0, .segments = {weight.parameter.experts}};
    program_.tensor(weight.tensor).shape[0].bound /= ways_;
  }

  void split(Region& region) {
    for (size_t i = 0; i < region.items.size(); ++i) {
      if (Region* child = region.items[i].region()) split(*child);
      if (const Op* op = region.items[i].op(); op != nullptr && op->kind == OpKind::route) return split_layer(region);
    }
  }

  // Of the first axis, so many rows.
  void resize(TensorId id, int64_t rows) {
    Tensor& tensor = program_.tensor(id);
    if (tensor.dim(0) == rows) return;
    tensor.shape[0].bound = rows;
    program_.storage(tensor.storage).bytes = tensor.bytes();
  }

  bool is_weight(TensorId id) const { return program_.tensor(id).storage == kNone; }

  // A block's body.
  void split_layer(Region& body) {
    std::set<TensorId> of_tokens, routed;
    TensorId own = kNone, all = kNone;
    size_t first = body.items.size(), last = 0;
    int64_t tokens = 0, rows = 0;
    for (size_t i = 0; i < body.items.size(); ++i) {
      Op& op = *body.items[i].op();
      switch (op.kind) {
        case OpKind::matmul:
          if (!is_router(op.find(Slot::b))) break;
          own = op.find(Slot::a);
          all = all_rows(own);
          tokens = program_.tensor(all).dim(0);
          first = i;
          operand(op, Slot::a).tensor = all;
          resize(op.find(Slot::c), tokens);
          break;
        case OpKind::route: rows = route(op, tokens); break;
        case OpKind::gather_rows:
          operand(op, Slot::x).tensor = all;
          resize(op.find(Slot::out), rows);
          routed.insert(op.find(Slot::out));
          break;
        case OpKind::combine: last = i; break;
        default: widen(op, routed, rows);
      }
    }
    presume(own != kNone && last > first, "a router, and a sum over what its experts made");
    sum_experts(body, last, tokens);
    body.items.insert(body.items.begin() + static_cast<int64_t>(first),
                      Item{all_gather(program_, own, all, {RankGroup::expert, Lane::compute})});
  }

  bool is_router(TensorId id) const {
    return std::any_of(program_.weights.begin(), program_.weights.end(), [id](const Weight& weight) {
      return weight.tensor == id && weight.parameter.kind == ParameterKind::router;
    });
  }

  TensorId all_rows(TensorId own) {
    const Tensor like = program_.tensor(own);
    std::vector<Extent> shape = like.shape;
    shape[0].bound *= ways_;
    return program_.make(like.name + ".gathered", like.dtype, std::move(shape), Role::temporary);
  }

  // The rows that this rank's experts may need.
  int64_t route(Op& op, int64_t tokens) {
    op.attributes.ranks = ways_;
    op.attributes.group = RankGroup::expert;
    for (const Slot slot : {Slot::route_weights, Slot::expert_rows}) resize(op.find(slot), tokens);
    const RoutedRows here = routed_rows(tokens, model_.experts.count, model_.experts.per_token, ways_);
    resize(op.find(Slot::row_tokens), here.rows);
    resize(op.find(Slot::tile_experts), here.rows / here.tile);
    return here.rows;
  }

  // What is made of routed rows has as many.
  void widen(Op& op, std::set<TensorId>& routed, int64_t rows) {
    bool any = false;
    for (const Operand& operand : op.operands) any = any || routed.contains(operand.tensor);
    if (!any) return;
    for (const Operand& operand : op.operands) {
      if (operand.access != Access::write || is_weight(operand.tensor)) continue;
      resize(operand.tensor, rows);
      routed.insert(operand.tensor);
    }
  }

  // Each rank's rows of the sum over all ranks' experts, behind what this rank's made.
  void sum_experts(Region& body, size_t at, int64_t tokens) {
    Op& combine = *body.items[at].op();
    const TensorId own = combine.find(Slot::out);
    program_.tensor(own).dtype = DType::f32;  // as sums are
    program_.storage(program_.tensor(own).storage).bytes = program_.tensor(own).bytes();
    Tensor like = program_.tensor(own);
    like.shape[0].bound = tokens;
    const TensorId partial = program_.make(like.name + ".partial", DType::f32, like.shape, Role::temporary);
    operand(combine, Slot::out).tensor = partial;
    body.items.insert(body.items.begin() + static_cast<int64_t>(at) + 1,
                      Item{reduce_scatter(program_, partial, own, false, {RankGroup::expert, Lane::compute})});
  }

  Program& program_;
  const ModelSpec& model_;
  int64_t ways_;
};

}  // namespace

void passes::split_experts(Program& program, const StepRequest& request) {
  if (program.mesh.expert == 1) return;
  if (request.model.experts.count == 0)
    throw Error(fmt::format("ep_size is {}, and the model has no experts", program.mesh.expert), "recipe", "remove it");
  presume(program.count(Section::evaluate) + program.count(Section::backward) == 0, "a forward, and no copies of it");
  SplitExperts(program, request.model).run();
}

}  // namespace snug
