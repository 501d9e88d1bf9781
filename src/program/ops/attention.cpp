// attention: causal within documents, windowed in local layers, grouped queries, blockwise with a running softmax (Dao et
// al., FlashAttention, 2022). q [B, T, H, D], k [B, S, K, D], v [B, S, K, D'], out [B, T, H, D'], lse [B, H, T]; S is T,
// or a multiple where ranks split sequences and these are the queries of one of them; kernels have D' = D. No T x T matrix,
// forward or backward. A bias, where there is one, is a score for each head [H] beside those of the keys (plans only).
//
// Where keys and values go round a ring of ranks (passes/ring_attention.cpp), an op with a `ring_step` is a step of it: k
// and v are of the rank so many places before. What accumulates goes on from out, or from `sums` where out is rounded, and
// from lse; its gradients are added to.

#include <algorithm>

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace attention_rule {

void check(const Program& program, const Op& op) {
  const Tensor& q = program.tensor(op.find(Slot::q));
  const Tensor& k = program.tensor(op.find(Slot::k));
  const Tensor& v = program.tensor(op.find(Slot::v));
  expect(q.shape.size() == 4 && k.shape.size() == 4 && v.shape.size() == 4, op, "q, k, v have four axes");
  expect(q.dim(0) == k.dim(0) && k.dim(1) % q.dim(1) == 0 && q.dim(3) == k.dim(3), op, "q and k agree");
  expect(v.dim(0) == k.dim(0) && v.dim(1) == k.dim(1) && v.dim(2) == k.dim(2), op, "k and v agree");
  const Tensor& out = program.tensor(op.find(Slot::out));
  expect(out.elements() * q.dim(3) == q.elements() * v.dim(3), op, "out has a row of v's size for each query");
  expect(q.dim(2) % k.dim(2) == 0, op, "K divides H");
  const bool is_step = op.attributes.ring_step >= 0;
  expect(!is_step || (op.attributes.ranks > 1 && q.dim(1) == k.dim(1)), op, "as many keys as queries in a step");
  if (op.kind != OpKind::attention) return;
  const TensorId sums = op.find(Slot::sums);
  expect(!op.attributes.accumulate || program.tensor(sums == kNone ? op.find(Slot::out) : sums).dtype == DType::f32, op,
         "sums in fp32");
}

// Twice the keys that a query sees on the average, over all layers: T without windows.
double twice_visible_keys(const Program& program, const Op& op, double seq_len) {
  const auto window = static_cast<double>(op.attributes.window);
  if (window == 0 || window >= seq_len) return seq_len;
  const auto local = static_cast<double>(std::count(program.local_layers.begin(), program.local_layers.end(), true));
  const double in_window = 2.0 * window - window * window / seq_len;
  return seq_len + (in_window - seq_len) * local / static_cast<double>(program.layers);
}

// Of the ranks of a ring the first sees least in each step and the last most: on the average each step is as much.
double steps_of(const Op& op) { return op.attributes.ring_step >= 0 ? 1.0 / static_cast<double>(op.attributes.ranks) : 1.0; }

// The causal half of so many products over D numbers (q k^T; backward also d_q and d_k) and over D' (p v; backward d_p and
// d_v).
Work causal_work(const Program& program, const Op& op, double with_keys, double with_values) {
  const Tensor& q = program.tensor(op.find(Slot::q));
  const auto keys = static_cast<double>(q.elements());
  const auto values = static_cast<double>(program.tensor(op.find(Slot::out)).elements());
  const auto seq_len = static_cast<double>(program.tensor(op.find(Slot::k)).dim(1) * op.attributes.ranks);
  return {.flops = (with_keys * keys + with_values * values) * twice_visible_keys(program, op, seq_len) * steps_of(op),
          .bytes = memory_work(program, op).bytes};
}

Work work(const Program& program, const Op& op) { return causal_work(program, op, 1, 1); }
Work work_backward(const Program& program, const Op& op) { return causal_work(program, op, 3, 2); }

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId out = op.find(Slot::out);
  const TensorId d_out = adjoint.gradient(out);
  if (d_out == kNone) return;
  Op back{OpKind::attention_backward};
  back.attributes = op.attributes;
  back.reads(Slot::d_out, d_out).reads(Slot::out, out);
  for (Slot slot : {Slot::q, Slot::k, Slot::v, Slot::document_start, Slot::lse}) back.reads(slot, op.find(slot));
  constexpr Slot kPairs[3][2] = {{Slot::q, Slot::d_q}, {Slot::k, Slot::d_k}, {Slot::v, Slot::d_v}};
  for (const auto& [input, gradient] : kPairs) {
    const auto destination = adjoint.destination(op.find(input));
    expect(!destination.accumulate, op, "q, k and v are used once");
    back.writes(gradient, destination.tensor);
  }
  if (const TensorId sinks = op.find(Slot::bias); sinks != kNone) {
    back.reads(Slot::bias, sinks);
    if (adjoint.wanted(sinks)) back.updates(Slot::d_bias, adjoint.destination(sinks).tensor);
  }
  adjoint.emit(std::move(back));
}

}  // namespace attention_rule

const OpRule rules::attention = {
    .check = attention_rule::check, .work = attention_rule::work, .adjoint = attention_rule::adjoint};
const OpRule rules::attention_backward = {.check = attention_rule::check, .work = attention_rule::work_backward};

}  // namespace snug
