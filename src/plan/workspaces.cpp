#include "plan/workspaces.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "program/ops/cuda_workspace.h"
#include "program/ops/experts.h"
#include "program/ops/workspace.h"
#include "program/rules.h"

namespace snug {

namespace {

// Starting a team takes microseconds, and far more where other programs want the cores; the small ops of a generated token
// take less than that. A training step's ops are large.
int32_t threads_of(const Program& program, const Op& op, const OpRule& rule, int32_t threads) {
  constexpr double kWorthATeam = 65536;  // bytes or FLOPs
  if (program.generation.steps.empty() || rule.work == nullptr) return threads;
  const Work work = rule.work(program, op);
  return std::max(work.bytes, work.flops) < kWorthATeam ? 1 : threads;
}

}  // namespace

void fit_to_target(Program& program, const Target& target) {
  program.arithmetic = target.products;
  for_each_op(program.root, [&](Op& op, const Region&) {
    const OpRule& rule = rule_of(op.kind);
    const int32_t threads = threads_of(program, op, rule, target.threads);
    op.cut = rule.cut(program, op, threads);
    const int64_t bytes =
        target.kind == TargetKind::cuda ? cuda_workspace_bytes(program, op) : rule.workspace(program, op, threads);
    if (bytes == 0) return;
    op.writes(Slot::workspace,
              program.make(std::string(name_of(op.kind)) + ".workspace", DType::u8, {bytes}, Role::workspace));
  });
}

int64_t distinct_products(const Program& program) {
  std::set<std::tuple<int64_t, int64_t, int64_t, bool, bool, bool, double>> shapes;
  int64_t in_loss = 0;
  for_each_op(program.root, [&](const Op& op, const Region&) {
    if (op.kind == OpKind::head_loss && (op.cut.arithmetic == Arithmetic::fp32 || op.find(Slot::low) != kNone)) in_loss += 2;
    std::vector<ProductShape> products;
    if (op.kind == OpKind::matmul) products.push_back(product_shape(program, op));
    if (op.kind == OpKind::expert_matmul) products = expert_products(program, op);
    const auto parts = [](int64_t size, int64_t block) {
      std::set<int64_t> sizes;
      if (block == 0 || block >= size) return std::set<int64_t>{size};
      sizes.insert(block);
      if (size % block != 0) sizes.insert(size % block);
      return sizes;
    };
    for (const ProductShape& s : products) {
      if (s.arithmetic != Arithmetic::fp32) continue;  // no primitive of oneDNN
      for (int64_t m : parts(s.m, op.cut.rows))
        for (int64_t n : parts(s.n, op.cut.cols))
          for (int64_t k : parts(s.k, op.cut.depth))
            shapes.emplace(m, n, k, s.transpose_a, s.transpose_b, s.accumulate, op.attributes.scale);
    }
  });
  return static_cast<int64_t>(shapes.size()) + in_loss;
}

}  // namespace snug
