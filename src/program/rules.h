#pragma once
// The rule of an op kind, in four parts: shapes and bytes; adjoint; what recomputing costs; how it may be split. One file in
// `ops/` states one rule. Passes, the planner and the cost model ask rules; nothing else knows a kind.

#include <cstdint>

#include "program/op.h"
#include "program/program.h"

namespace snug {

class Adjoint;

// Needed work of one execution: multiply-adds count as 2; bytes are those of operands read and written once.
struct Work {
  double flops = 0;
  double bytes = 0;
};

// Worth recomputing? Rows cost one pass over memory; products cost FLOPs; host ops are never repeated.
enum class Recompute : uint8_t { cheap, costly, never };

// Along which axes an op may be split over devices.
struct Split {
  bool data = true;       // sequences
  bool sequence = false;  // tokens of one sequence
  bool tensor = false;    // columns or heads
  bool expert = false;
};

struct OpRule {
  OpKind kind;
  // Shapes and bytes: throws std::logic_error if operands disagree (a mistake in snug, never in its input).
  void (*check)(const Program& program, const Op& op);
  // Cut for so many threads, and workspace bytes (0: none).
  OpCut (*cut)(const Program& program, const Op& op, int32_t threads);
  int64_t (*workspace)(const Program& program, const Op& op, int32_t threads);
  Work (*work)(const Program& program, const Op& op);
  // Emits the ops that carry gradients from outputs to inputs; null: nothing flows through.
  void (*adjoint)(Adjoint& adjoint, const Op& op);
  Recompute recompute = Recompute::cheap;
  Split split;
};

const OpRule& rule_of(OpKind kind);

// Helpers for rules.
OpCut cut_by_rows(const Program& program, const Op& op, int32_t threads);     // static split of rows over threads
int64_t no_workspace(const Program& program, const Op& op, int32_t threads);  // 0
Work memory_work(const Program& program, const Op& op);                       // operand bytes, one FLOP an element moved
void expect(bool condition, const Op& op, const char* what);                  // throws std::logic_error

}  // namespace snug
