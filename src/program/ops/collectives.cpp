// all_reduce, reduce_scatter, all_gather: of all ranks together, as in MPI and NCCL; pass_on: of each with both neighbours;
// send, receive: of two. What each moves is a ring's share: every byte that a rank lacks crosses its link once (Patarasuk &
// Yuan, "Bandwidth optimal all-reduce algorithms", 2009).

#include "program/adjoint.h"
#include "program/collective.h"
#include "program/rules.h"

namespace snug {

namespace collective_rule {

double others(const Op& op) { return static_cast<double>(op.attributes.ranks - 1); }

bool is_summed(const Tensor& tensor) { return tensor.dtype == DType::f32 || tensor.dtype == DType::f64; }

void check_sum(const Program& program, const Op& op) {
  const Tensor& x = program.tensor(op.find(Slot::x));
  expect(is_summed(x), op, "sums are of fp32 and fp64");
  expect(program.tensor(op.find(Slot::staging)).dtype == x.dtype, op, "numbers of one kind");
  expect(op.attributes.ranks > 1, op, "more than one rank");
}

void check_parts(const Program& program, const Op& op, const Tensor& whole, const Tensor& part) {
  expect(whole.dtype == part.dtype, op, "numbers of one kind");
  expect(whole.elements() == part.elements() * op.attributes.ranks, op, "as many parts as ranks");
  expect(op.attributes.ranks == program.mesh.size(op.attributes.group), op, "every rank of the group");
}

void check_scatter(const Program& program, const Op& op) {
  check_sum(program, op);
  check_parts(program, op, program.tensor(op.find(Slot::x)), program.tensor(op.find(Slot::out)));
}

void check_gather(const Program& program, const Op& op) {
  check_parts(program, op, program.tensor(op.find(Slot::out)), program.tensor(op.find(Slot::x)));
}

// What a rank sends.
Work part_work(const Program& program, const Op& op) {
  const Slot part = op.kind == OpKind::all_gather ? Slot::x : Slot::out;
  return {.flops = 0, .bytes = others(op) * static_cast<double>(program.tensor(op.find(part)).bytes())};
}

Work sum_work(const Program& program, const Op& op) {
  const auto bytes = static_cast<double>(program.tensor(op.find(Slot::x)).bytes());
  return {.flops = 0, .bytes = 2 * others(op) / static_cast<double>(op.attributes.ranks) * bytes};
}

// What ranks made of the gathered rows adds up, each rank's rows to their own rank.
void gather_adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId out = op.find(Slot::out), d_out = adjoint.gradient(out);
  if (d_out == kNone || !adjoint.wanted(op.find(Slot::x))) return;
  expect(adjoint.alone(out), op, "a gradient that is used up");
  const auto d_x = adjoint.destination(op.find(Slot::x));
  adjoint.emit(reduce_scatter(adjoint.program(), d_out, d_x.tensor, d_x.accumulate, {op.attributes.group, op.lane}));
}

// A sum's gradient is that of each of its terms.
void scatter_adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId d_out = adjoint.gradient(op.find(Slot::out));
  if (d_out == kNone || !adjoint.wanted(op.find(Slot::x))) return;
  const auto d_x = adjoint.destination(op.find(Slot::x));
  expect(!d_x.accumulate, op, "terms that are used once");
  adjoint.emit(all_gather(adjoint.program(), d_out, d_x.tensor, {op.attributes.group, op.lane}));
}

void check_pass(const Program& program, const Op& op) {
  const Tensor &x = program.tensor(op.find(Slot::x)), &out = program.tensor(op.find(Slot::out));
  expect(x.dtype == out.dtype && x.elements() == out.elements(), op, "as much comes as goes");
  expect(op.attributes.ranks > 1 && op.attributes.ranks == program.mesh.size(op.attributes.group), op,
         "every rank of the group");
}

void check_pair(const Program& program, const Op& op) {
  expect(op.attributes.ranks > 1 && program.tensor(op.find(Slot::x)).elements() > 0, op, "something, and another rank");
}

Work pair_work(const Program& program, const Op& op) {
  return {.flops = 0, .bytes = static_cast<double>(program.tensor(op.find(Slot::x)).bytes())};
}

// Along stages back: from where what was sent went to, the gradient of it. It comes whether somebody wants it or not.
void send_adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId x = op.find(Slot::x);
  Program& program = adjoint.program();
  const TensorId d_x = adjoint.wanted(x) ? adjoint.destination(x).tensor
                                         : program.make("d_unwanted", DType::f32, program.tensor(x).shape, Role::temporary);
  adjoint.emit(receive(program, d_x, {RankGroup::back, Lane::compute}));
}

// It is on its way while the next micro-batch is worked on: nothing else may come to lie there.
void receive_adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId d_x = adjoint.gradient(op.find(Slot::x));
  expect(d_x != kNone, op, "a gradient for the stage before");
  Program& program = adjoint.program();
  program.storage(program.tensor(d_x).storage).lifetime = Lifetime::run;
  adjoint.emit(send(program, d_x, {RankGroup::back, Lane::comm}));
}

}  // namespace collective_rule

const OpRule rules::all_reduce = {.check = collective_rule::check_sum, .work = collective_rule::sum_work};
const OpRule rules::reduce_scatter = {.check = collective_rule::check_scatter,
                                      .work = collective_rule::part_work,
                                      .adjoint = collective_rule::scatter_adjoint};
const OpRule rules::all_gather = {
    .check = collective_rule::check_gather, .work = collective_rule::part_work, .adjoint = collective_rule::gather_adjoint};
const OpRule rules::pass_on = {.check = collective_rule::check_pass, .work = collective_rule::pair_work};
const OpRule rules::send = {
    .check = collective_rule::check_pair, .work = collective_rule::pair_work, .adjoint = collective_rule::send_adjoint};
const OpRule rules::receive = {
    .check = collective_rule::check_pair, .work = collective_rule::pair_work, .adjoint = collective_rule::receive_adjoint};

}  // namespace snug
