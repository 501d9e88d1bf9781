// page_in, page_out: a chunk of a buffer in the far home, and the window in the arena through which ops see it. Nothing
// flows back through them.

#include "program/rules.h"

namespace snug {

namespace page_rule {

void check_page(const Program& program, const Op& op) {
  const Tensor& far = program.tensor(op.find(Slot::far));
  const Tensor& window = program.tensor(op.find(Slot::window));
  expect(program.storage(far.storage).home != Home::device, op, "pages lie in the far home");
  expect(program.storage(window.storage).home == Home::device, op, "a window lies in the arena");
  expect(far.bytes() == window.bytes() && far.dtype == window.dtype, op, "a window holds one chunk");
}

// What crosses the link.
Work page_work(const Program& program, const Op& op) {
  return {.flops = 0, .bytes = static_cast<double>(program.tensor(op.find(Slot::window)).bytes())};
}

}  // namespace page_rule

const OpRule rules::page_in = {.check = page_rule::check_page, .work = page_rule::page_work};
const OpRule rules::page_out = {.check = page_rule::check_page, .work = page_rule::page_work};

}  // namespace snug
