// Reverse-mode differentiation of a Program's forward region into its backward region; the body of a layer loop is
// differentiated once and stays folded.

#include <algorithm>
#include <stdexcept>

#include "program/adjoint.h"
#include "program/find_op.h"
#include "program/passes/dropout.h"
#include "program/passes/list.h"
#include "program/rules.h"

namespace snug {

TensorId Adjoint::gradient(TensorId tensor) const {
  const auto found = gradients_.find(tensor);
  return found == gradients_.end() ? kNone : found->second;
}

Adjoint::Destination Adjoint::destination(TensorId tensor) {
  for (const Weight& weight : program_.weights)
    if (weight.tensor == tensor) return {weight.gradient, true};
  if (const TensorId existing = gradient(tensor); existing != kNone) {
    // Adding to memory that another tensor's adjoint has yet to read would change what it reads.
    for (TensorId sharer : sharers_[existing])
      if (sharer != tensor) throw std::logic_error("the gradient of " + program_.tensor(tensor).name + " is still shared");
    return {existing, true};
  }
  const Tensor& primal = program_.tensor(tensor);
  const TensorId fresh = program_.make("d_" + primal.name, DType::f32, primal.shape, Role::temporary);
  share(tensor, fresh);
  return {fresh, false};
}

void Adjoint::share(TensorId tensor, TensorId gradient) {
  if (const TensorId existing = this->gradient(tensor); existing != kNone && existing != gradient)
    throw std::logic_error("the gradient of " + program_.tensor(tensor).name + " is already elsewhere");
  gradients_[tensor] = gradient;
  sharers_[gradient].insert(tensor);
}

bool Adjoint::alone(TensorId tensor) const {
  const auto sharers = sharers_.find(gradient(tensor));
  return sharers == sharers_.end() || sharers->second.empty() || sharers->second == std::set<TensorId>{tensor};
}

void Adjoint::passed(TensorId tensor) {
  if (const TensorId gradient = this->gradient(tensor); gradient != kNone) sharers_[gradient].erase(tensor);
}

void Adjoint::emit(Op op) { sink_->add(std::move(op)); }

namespace {

using Tensors = std::set<TensorId>;

// Statistics, indices and sums of the host take no gradient.
bool carries_gradient(Slot slot) {
  constexpr Slot kNever[] = {Slot::scalars,     Slot::mean,       Slot::rstd,         Slot::lse,
                             Slot::expert_rows, Slot::row_tokens, Slot::tile_experts, Slot::norm};
  return std::find(std::begin(kNever), std::end(kNever), slot) == std::end(kNever);
}

// Adds to `wanted` every tensor that depends on a wanted one; true if something was added.
bool spread(const Region& region, Tensors& wanted) {
  const size_t before = wanted.size();
  for (const Item& item : region.items) {
    if (const Op* op = item.op()) {
      bool reached = op->kind == OpKind::receive;  // others train what comes before
      for (const Operand& operand : op->operands)
        reached = reached || (operand.access != Access::write && wanted.contains(operand.tensor));
      for (const Operand& operand : op->operands)
        if (reached && operand.access != Access::read && carries_gradient(operand.slot)) wanted.insert(operand.tensor);
    }
    if (const Region* loop = item.region()) {
      for (const Carry& carry : loop->carries)
        if (wanted.contains(carry.before)) wanted.insert(carry.in);
      while (spread(*loop, wanted)) {
        for (const Carry& carry : loop->carries)
          if (wanted.contains(carry.out)) wanted.insert({carry.in, carry.after});
      }
      for (const Carry& carry : loop->carries)
        if (wanted.contains(carry.out)) wanted.insert(carry.after);
    }
  }
  return wanted.size() != before;
}

void differentiate_ops(Adjoint& adjoint, Region& forward, Region& backward, Program& program);

void differentiate_loop(Adjoint& adjoint, Region& loop, Region& backward, Program& program) {
  Region body{.name = loop.name + ".backward",
              .section = Section::blocks_backward,
              .index = loop.index,
              .stage = Stage::backward,
              .axis = loop.axis,
              .first = loop.first,
              .count = loop.count,
              .reverse = true};
  for (const Carry& carry : loop.carries)
    if (adjoint.wanted(carry.out)) {
      adjoint.share(carry.out, adjoint.gradient(carry.after));
      adjoint.passed(carry.after);
    }
  differentiate_ops(adjoint, loop, body, program);
  draw_again_in_backward(program, loop, body);
  for (const Carry& carry : loop.carries) {
    if (!adjoint.wanted(carry.in)) continue;
    // The gradient handed from layer to layer stays in one place.
    if (adjoint.gradient(carry.in) != adjoint.gradient(carry.out)) throw std::logic_error("a carried gradient moved");
    adjoint.passed(carry.in);
    if (adjoint.wanted(carry.before)) adjoint.share(carry.before, adjoint.gradient(carry.in));
  }
  backward.add(std::move(body));
}

void differentiate_ops(Adjoint& adjoint, Region& forward, Region& backward, Program& program) {
  for (auto item = forward.items.rbegin(); item != forward.items.rend(); ++item) {
    if (Region* loop = item->region()) {
      differentiate_loop(adjoint, *loop, backward, program);
      continue;
    }
    const Op op = *item->op();
    if (const auto rule = rule_of(op.kind).adjoint; rule != nullptr) {
      adjoint.into(backward);
      rule(adjoint, op);
    }
    for (const Operand& operand : op.operands)
      if (operand.access == Access::write) adjoint.passed(operand.tensor);
  }
}

// What a block makes and its backward reads is kept for every layer.
void keep_for_each_layer(Program& program, const Region& forward, const Region& backward, BlockRun& block) {
  const bool staged = program.mesh.pipeline > 1;  // instances are those of this stage's layers
  std::set<StorageId> made, read;
  for_each_op(forward, [&](const Op& op, const Region&) {
    for (const Operand& operand : op.operands)
      if (operand.access == Access::write) made.insert(program.tensor(operand.tensor).storage);
  });
  for_each_op(backward, [&](const Op& op, const Region&) {
    for (const Operand& operand : op.operands) read.insert(program.tensor(operand.tensor).storage);
  });
  for (StorageId id : made) {
    if (!read.contains(id) || program.storage(id).instances > 1) continue;  // the residual stream has instances already
    Storage& storage = program.storage(id);
    storage.instances = staged ? forward.count : program.layers;
    storage.role = Role::activation;
    for (Tensor& tensor : program.tensors)
      if (tensor.storage == id) {
        tensor.instance_by_layer = true;
        if (staged) tensor.instance = -forward.first;
      }
    block.saved.push_back(id);
  }
}

}  // namespace

void differentiate(Program& program) {
  presume(program.count(Section::backward) == 0, "no backward yet");
  Region& forward = program.region(Section::forward);
  const bool has_loss = program.loss != kNone;  // else a later stage has it
  presume(!has_loss || find_op(forward, program.loss).region == &forward, "the loss outside of loops");
  Tensors wanted;
  for (Weight& weight : program.weights) {
    if (!weight.trainable) continue;
    wanted.insert(weight.tensor);
    Tensor gradient = program.tensor(weight.tensor);
    gradient.name = "d_" + gradient.name;
    gradient.dtype = DType::f32;
    weight.gradient = program.add_tensor(std::move(gradient));
  }
  spread(forward, wanted);

  Region backward{.name = "backward", .section = Section::backward, .stage = Stage::backward};
  Adjoint adjoint(program, wanted);
  differentiate_ops(adjoint, forward, backward, program);

  // The loss op's training form replaces it in forward: it makes its gradients while the logits exist.
  if (has_loss) {
    const OpPlace training = find_op(backward, program.loss);
    find_op(forward, program.loss).op() = training.op();
    erase(training);
  }

  program.region(Section::micro_batch).add(std::move(backward));
  program.blocks.resize(static_cast<size_t>(program.count(Section::blocks)));
  for (int32_t i = 0; i < program.count(Section::blocks); ++i)
    keep_for_each_layer(program, program.region(Section::blocks, i), program.region(Section::blocks_backward, i),
                        program.blocks[static_cast<size_t>(i)]);
}

void passes::differentiate(Program& program, const StepRequest& /*request*/) { snug::differentiate(program); }

}  // namespace snug
