#include "program/passes/dropout.h"

#include <algorithm>

#include "base/error.h"
#include "program/find_op.h"
#include "program/passes/clone.h"
#include "program/passes/list.h"

namespace snug {

namespace {

class DropoutPass {
 public:
  DropoutPass(Program& program, double p, uint64_t seed)
      : program_(program), forward_(program.region(Section::forward)), p_(p), seed_(seed) {}

  void run() {
    for (Linear& linear : program_.linears) drop(linear);
    drop(program_.head);
  }

 private:
  // Tensor made from x by a dropout op, and that op.
  Op draw(TensorId x, const char* end, bool complement) {
    const Tensor source = program_.tensor(x);
    Op op{OpKind::dropout};
    op.attributes = {.noise_seed = seed_, .noise_stream = stream_, .probability = p_, .complement = complement};
    op.reads(Slot::x, x).reads(Slot::scalars, program_.interface.scalars);
    const TensorId out = program_.make(source.name + end, source.dtype, source.shape, Role::temporary);
    program_.tensor(out).rank_group = source.rank_group;
    program_.tensor(out).rank_elements = source.rank_elements;
    op.writes(Slot::out, out);
    return op;
  }

  void drop(Linear& linear) {
    if (linear.adapter.down == kNone) return;
    const std::optional<Slice>& slice = program_.weights[static_cast<size_t>(linear.weight)].slice;
    if (slice &&
        slice->axis == (program_.weights[static_cast<size_t>(linear.weight)].parameter.input_features_first ? 0 : 1))
      throw Error("tp_size does not go with lora_dropout on modules that end attention or an MLP", "recipe",
                  "set lora_dropout: 0, or adapt the others");
    presume(linear.adapter.dropout == kNone, "an adapter without dropout");
    Operand& input = operand(find_op(forward_, linear.adapter.down).op(), Slot::a);
    presume(input.tensor == linear.input, "an adapter that reads what its module does");
    Op left = draw(linear.input, ".dropped", false);
    linear.adapter.dropout = program_.identify(left);
    input.tensor = left.find(Slot::out);
    const bool scaled = linear.adapter.scale != kNone;
    if (scaled) add_rest(linear, left.find(Slot::out));
    insert_before(find_op(forward_, scaled ? linear.product : linear.adapter.down), {std::move(left)});
    ++stream_;
  }

  // DoRA: the product that is scaled is of what dropout leaves; that of what it takes away is added unscaled.
  void add_rest(const Linear& linear, TensorId left) {
    Op& product = find_op(forward_, linear.product).op();
    const OpPlace scale = find_op(forward_, linear.adapter.scale);
    const Op& up = find_op(forward_, linear.adapter.up).op();
    presume(product.find(Slot::a) == linear.input && up.find(Slot::c) == product.find(Slot::c) &&
                scale.op().find(Slot::x) == product.find(Slot::c),
            "a product whose columns are scaled with what the adapter adds");
    Op rest = draw(linear.input, ".left_out", true);
    Op more = product;
    more.id = kNone;
    more.attributes.accumulate = true;
    operand(more, Slot::a).tensor = rest.find(Slot::out);
    operand(more, Slot::c) = {Slot::c, Access::update, scale.op().find(Slot::out)};
    operand(product, Slot::a).tensor = left;
    insert_after(scale, {std::move(rest), std::move(more)});
  }

  Program& program_;
  Region& forward_;
  double p_;
  uint64_t seed_, stream_ = 0;
};

bool reads_storage(const Program& program, const Op& op, StorageId storage) {
  return std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& operand) {
    return operand.access != Access::write && program.tensor(operand.tensor).storage == storage;
  });
}

}  // namespace

void add_dropout(Program& program, double p, uint64_t seed) {
  presume(program.count(Section::backward) == 0, "a forward that is not differentiated yet");
  if (p > 0) DropoutPass(program, p, seed).run();
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

void passes::dropout(Program& program, const StepRequest& request) {
  if (request.recipe.method == Method::lora) add_dropout(program, request.recipe.lora.dropout, request.recipe.seed);
}

}  // namespace snug
