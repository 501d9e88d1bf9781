// Ring attention (Liu et al., "Ring Attention with Blockwise Transformers for Near-Infinite Context", 2023): of ranks that
// split a sequence each keeps its own keys and values, and works on those of all, block by block, while they go round a
// ring. The next block comes, on a lane of its own, into the one of two windows that is not worked on. Out and lse go on
// from step to step, so that blocks may come in any order: a rank's own come first, and those of the last ranks, which it
// does not see, cost it nothing.
//
// Backward sends the blocks round again and is told lse and out of all keys, with which what it makes of each block is
// exact. Gradients of a rank's own block stay; those of the others go with their block, in fp32, from the second rank that
// works on it to the last, and from there home.
//
// Until this pass, which is one of the last, attention over a ring is one op.

#include "base/checked.h"
#include "program/collective.h"
#include "program/find_op.h"
#include "program/passes/list.h"

namespace snug {

namespace {

// Two tensors like another, which take turns in the steps of a ring.
class Turns {
 public:
  Turns(Program& program, TensorId like, int64_t count)
      : program_(program), one_(program.tensor(like)), stride_(align_up(one_.bytes(), kAlignment)) {
    one_.name += ".ring";
    one_.layer_stride = one_.first_layer = one_.layer_turns = one_.instance = one_.offset = one_.rank_stride = 0;
    one_.instance_by_layer = false;
    one_.window_of = kNone;
    one_.chunk_stride = stride_;
    one_.storage = program.add_storage({.name = one_.name, .bytes = stride_ * count, .role = Role::comm});
  }

  // That of step `turn`.
  TensorId at(int64_t turn) const {
    Tensor tensor = one_;
    tensor.offset = turn % 2 * stride_;
    tensor.chunk_stride = 0;
    return program_.add_tensor(std::move(tensor));
  }
  // In a loop over steps: that of the step whose turn it is, or so many ahead.
  TensorId in_loop(int64_t ahead) const {
    Tensor tensor = one_;
    tensor.chunk_turns = 2;
    tensor.first_chunk = -ahead;
    return program_.add_tensor(std::move(tensor));
  }

 private:
  Program& program_;
  Tensor one_;
  int64_t stride_;
};

class Ring {
 public:
  Ring(Program& program, const Op& op, const Region& around)
      : program_(program),
        op_(op),
        ranks_(op.attributes.ranks),
        keys_(program, op.find(Slot::k), ranks_ > 2 ? 2 : 1),
        values_(program, op.find(Slot::v), ranks_ > 2 ? 2 : 1),
        ring_{.name = around.name + ".ring", .stage = around.stage},
        loop_{.name = around.name + ".steps", .stage = around.stage, .axis = Axis::chunk, .count = ranks_ - 2} {}

  Region forward() {
    const TensorId out = op_.find(Slot::out);
    const bool rounded = program_.tensor(out).dtype != DType::f32;
    const TensorId sums = rounded ? sums_of(out) : out;
    pass(ring_, op_.find(Slot::k), keys_.at(0), op_.find(Slot::v), values_.at(0));
    Op first = step(0, op_.find(Slot::k), op_.find(Slot::v));
    operand(first, Slot::out).tensor = sums;
    ring_.add(std::move(first));
    const auto goes_on = [&](int64_t at, TensorId k, TensorId v) {
      Op next = step(at, k, v);
      operand(next, Slot::out) = {Slot::out, Access::update, sums};
      operand(next, Slot::lse).access = Access::update;
      return next;
    };
    if (loop_.count > 0) {
      pass_in_loop(keys_, values_);
      loop_.add(goes_on(1, keys_.in_loop(0), values_.in_loop(0)));
      ring_.add(std::move(loop_));
    }
    Op last = goes_on(ranks_ - 1, keys_.at(ranks_ - 2), values_.at(ranks_ - 2));
    if (rounded) {
      operand(last, Slot::out) = {Slot::out, Access::write, out};
      last.reads(Slot::sums, sums);
    }
    ring_.add(std::move(last));
    return std::move(ring_);
  }

