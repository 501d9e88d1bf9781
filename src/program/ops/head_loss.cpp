// head_loss: output head and cross entropy in one op, in chunks of target rows, so that no full logits tensor exists
// (Liger's fused linear cross entropy; Wijmans et al., "Cut Your Losses", 2024). hidden [M, C], weight [V, C], optionally
// LoRA's pair low [M, R], low_weight [V, R]. Its adjoint makes it write its gradients in the same pass, while the logits
// exist.

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace head_loss_rule {

void check(const Program& program, const Op& op) {
  const Tensor& hidden = program.tensor(op.find(Slot::hidden));
  expect(hidden.elements() % program.tensor(op.find(Slot::weight)).dim(1) == 0, op, "hidden has rows of C");
  expect((op.find(Slot::low) == kNone) == (op.find(Slot::low_weight) == kNone), op, "LoRA's pair comes together");
}

Work work(const Program& program, const Op& op) {  // of the bound: every row predicted
  const Tensor& weight = program.tensor(op.find(Slot::weight));
  const TensorId low_weight = op.find(Slot::low_weight);
  const int64_t cols = weight.dim(1), rank = low_weight == kNone ? 0 : program.tensor(low_weight).dim(1);
  const auto present = [&](Slot slot) { return op.find(slot) != kNone ? 1.0 : 0.0; };
  const double products = 1.0 + present(Slot::d_hidden) + present(Slot::d_weight);
  const int64_t count = program.tensor(op.find(Slot::hidden)).elements() / cols;
  const auto rows = static_cast<double>(count);
  const auto vocabulary = static_cast<double>(weight.dim(0));
  return {.flops = products * 2.0 * rows * vocabulary * static_cast<double>(cols + rank),
          .bytes = memory_work(program, op).bytes + products * 4.0 * rows * vocabulary};
}

void adjoint(Adjoint& adjoint, const Op& op) {
  Op training = op;
  constexpr Slot kWritten[2][2] = {{Slot::hidden, Slot::d_hidden}, {Slot::low, Slot::d_low}};
  for (const auto& [input, gradient] : kWritten) {
    const TensorId tensor = op.find(input);
    if (tensor == kNone || !adjoint.wanted(tensor)) continue;
    const auto destination = adjoint.destination(tensor);
    expect(!destination.accumulate, op, "the loss comes last");
    training.writes(gradient, destination.tensor);
  }
  constexpr Slot kSummed[2][2] = {{Slot::weight, Slot::d_weight}, {Slot::low_weight, Slot::d_low_weight}};
  for (const auto& [input, gradient] : kSummed) {
    const TensorId tensor = op.find(input);
    if (tensor != kNone && adjoint.wanted(tensor)) training.updates(gradient, adjoint.destination(tensor).tensor);
  }
  adjoint.emit(std::move(training));
}

}  // namespace head_loss_rule

const OpRule rules::head_loss = {
    .check = head_loss_rule::check, .work = head_loss_rule::work, .adjoint = head_loss_rule::adjoint};

}  // namespace snug
