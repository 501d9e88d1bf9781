#include "plan/workspaces.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "program/rules.h"
#include "targets/cpu/products.h"
#include "targets/cpu/sizing.h"
#include "targets/cuda/workspace.h"

namespace snug {

namespace {

// Starting a team takes microseconds, and far more where other programs want the cores; the small ops of a generated token
// take less than that. A training step's ops are large.
int32_t threads_of(const Program& program, const Op& op, int32_t threads) {
  constexpr double kWorthATeam = 65536;  // bytes or FLOPs
  const Work work = rule_of(op.kind).work(program, op);
  return std::max(work.bytes, work.flops) < kWorthATeam ? 1 : threads;
}

cpu::Machine machine_of(const Program& program, const Op& op, const Target& target) {
  const bool generates = !program.generation.steps.empty();
  return {.threads = generates ? threads_of(program, op, target.threads) : target.threads,
          .products = target.products,
          .generates = generates};
}

}  // namespace

void fit_to_target(Program& program, const Target& target) {
  for (Storage& storage : program.storages)
    if (storage.home == Home::disk) storage.home = target.paged;
  for_each_op(program.root, [&](Op& op, const Region&) {
    if (run_by(op.kind) == RunBy::host) return;
    const cpu::Machine machine = machine_of(program, op, target);
    const OpView view = view_of(program, op);
    const cpu::OpSizing& sizing = cpu::sizing_of(op.kind);
    op.cut = sizing.cut(view, machine);
    const int64_t bytes = target.kind == TargetKind::cuda ? cuda::workspace_bytes(view) : sizing.workspace(view, machine);
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
    if (op.cut.arithmetic != Arithmetic::fp32) return;  // no primitive of oneDNN
    std::vector<ProductShape> products;
    if (op.kind == OpKind::matmul) products.push_back(product_shape(view_of(program, op)));
    if (op.kind == OpKind::expert_matmul) products = expert_products(view_of(program, op), {.products = Arithmetic::fp32});
    const auto parts = [](int64_t size, int64_t block) {
      std::set<int64_t> sizes;
      if (block == 0 || block >= size) return std::set<int64_t>{size};
      sizes.insert(block);
      if (size % block != 0) sizes.insert(size % block);
      return sizes;
    };
    for (const ProductShape& s : products) {
      for (int64_t m : parts(s.m, op.cut.rows))
        for (int64_t n : parts(s.n, op.cut.cols))
          for (int64_t k : parts(s.k, op.cut.depth))
            shapes.emplace(m, n, k, s.transpose_a, s.transpose_b, s.accumulate, op.attributes.scale);
    }
  });
  return static_cast<int64_t>(shapes.size()) + in_loss;
}

}  // namespace snug
