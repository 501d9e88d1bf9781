// The evaluation pass: a forward beside the step that keeps nothing for a backward.

#include "program/passes/evaluate.h"

#include <gtest/gtest.h>

#include <map>

#include "model/catalogue.h"
#include "program/compile.h"

namespace snug {

namespace {

std::map<OpKind, int64_t> kinds_of(const Region& region) {
  std::map<OpKind, int64_t> counts;
  for_each_op(region, [&](const Op& op, const Region&) { ++counts[op.kind]; });
  return counts;
}

Program compiled(const char* eval_data) {
  Recipe recipe;
  recipe.eval_data = eval_data;
  return compile(*find_model("SmolLM2-135M"), recipe);
}

TEST(Evaluate, runs_the_ops_of_the_forward_and_leaves_the_step_as_it_is) {
  const Program program = compiled("held_out.jsonl");
  auto kinds = kinds_of(program.region(Section::forward));
  ++kinds[OpKind::batch];
  EXPECT_EQ(kinds_of(program.region(Section::evaluate)), kinds);
  EXPECT_EQ(kinds_of(program.region(Section::step)), kinds_of(compiled("").region(Section::step)));
}

TEST(Evaluate, keeps_one_instance_of_all_it_writes) {
  const Program program = compiled("held_out.jsonl");
  for_each_op(program.region(Section::evaluate), [&](const Op& op, const Region& region) {
    EXPECT_EQ(region.stage, Stage::evaluate) << region.name;
    for (const Operand& operand : op.operands) {
      if (operand.access == Access::write) {
        EXPECT_EQ(program.storage(program.tensor(operand.tensor).storage).instances, 1) << name_of(op.kind);
      }
    }
  });
}

}  // namespace

}  // namespace snug
