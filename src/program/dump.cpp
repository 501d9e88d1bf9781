#include "program/dump.h"

#include <fmt/format.h>

namespace snug {

namespace {

std::string shape_of(const Tensor& tensor) {
  std::string text;
  for (const Extent& extent : tensor.shape)
    text += (text.empty() ? "" : "x") + std::to_string(extent.bound) + (extent.count == kNone ? "" : "?");
  return text;
}

void dump_op(const Program& program, const Op& op, int depth, std::string& out) {
  out += fmt::format("{:{}}{}", "", depth * 2, name_of(op.kind));
  if (op.lane != Lane::compute) out += fmt::format(" @{}", name_of(op.lane));
  for (const Operand& operand : op.operands) {
    constexpr const char* kMarks[] = {"", ">", "+"};
    const Tensor& tensor = program.tensor(operand.tensor);
    out += fmt::format(" {}{}={}:{}[{}]", kMarks[static_cast<int>(operand.access)], name_of(operand.slot), tensor.name,
                       name_of(tensor.dtype), shape_of(tensor));
  }
  if (op.attributes.scale != 1.0) out += fmt::format(" scale={}", op.attributes.scale);
  if (op.attributes.first_column > 0) out += fmt::format(" from={}", op.attributes.first_column);
  if (op.attributes.ring_step >= 0) out += fmt::format(" step={}", op.attributes.ring_step);
  if (op.attributes.sigmoid_scores) out += " sigmoid";
  if (op.cut.rows + op.cut.cols + op.cut.depth > 0)
    out += fmt::format(" cut={}/{}/{}", op.cut.rows, op.cut.cols, op.cut.depth);
  if (in_bf16(op.cut.arithmetic)) out += op.cut.arithmetic == Arithmetic::bf16 ? " bf16" : " bf16-pieces";
  if (op.cut.arithmetic == Arithmetic::fp32_thin) out += " thin";
  if (op.cut.arithmetic == Arithmetic::fp32_dots) out += " dots";
  if (op.cut.apart) out += " apart";
  out += '\n';
}

void dump_region(const Program& program, const Region& region, int depth, std::string& out) {
  constexpr const char* kAxes[] = {"", " layers", " micro-batches", " chunks"};
  out += fmt::format("{:{}}{} ({})", "", depth * 2, region.name, name_of(region.stage));
  if (region.axis != Axis::none)
    out += fmt::format(" x {}{} from {}{}", region.count, kAxes[static_cast<int>(region.axis)], region.first,
                       region.reverse ? " reversed" : "");
  out += '\n';
  for (const Item& item : region.items) {
    if (const Op* op = item.op()) dump_op(program, *op, depth + 1, out);
    if (const Region* child = item.region()) dump_region(program, *child, depth + 1, out);
  }
}

}  // namespace

std::string dump(const Program& program) {
  std::string out;
  dump_region(program, program.root, 0, out);
  return out;
}

}  // namespace snug
