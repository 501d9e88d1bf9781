// load, save, batch: the host's ops. They move bytes between files and the arena; nothing flows back through them.

#include "program/rules.h"

namespace snug {

namespace {

void check_staging(const Program& program, const Op& op) {
  const TensorId staging = op.find(Slot::staging);
  expect(staging == kNone || program.tensor(staging).dtype == DType::u8, op, "staging is bytes");
}

}  // namespace

extern const OpRule kLoadRule, kSaveRule, kBatchRule;
const OpRule kLoadRule = {OpKind::load, check_staging, cut_by_rows,      no_workspace,
                          memory_work,  nullptr,       Recompute::never, {.data = false}};
const OpRule kSaveRule = {OpKind::save, check_staging, cut_by_rows,      no_workspace,
                          memory_work,  nullptr,       Recompute::never, {.data = false}};
const OpRule kBatchRule = {OpKind::batch, check_staging, cut_by_rows,      no_workspace,
                           memory_work,   nullptr,       Recompute::never, {}};

}  // namespace snug
