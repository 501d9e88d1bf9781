#include "program/find_op.h"

#include <algorithm>
#include <iterator>

namespace snug {

namespace {

void find_below(Region& region, OpId id, std::vector<OpPlace>& found) {
  for (size_t i = 0; i < region.items.size(); ++i) {
    if (Region* child = region.items[i].region()) find_below(*child, id, found);
    if (const Op* op = region.items[i].op(); op != nullptr && op->id == id) found.push_back({&region, i});
  }
}

void insert(Region& region, size_t item, std::vector<Op> ops) {
  std::vector<Item> items;
  for (Op& op : ops) items.push_back({std::move(op)});
  region.items.insert(region.items.begin() + static_cast<int64_t>(item), std::make_move_iterator(items.begin()),
                      std::make_move_iterator(items.end()));
}

}  // namespace

OpPlace find_op(Region& region, OpId id) {
  presume(id != kNone, "an op with an id");
  std::vector<OpPlace> found;
  find_below(region, id, found);
  presume(found.size() == 1, "one op of id " + std::to_string(id) + " in " + region.name);
  return found.front();
}

void insert_before(const OpPlace& place, std::vector<Op> ops) { insert(*place.region, place.item, std::move(ops)); }

void insert_after(const OpPlace& place, std::vector<Op> ops) { insert(*place.region, place.item + 1, std::move(ops)); }

void erase(const OpPlace& place) {
  place.region->items.erase(place.region->items.begin() + static_cast<int64_t>(place.item));
}

Operand& operand(Op& op, Slot slot) {
  const auto found =
      std::find_if(op.operands.begin(), op.operands.end(), [slot](const Operand& o) { return o.slot == slot; });
  presume(found != op.operands.end(), std::string(name_of(op.kind)) + " with " + name_of(slot));
  return *found;
}

}  // namespace snug
