#pragma once
// The rule of an op kind, whatever runs it: which shapes go together, needed work, adjoint. One file in `ops/` states one
// rule or a few that belong together. How an op is cut and what workspace it takes is for targets to say (`targets/`).

#include <cstdint>

#include "op/view.h"
#include "program/op.h"
#include "program/program.h"

namespace snug {

class Adjoint;

// Needed work of one execution: multiply-adds count as 2; bytes are those of operands read and written once.
struct Work {
  double flops = 0;
  double bytes = 0;
};

struct OpRule {
  // Shapes and bytes: throws std::logic_error if operands disagree (a mistake in snug, never in its input).
  void (*check)(const Program& program, const Op& op) = nullptr;
  Work (*work)(const Program& program, const Op& op) = nullptr;
  // Emits the ops that carry gradients from outputs to inputs; null: nothing flows through.
  void (*adjoint)(Adjoint& adjoint, const Op& op) = nullptr;
};

const OpRule& rule_of(OpKind kind);

// Each is defined in its file.
namespace rules {
#define SNUG_RULE(kind, run_by, sizing) extern const OpRule kind;
SNUG_OP_KINDS(SNUG_RULE)
#undef SNUG_RULE
}  // namespace rules

// The op with its operands' dtypes and sizes, without addresses.
OpView view_of(const Program& program, const Op& op);

// Helpers for rules.
Work memory_work(const Program& program, const Op& op);       // operand bytes, one FLOP an element moved
void expect(bool condition, const Op& op, const char* what);  // throws std::logic_error

}  // namespace snug
