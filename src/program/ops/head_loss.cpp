// head_loss: output head and cross entropy in one op, in chunks of target rows, so that no full logits tensor exists
// (Liger's fused linear cross entropy; Wijmans et al., "Cut Your Losses", 2024). hidden [M, C], weight [V, C], optionally
// LoRA's pair low [M, R], low_weight [V, R]. Its adjoint makes it write its gradients in the same pass, while the logits
// exist.

#include "program/adjoint.h"
#include "program/ops/workspace.h"
#include "program/rules.h"

namespace snug {

namespace {

HeadShape head_shape(const Program& program, const Op& op) {
  const Tensor& hidden = program.tensor(op.find(Slot::hidden));
  const Tensor& weight = program.tensor(op.find(Slot::weight));
  HeadShape shape{.rows = hidden.elements() / weight.dim(1), .cols = weight.dim(1), .vocabulary = weight.dim(0)};
  if (op.find(Slot::low) != kNone) {
    const Tensor& low_weight = program.tensor(op.find(Slot::low_weight));
    shape.rank = low_weight.dim(1);
    shape.low = program.tensor(op.find(Slot::low)).dtype;
    shape.low_weight = low_weight.dtype;
  }
  shape.hidden = hidden.dtype;
  shape.weight = weight.dtype;
  shape.training = op.find(Slot::d_hidden) != kNone;
  shape.weight_trained = op.find(Slot::d_weight) != kNone;
  shape.low_trained = op.find(Slot::d_low_weight) != kNone;
  if (shape.weight == shape.hidden) shape.arithmetic = half_arithmetic(shape.hidden, shape.weight, program.arithmetic);
  return shape;
}

void check(const Program& program, const Op& op) {
  const Tensor& hidden = program.tensor(op.find(Slot::hidden));
  expect(hidden.elements() % program.tensor(op.find(Slot::weight)).dim(1) == 0, op, "hidden has rows of C");
  expect((op.find(Slot::low) == kNone) == (op.find(Slot::low_weight) == kNone), op, "LoRA's pair comes together");
}

OpCut cut(const Program& program, const Op& op, int32_t threads) {
  const HeadShape shape = head_shape(program, op);
  const Blocks blocks = head_loss_blocks(shape, threads);
  return {.threads = threads, .rows = blocks.rows, .cols = blocks.cols, .arithmetic = shape.arithmetic};
}

int64_t workspace(const Program& program, const Op& op, int32_t threads) {
  return head_loss_workspace_bytes(head_shape(program, op), threads);
}

Work work(const Program& program, const Op& op) {  // of the bound: every row predicted
  const HeadShape shape = head_shape(program, op);
  const double products = 1.0 + (shape.training ? 1.0 : 0.0) + (shape.weight_trained ? 1.0 : 0.0);
  const auto rows = static_cast<double>(shape.rows);
  const auto vocabulary = static_cast<double>(shape.vocabulary);
  return {.flops = products * 2.0 * rows * vocabulary * static_cast<double>(shape.cols + shape.rank),
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

}  // namespace

extern const OpRule kHeadLossRule;
const OpRule kHeadLossRule = {OpKind::head_loss, check, cut, workspace, work, adjoint, Recompute::never, {.tensor = true}};

}  // namespace snug
