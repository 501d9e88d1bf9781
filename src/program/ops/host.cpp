// load, save, batch, fetch: the host's ops. They move bytes between the host and the arena; nothing flows back through them.
// turn: the host says which micro-batch it is.

#include "program/rules.h"

namespace snug {

namespace host_rule {

void check_staging(const Program& program, const Op& op) {
  const TensorId staging = op.find(Slot::staging);
  expect(staging == kNone || program.tensor(staging).dtype == DType::u8, op, "staging is bytes");
}

}  // namespace host_rule

const OpRule rules::load = {.check = host_rule::check_staging, .work = memory_work};
const OpRule rules::save = {.check = host_rule::check_staging, .work = memory_work};
const OpRule rules::batch = {.check = host_rule::check_staging, .work = memory_work};
const OpRule rules::fetch = {.check = host_rule::check_staging, .work = memory_work};
const OpRule rules::turn = {.check = host_rule::check_staging, .work = memory_work};

}  // namespace snug
