#include "plan/ranks.h"

#include "base/checked.h"
#include "base/even_part.h"

namespace snug {

namespace {

// In a ring (comm/ring.h): a sum of parts sends all but this rank's, then all but the next one's.
int64_t sent_by(const Program& program, const Op& op, int64_t of) {
  const int64_t ranks = op.attributes.ranks, rank = program.mesh.index(op.attributes.group, of);
  if (run_by(op.kind) != RunBy::ranks) return 0;
  const Tensor& x = program.tensor(op.find(Slot::x));
  if (op.kind == OpKind::all_gather) return checked_mul(ranks - 1, x.bytes());
  if (op.kind == OpKind::reduce_scatter) return checked_mul(ranks - 1, program.tensor(op.find(Slot::out)).bytes());
  if (op.kind == OpKind::send || op.kind == OpKind::pass_on) return x.bytes();
  if (op.kind != OpKind::all_reduce) return 0;
  const auto part = [&](int64_t place) { return even_part(x.elements(), ranks, place % ranks).elements; };
  return checked_mul(2 * x.elements() - part(rank) - part(rank + 1), size_of(x.dtype));
}

int64_t sent_in(const Program& program, const Region& region, int64_t rank) {
  int64_t sum = 0;
  for (const Item& item : region.items) {
    if (const Op* op = item.op()) sum = checked_add(sum, sent_by(program, *op, rank));
    if (const Region* child = item.region()) sum = checked_add(sum, sent_in(program, *child, rank));
  }
  return checked_mul(sum, region.count);
}

}  // namespace

int64_t sent_to_ranks(const Program& program, int64_t rank) {
  return program.mesh.ranks == 1 ? 0 : sent_in(program, program.region(Section::step), rank);
}

}  // namespace snug
