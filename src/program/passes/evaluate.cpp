#include "program/passes/evaluate.h"

#include "program/find_op.h"
#include "program/passes/clone.h"
#include "program/passes/list.h"

namespace snug {

void add_evaluation(Program& program) {
  presume(program.count(Section::backward) + program.count(Section::evaluate) == 0, "a forward that keeps nothing");
  std::set<StorageId> written;
  const Region& micro_batch = program.region(Section::micro_batch);
  for_each_op(micro_batch, [&](const Op& op, const Region&) {
    presume(op.kind != OpKind::dropout, "a forward without dropout");
    for (const Operand& operand : op.operands)
      if (operand.access == Access::write &&
          program.storage(program.tensor(operand.tensor).storage).lifetime == Lifetime::computed)
        written.insert(program.tensor(operand.tensor).storage);
  });

  Region evaluate{.name = "evaluate", .section = Section::evaluate, .stage = Stage::evaluate};
  const Region batch = program.region(Section::batch);
  const Region forward = program.region(Section::forward);
  for (const Region& part : {batch, forward}) {
    Region copy = part;
    copy.name = "evaluate." + part.name;
    copy.section = Section::other;
    evaluate.add(std::move(copy));
  }
  Clones clones(program, written);
  clones.rename(evaluate);
  for (Item& item : evaluate.items) {
    item.region()->stage = Stage::evaluate;
    for (Item& inner : item.region()->items)
      if (Region* loop = inner.region()) {
        loop->stage = Stage::evaluate;
        loop->section = Section::other;
        loop->name = "evaluate." + loop->name;
        loop->carries.clear();
      }
  }

  // The residual stream is one buffer here: each block adds to it in place.
  Interface& io = program.evaluation;
  io = program.interface;
  for (TensorId* id : {&io.tokens, &io.positions, &io.document_start, &io.target_rows, &io.target_tokens})
    *id = clones.of(*id);
  const int64_t rows = program.tensor(io.tokens).elements();
  if (program.loss == kNone) {  // a later stage has it
    program.root.add(std::move(evaluate));
    return;
  }
  io.predictions = program.make("predictions", DType::i32, {rows}, Role::batch, Lifetime::run);
  Op& loss = find_op(evaluate, program.loss).op();
  loss.writes(Slot::predictions, io.predictions);
  loss.reads(Slot::document_start, io.document_start);  // for the host, which counts documents when the region has run
  program.root.add(std::move(evaluate));
}

void passes::evaluate(Program& program, const StepRequest& request) {
  if (evaluates(request.recipe)) add_evaluation(program);
}

}  // namespace snug
