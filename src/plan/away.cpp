#include "plan/away.h"

#include "program/rules.h"

namespace snug {

namespace {

void add_traffic(const Program& program, const Region& region, int64_t runs, Away& away) {
  const int64_t iterations = checked_mul(runs, region.count);
  for (const Item& item : region.items) {
    if (const Region* child = item.region()) add_traffic(program, *child, iterations, away);
    const Op* op = item.op();
    if (op == nullptr || run_by(op->kind) != RunBy::executor) continue;
    const int64_t bytes = checked_mul(program.tensor(op->find(Slot::window)).bytes(), iterations);
    int64_t& sum = op->kind == OpKind::page_in ? away.fetched : away.sent;
    sum = checked_add(sum, bytes);
  }
}

}  // namespace

Away away_of(const Program& program, const Layout& layout) {
  Away away;
  for (size_t i = 0; i < program.storages.size(); ++i) {
    const Storage& storage = program.storages[i];
    if (storage.home == Home::device || storage.lifetime != Lifetime::run) continue;
    away.bytes[static_cast<size_t>(storage.role)] += checked_mul(layout.stride[i], storage.instances);
  }
  for (const Home home : {Home::pinned, Home::host, Home::disk})
    for (const Life& life : layout.timeline.lives)
      if (life.is_alive(home, layout.of(home).peak_time))
        away.bytes[static_cast<size_t>(program.storage(life.storage).role)] += life.bytes;
  if (program.count(Section::step) == 1) add_traffic(program, program.region(Section::step), 1, away);
  return away;
}

}  // namespace snug
