#include "run/lookahead.h"

#include <algorithm>

namespace snug {

namespace {

class Search {
 public:
  Search(const Program& program, const Region& region, size_t place)
      : program_(program),
        region_(region),
        place_(place),
        fetch_(*region.items[place].op()),
        window_(program.tensor(fetch_.find(fetch_.kind == OpKind::page_in ? Slot::window : Slot::out))),
        source_(program.tensor(fetch_.find(fetch_.kind == OpKind::page_in ? Slot::far : Slot::x))) {}

  void into(Lookahead& found) const {
    const bool loop = region_.count > 1 && (region_.axis == Axis::layer || region_.axis == Axis::chunk);
    if (loop && takes_turns()) {  // its part of the memory was last used two iterations ago
      found.at_entry.push_back(&fetch_);
      found.at_begin.push_back({&fetch_, true});
      return;
    }
    for (size_t i = place_; i-- > 0;)
      if (uses(region_.items[i])) return found.after_item[i].push_back({&fetch_, false});
    if (!loop) return found.at_begin.push_back({&fetch_, false});
    found.at_entry.push_back(&fetch_);
    for (size_t i = region_.items.size(); --i > place_;)
      if (uses(region_.items[i])) return found.after_item[i].push_back({&fetch_, true});
    found.at_begin.push_back({&fetch_, true});
  }

 private:
  bool takes_turns() const { return (region_.axis == Axis::layer ? window_.layer_turns : window_.chunk_turns) > 1; }

  // The same bytes in every iteration.
  static bool stays(const Tensor& tensor) {
    return !tensor.instance_by_layer && tensor.layer_stride == 0 && tensor.chunk_stride == 0;
  }

  bool uses(const Op& op) const {
    return std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& operand) {
      const StorageId storage = program_.tensor(operand.tensor).storage;
      return storage == window_.storage || (storage == source_.storage && operand.access != Access::read && stays(source_));
    });
  }

  bool uses(const Item& item) const {
    if (const Op* op = item.op()) return uses(*op);
    bool found = false;
    for_each_op(*item.region(), [&](const Op& op, const Region&) { found = found || uses(op); });
    return found;
  }

  const Program& program_;
  const Region& region_;
  const size_t place_;
  const Op& fetch_;
  const Tensor &window_, &source_;
};

void look(const Program& program, const Region& region, Lookaheads& found) {
  Lookahead here;
  here.after_item.resize(region.items.size());
  bool any = false;
  for (size_t i = 0; i < region.items.size(); ++i) {
    if (const Region* child = region.items[i].region()) look(program, *child, found);
    if (const Op* op = region.items[i].op(); op != nullptr && is_fetch(*op)) {
      Search(program, region, i).into(here);
      any = true;
    }
  }
  if (any) found.emplace(&region, std::move(here));
}

}  // namespace

bool is_fetch(const Op& op) {
  return op.kind == OpKind::page_in || (op.kind == OpKind::all_gather && op.lane == Lane::comm);
}

Lookaheads lookaheads_of(const Program& program) {
  Lookaheads found;
  look(program, program.root, found);
  return found;
}

}  // namespace snug
