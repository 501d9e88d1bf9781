#include "program/rules.h"

#include <stdexcept>
#include <string>

namespace snug {

const OpRule& rule_of(OpKind kind) {
#define SNUG_RULE(kind, run_by, sizing) &rules::kind,
  static const OpRule* const kRules[] = {SNUG_OP_KINDS(SNUG_RULE)};
#undef SNUG_RULE
  return *kRules[static_cast<int>(kind)];
}

OpView view_of(const Program& program, const Op& op) {
  OpView view(op.kind, op.attributes, op.cut);
  for (const Operand& operand : op.operands) {
    const Tensor& tensor = program.tensor(operand.tensor);
    OperandView& added = view.add({.slot = operand.slot, .dtype = tensor.dtype, .elements = tensor.elements()});
    expect(tensor.shape.size() <= added.shape.size(), op, "operands have four axes at most");
    for (const Extent& extent : tensor.shape) added.shape[added.axes++] = extent.bound;
  }
  return view;
}

Work memory_work(const Program& program, const Op& op) {
  Work work;
  for (const Operand& operand : op.operands) {
    const auto bytes = static_cast<double>(program.tensor(operand.tensor).bytes());
    work.bytes += operand.access == Access::update ? 2 * bytes : bytes;
  }
  work.flops = work.bytes / 4;
  return work;
}

void expect(bool condition, const Op& op, const char* what) {
  if (!condition) throw std::logic_error(std::string(name_of(op.kind)) + ": " + what);
}

}  // namespace snug
