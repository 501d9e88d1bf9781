#include "run/executor.h"

#include <stdexcept>

#include "program/rules.h"

namespace snug {

namespace {

// Before anything is committed.
const Program& runnable(const Program& program, const kernels::Backend& backend) {
  for_each_op(program.root, [&](const Op& op, const Region&) {
    const RunBy by = run_by(op.kind);
    if (by == RunBy::backend || by == RunBy::nobody) kernels::require(backend, view_of(program, op));
  });
  return program;
}

}  // namespace

Executor::Executor(const Program& program, const Layout& layout, const std::filesystem::path& pages,
                   const kernels::Backend& backend)
    : program_(runnable(program, backend)),
      layout_(layout),
      backend_(backend),
      own_session_(backend.open()),
      session_(own_session_.get()),
      own_homes_(std::in_place, layout, pages),
      homes_(*own_homes_),
      transfer_(program, layout, homes_) {
  prepare_ops();
}

Executor::Executor(const Program& program, const Layout& layout, const Executor& owner)
    : program_(runnable(program, owner.backend_)),
      layout_(layout),
      backend_(owner.backend_),
      session_(owner.session_),
      homes_(owner.homes_),
      transfer_(program, layout, homes_) {
  if (!homes_.hold(layout)) throw std::logic_error("the layout does not fit in the homes of another run");
  prepare_ops();
}

void Executor::prepare_ops() {
  for_each_op(program_.root, [&](const Op& op, const Region& region) {
    if (run_by(op.kind) != RunBy::backend) return;
    const kernels::Kernel& kernel = *backend_.kernel(op.kind);
    if (kernel.prepare == nullptr) return;
    kernel.prepare(*session_,
                   bound_view(op, {program_, layout_, homes_.bases(), region.axis == Axis::layer ? region.first : 0}));
  });
}

double Executor::scalar(Scalar scalar) const {
  double value = 0;
  transfer_.read(program_.interface.scalars, static_cast<int64_t>(scalar), std::span(&value, 1));
  return value;
}

void Executor::set_scalar(Scalar scalar, double value) {
  transfer_.write(program_.interface.scalars, static_cast<int64_t>(scalar), std::span<const double>(&value, 1));
}

bool Executor::skipped(const Region& region) { return region.skip && scalar(static_cast<Scalar>(*region.skip)) != 0.0; }

void Executor::run(const Region& region, Host& host, int64_t repetitions) {
  if (skipped(region)) return;
  const int64_t count = region.axis == Axis::micro_batch && repetitions > 0 ? repetitions : region.count;
  for (int64_t iteration = 0; iteration < count; ++iteration) {
    if (region.axis == Axis::layer) layer_ = region.layer_of(iteration);
    if (region.axis == Axis::micro_batch) repetition_ = iteration;
    if (region.axis == Axis::chunk) {
      chunk_ = iteration;
      chunks_ = count;
    }
    run_body(region, host, repetitions);
  }
  if (region.axis == Axis::layer) layer_ = 0;
  if (region.axis == Axis::micro_batch) repetition_ = 0;
  if (region.axis == Axis::chunk) chunk_ = 0;
}

void Executor::run_body(const Region& region, Host& host, int64_t repetitions) {
  for (const Item& item : region.items) {
    if (const Region* child = item.region()) run(*child, host, repetitions);
    if (const Op* op = item.op()) run_op(*op, host);
  }
}

void Executor::run_op(const Op& op, Host& host) {
  const Binding binding{program_, layout_, homes_.bases(), layer_, chunk_};
  if (observer_ != nullptr) observer_->before(op, binding);
  switch (run_by(op.kind)) {
    case RunBy::host: host.run(op, repetition_); break;
    case RunBy::executor: run_page(op, binding); break;
    case RunBy::backend: backend_.kernel(op.kind)->run(*session_, bound_view(op, binding)); break;
    case RunBy::nobody: throw std::logic_error(std::string(name_of(op.kind)) + " is not run");
  }
  if (observer_ != nullptr) observer_->after(op, binding);
}

void Executor::run_apart(const Op& op, int64_t layer, std::span<std::byte> workspace) {
  OpView view = bound_view(op, {program_, layout_, homes_.bases(), layer});
  const auto bytes = static_cast<int64_t>(workspace.size());
  view.add({.slot = Slot::workspace,
            .dtype = DType::u8,
            .axes = 1,
            .shape = {bytes},
            .elements = bytes,
            .data = workspace.data()});
  backend_.kernel(op.kind)->run(*session_, view);
}

void Executor::run_page(const Op& op, const Binding& binding) {
  const TensorId far = op.find(Slot::far), window = op.find(Slot::window);
  const Home home = program_.home_of(far);
  const int64_t at = binding.offset(far), bytes = program_.tensor(window).bytes();
  const std::span<std::byte> memory(static_cast<std::byte*>(binding.address(window)), static_cast<size_t>(bytes));
  if (op.kind == OpKind::page_out) return homes_.write(home, at, memory);
  homes_.read(home, at, memory);
  if (chunk_ + 1 < chunks_) homes_.expect(home, at + program_.tensor(far).chunk_stride, bytes);
}

}  // namespace snug
