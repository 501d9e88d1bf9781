// load, save, batch, fetch: the host's ops. They move bytes between the host and the arena; nothing flows back through them.

#include "program/rules.h"

namespace snug {

namespace {

void check_staging(const Program& program, const Op& op) {
  const TensorId staging = op.find(Slot::staging);
  expect(staging == kNone || program.tensor(staging).dtype == DType::u8, op, "staging is bytes");
}

}  // namespace

const OpRule rules::load = {.check = check_staging, .work = memory_work};
const OpRule rules::save = {.check = check_staging, .work = memory_work};
const OpRule rules::batch = {.check = check_staging, .work = memory_work};
const OpRule rules::fetch = {.check = check_staging, .work = memory_work};

}  // namespace snug
