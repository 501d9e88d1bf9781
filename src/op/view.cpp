#include "op/view.h"

#include <stdexcept>
#include <string>

namespace snug {

OperandView& OpView::add(const OperandView& operand) {
  if (count_ == operands_.size()) throw std::logic_error(std::string(name_of(kind)) + " has more operands than a view");
  return operands_[count_++] = operand;
}

void OpView::refuse_absent(Slot slot) const {
  throw std::logic_error(std::string(name_of(kind)) + " has no " + name_of(slot));
}

}  // namespace snug
