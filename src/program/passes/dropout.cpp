#include "program/passes/dropout.h"

#include <algorithm>
#include <set>

#include "program/passes/clone.h"

namespace snug {

namespace {

class DropoutPass {
 public:
  DropoutPass(Program& program, double p, uint64_t seed) : program_(program), p_(p), seed_(seed) {
    for (const Weight& weight : program.weights)
      if (weight.origin == Origin::lora_a) lora_a_.insert(weight.tensor);
  }

  void run(Region& region) {
    for (size_t i = 0; i < region.items.size(); ++i) {
      if (Region* child = region.items[i].region()) run(*child);
      const Op* op = region.items[i].op();
      if (op != nullptr && op->kind == OpKind::matmul && lora_a_.contains(op->find(Slot::b))) i = drop_before(region, i);
    }
  }

 private:
  static Operand& operand(Op& op, Slot slot) {
    return *std::find_if(op.operands.begin(), op.operands.end(), [slot](const Operand& o) { return o.slot == slot; });
  }

  // Tensor made from x by a dropout op, and that op.
  Op draw(TensorId x, const char* end, bool complement) {
    const Tensor source = program_.tensor(x);
    Op op{OpKind::dropout};
    op.attributes = {.noise_seed = seed_, .noise_stream = stream_, .probability = p_, .complement = complement};
    op.reads(Slot::x, x).reads(Slot::scalars, program_.interface.scalars);
    op.writes(Slot::out, program_.make(source.name + end, source.dtype, source.shape, Role::temporary));
    return op;
  }

  // Where DoRA scales what this adapter adds to; the region's end if it does not.
  static size_t find_scaling(const Region& region, size_t low_product) {
    const Op* up = low_product + 1 < region.items.size() ? region.items[low_product + 1].op() : nullptr;
    for (size_t i = low_product + 1; up != nullptr && up->kind == OpKind::matmul && i < region.items.size(); ++i) {
      const Op* op = region.items[i].op();
      if (op != nullptr && op->kind == OpKind::scale_columns && op->find(Slot::x) == up->find(Slot::c)) return i;
    }
    return region.items.size();
  }

  // Returns the index of the last op of this adapter that was looked at.
  size_t drop_before(Region& region, size_t low_product) {
    const TensorId x = region.items[low_product].op()->find(Slot::a);
    Op left = draw(x, ".dropped", false);
    const TensorId dropped = left.find(Slot::out);
    operand(*region.items[low_product].op(), Slot::a).tensor = dropped;
    size_t first = low_product;
    if (const size_t scaling = find_scaling(region, low_product); scaling < region.items.size()) {
      first = low_product - 1;  // the product with the frozen weight
      Op rest = draw(x, ".left_out", true);
      Op more = *region.items[first].op();
      more.attributes.accumulate = true;
      operand(more, Slot::a).tensor = rest.find(Slot::out);
      operand(more, Slot::c) = {Slot::c, Access::update, region.items[scaling].op()->find(Slot::out)};
      operand(*region.items[first].op(), Slot::a).tensor = dropped;
      const auto after = region.items.begin() + static_cast<int64_t>(scaling) + 1;
      region.items.insert(after, {Item{std::move(rest)}, Item{std::move(more)}});
    }
    region.items.insert(region.items.begin() + static_cast<int64_t>(first), Item{std::move(left)});
    ++stream_;
    return low_product + 1;
  }

  Program& program_;
  double p_;
  uint64_t seed_, stream_ = 0;
  std::set<TensorId> lora_a_;
};

bool reads_storage(const Program& program, const Op& op, StorageId storage) {
  return std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& operand) {
    return operand.access != Access::write && program.tensor(operand.tensor).storage == storage;
  });
}

}  // namespace

void add_dropout(Program& program, double p, uint64_t seed) {
  if (p > 0) DropoutPass(program, p, seed).run(program.region(Section::forward));
}

void draw_again_in_backward(Program& program, const Region& forward, Region& backward) {
  for (const Item& item : forward.items) {
    const Op* op = item.op();
    if (op == nullptr || op->kind != OpKind::dropout) continue;
    const StorageId kept = program.tensor(op->find(Slot::out)).storage;
    const auto reader = std::find_if(backward.items.begin(), backward.items.end(), [&](const Item& i) {
      return i.op() != nullptr && reads_storage(program, *i.op(), kept);
    });
    if (reader == backward.items.end()) continue;
    const auto at = reader - backward.items.begin();
    Clones clones(program, {kept});
    clones.rename(backward);
    Op again = *op;
    clones.rename(again);
    backward.items.insert(backward.items.begin() + at, Item{std::move(again)});
  }
}

}  // namespace snug
