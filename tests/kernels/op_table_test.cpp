// Every kind of op, shape by shape and dtype by dtype, on the built-in backend and on plain fp64 loops that are opened
// beside it: both are handed the same numbers, and give the same results.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/cpu_features.h"
#include "kernels/backend.h"
#include "kernels/support_op_table.h"
#include "targets/cpu/sizing.h"

namespace snug::tests {
namespace {

const kernels::Backend& fp64() {
  static const kernels::Backend& backend = kernels::open_backend(SNUG_FP64_BACKEND);
  return backend;
}

// Sizes that the CPU's target would dictate.
struct Sized {
  OpCut cut;
  int64_t workspace = 0;
};
Sized sized(const TableCase& of, TableMemory& memory) {
  constexpr int32_t kThreads = 2;
  const OpCut none;
  const OpView view = memory.view(none, 0);
  const cpu::Machine machine{.threads = kThreads, .products = of.products};
  const cpu::OpSizing& sizing = cpu::sizing_of(of.kind);
  return {sizing.cut(view, machine), sizing.workspace(view, machine)};
}

void run(const kernels::Backend& backend, kernels::Session& session, const OpView& op) {
  const kernels::Kernel& kernel = *backend.kernel(op.kind);
  kernels::require(backend, op);
  if (kernel.prepare != nullptr) kernel.prepare(session, op);
  kernel.run(session, op);
}

// What a result may be off by, as a share of it: one step of its dtype, since both sides round, and of sums in fp32 (of f16
// taken as two pieces of bf16, which together are no less exact than f16).
double tolerance(const OpCut& cut, DType dtype) {
  if (dtype == DType::bf16) return 0x1p-7;
  return dtype == DType::f16 || cut.arithmetic == Arithmetic::bf16_pieces ? 0x1p-10 : 1e-5;
}

// … and of the largest beside it: a few roundings of sums whose terms are of its size.
constexpr double kOfLargest = 0x1p-19;

void expect_same(const TableCase& of, const OpCut& cut, const TableMemory& actual, const TableMemory& expected) {
  for (size_t index = 0; index < of.operands.size(); ++index) {
    const TableOperand& operand = of.operands[index];
    if (!operand.result) continue;
    const std::vector<double> a = actual.numbers(index), b = expected.numbers(index);
    double largest = 0;
    for (const double value : b) largest = std::max(largest, std::abs(value));
    const double most = operand.dtype == DType::i32 ? 0.0 : tolerance(cut, operand.dtype);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_LE(std::abs(a[i] - b[i]), most * std::abs(b[i]) + (most > 0 ? std::max(kOfLargest, most / 20) : 0) * largest)
          << of.name << ": " << name_of(operand.slot) << " at " << i << " is " << a[i] << ", not " << b[i];
  }
}

TEST(OpTable, HasEveryKindThatABackendRuns) {
  std::set<OpKind> kinds;
  for (const TableCase& of : op_table()) kinds.insert(of.kind);
  for (const OpKind kind : kOpKinds) {
    EXPECT_EQ(kinds.contains(kind), run_by(kind) == RunBy::backend) << name_of(kind);
    EXPECT_EQ(fp64().kernel(kind) != nullptr, run_by(kind) == RunBy::backend) << name_of(kind);
  }
}

TEST(OpTable, TheCpuGivesWhatFp64LoopsGive) {
  const kernels::Backend& cpu = kernels::built_in_backend();
  const auto session = cpu.open(), plain = fp64().open();
  int64_t cases = 0;
  for (const TableCase& of : op_table()) {
    if (of.products != Arithmetic::fp32 && !multiplies_bf16()) continue;
    TableMemory ours(of), truth(of);
    const Sized size = sized(of, ours);
    ASSERT_NO_THROW(run(cpu, *session, ours.view(size.cut, size.workspace))) << of.name;
    ASSERT_NO_THROW(run(fp64(), *plain, truth.view(size.cut, size.workspace))) << of.name;
    ASSERT_NO_FATAL_FAILURE(expect_same(of, size.cut, ours, truth));
    ++cases;
  }
  EXPECT_GT(cases, 500);
}

}  // namespace
}  // namespace snug::tests