  Region backward() {
    const TensorId d_k = op_.find(Slot::d_k), d_v = op_.find(Slot::d_v);
    const Turns d_keys(program_, d_k, 2), d_values(program_, d_v, 2);
    pass(ring_, op_.find(Slot::k), keys_.at(0), op_.find(Slot::v), values_.at(0));
    ring_.add(step(0, op_.find(Slot::k), op_.find(Slot::v)));
    for (const Turns* gradient : {&d_keys, &d_values}) ring_.add(Op{OpKind::zero}.writes(Slot::gradient, gradient->at(0)));
    const auto goes_on = [&](int64_t at, TensorId k, TensorId v, TensorId to_k, TensorId to_v) {
      Op next = step(at, k, v);
      operand(next, Slot::d_q).access = Access::update;
      operand(next, Slot::d_k) = {Slot::d_k, Access::update, to_k};
      operand(next, Slot::d_v) = {Slot::d_v, Access::update, to_v};
      return next;
    };
    if (loop_.count > 0) {
      pass_in_loop(keys_, values_);
      loop_.add(goes_on(1, keys_.in_loop(0), values_.in_loop(0), d_keys.in_loop(0), d_values.in_loop(0)));
      pass_in_loop(d_keys, d_values);
      ring_.add(std::move(loop_));
    }
    const int64_t last = ranks_ - 2;  // turn of the last step
    ring_.add(goes_on(ranks_ - 1, keys_.at(last), values_.at(last), d_keys.at(last), d_values.at(last)));
    pass(ring_, d_keys.at(last), d_keys.at(last + 1), d_values.at(last), d_values.at(last + 1));
    for (const auto& [home, came] : {std::pair(d_k, &d_keys), std::pair(d_v, &d_values)})
      ring_.add(Op{OpKind::add}.reads(Slot::a, home).reads(Slot::b, came->at(last + 1)).writes(Slot::out, home));
    return std::move(ring_);
  }

 private:
  TensorId sums_of(TensorId out) {
    const Tensor rounded = program_.tensor(out);
    return program_.make(rounded.name + ".sums", DType::f32, rounded.shape, Role::temporary);
  }

  // Keys and values that have come so far; sinks are beside a rank's own keys.
  Op step(int64_t at, TensorId k, TensorId v) const {
    Op op = op_;
    op.id = kNone;
    op.attributes.ring_step = at;
    op.attributes.accumulate = at > 0;
    operand(op, Slot::k).tensor = k;
    operand(op, Slot::v).tensor = v;
    if (at > 0) std::erase_if(op.operands, [](const Operand& o) { return o.slot == Slot::bias || o.slot == Slot::d_bias; });
    return op;
  }

  void pass(Region& region, TensorId k, TensorId to_k, TensorId v, TensorId to_v) {
    region.add(pass_on(program_, k, to_k, {RankGroup::context, Lane::comm}));
    region.add(pass_on(program_, v, to_v, {RankGroup::context, Lane::comm}));
  }
  void pass_in_loop(const Turns& k, const Turns& v) { pass(loop_, k.in_loop(0), k.in_loop(1), v.in_loop(0), v.in_loop(1)); }

  Program& program_;
  const Op op_;
  int64_t ranks_;
  Turns keys_, values_;
  Region ring_, loop_;
};

void write_out(Program& program, Region& region) {
  for (Item& item : region.items) {
    if (Region* child = item.region()) write_out(program, *child);
    const Op* op = item.op();
    if (op == nullptr || op->attributes.ranks == 1) continue;
    if (op->kind == OpKind::attention) item = {Ring(program, *op, region).forward()};
    if (op->kind == OpKind::attention_backward) item = {Ring(program, *op, region).backward()};
  }
}

}  // namespace

void passes::ring_attention(Program& program, const StepRequest& request) {
  const bool in_blocks = request.saved != nullptr && request.saved->of_ops_alone;
  if (program.mesh.context > 1 && !in_blocks) write_out(program, program.root);
}

}  // namespace snug
