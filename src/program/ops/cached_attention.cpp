// cached_attention: new tokens attend over the keys and values of all tokens so far, their own included. q [1, M, H, D], k
// [1, M, K, D], v [1, M, K, D'], positions [M]; the caches [capacity, K, D] and [capacity, K, D'] (kernels: D' = D) are
// updated at the rows that positions name. Generation only: nothing flows back.

#include "program/rules.h"

namespace snug {

namespace cached_attention_rule {

void check(const Program& program, const Op& op) {
  const Tensor& q = program.tensor(op.find(Slot::q));
  const Tensor& k = program.tensor(op.find(Slot::k));
  const Tensor& cache = program.tensor(op.find(Slot::key_cache));
  const Tensor& values = program.tensor(op.find(Slot::value_cache));
  expect(q.shape.size() == 4 && k.shape.size() == 4 && cache.shape.size() == 3, op, "q, k, v have four axes, caches three");
  const Tensor& v = program.tensor(op.find(Slot::v));
  expect(v.shape.size() == 4 && v.dim(1) == k.dim(1) && v.dim(2) == k.dim(2), op, "k and v agree");
  expect(q.dim(0) == 1 && k.dim(1) == q.dim(1) && k.dim(3) == q.dim(3), op, "q and k agree");
  expect(q.dim(2) % k.dim(2) == 0, op, "K divides H");
  expect(cache.dim(1) == k.dim(2) && cache.dim(2) == k.dim(3), op, "the cache has rows like k");
  expect(
      values.dim(0) == cache.dim(0) && values.dim(1) == v.dim(2) && values.dim(2) == v.dim(3) && values.dtype == cache.dtype,
      op, "the caches agree");
  expect(program.tensor(op.find(Slot::positions)).elements() == q.dim(1), op, "one position for each row");
}

// With a full cache: two products over all of it.
Work work(const Program& program, const Op& op) {
  const Tensor& q = program.tensor(op.find(Slot::q));
  const Tensor& cache = program.tensor(op.find(Slot::key_cache));
  const Tensor& values = program.tensor(op.find(Slot::value_cache));
  const Tensor& out = program.tensor(op.find(Slot::out));
  return {.flops = 2.0 * static_cast<double>(q.elements() + out.elements()) * static_cast<double>(cache.dim(0)),
          .bytes = static_cast<double>(cache.bytes() + values.bytes() + q.bytes() + out.bytes())};
}

}  // namespace cached_attention_rule

const OpRule rules::cached_attention = {.check = cached_attention_rule::check, .work = cached_attention_rule::work};

}  // namespace snug
