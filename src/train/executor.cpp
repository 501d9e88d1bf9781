#include "train/executor.h"

#include <cstring>
#include <stdexcept>

namespace snug {

namespace {

bool is_host_op(const Op& op) { return op.kind == OpKind::load || op.kind == OpKind::save || op.kind == OpKind::batch; }

}  // namespace

Executor::Executor(const Program& program, const Layout& layout)
    : program_(program),
      layout_(layout),
      own_arena_(std::in_place, layout.arena_bytes),
      arena_(own_arena_->data()),
      arena_bytes_(own_arena_->bytes()) {
  prepare_ops();
}

Executor::Executor(const Program& program, const Layout& layout, const Executor& owner)
    : program_(program), layout_(layout), arena_(owner.arena_), arena_bytes_(owner.arena_bytes_) {
  if (layout.arena_bytes > arena_bytes_) throw std::logic_error("the layout does not fit in the arena");
  prepare_ops();
}

void Executor::prepare_ops() {
  for_each_op(program_.root, [&](const Op& op, const Region& region) {
    prepare(op, {program_, layout_, arena_, region.axis == Axis::layer ? region.first : 0});
  });
}

double& Executor::scalar(Scalar scalar) { return elements<double>(program_.interface.scalars)[static_cast<size_t>(scalar)]; }

void Executor::clear(StorageId storage) {
  std::memset(arena_ + layout_.offset_of(storage, 0), 0, static_cast<size_t>(program_.storage(storage).bytes));
}

bool Executor::skipped(const Region& region) { return region.skip && scalar(static_cast<Scalar>(*region.skip)) != 0.0; }

void Executor::run(const Region& region, Host& host, int64_t repetitions) {
  if (skipped(region)) return;
  const int64_t count = region.axis == Axis::micro_batch && repetitions > 0 ? repetitions : region.count;
  for (int64_t iteration = 0; iteration < count; ++iteration) {
    if (region.axis == Axis::layer) layer_ = region.layer_of(iteration);
    if (region.axis == Axis::micro_batch) repetition_ = iteration;
    run_body(region, host, repetitions);
  }
  if (region.axis == Axis::layer) layer_ = 0;
  if (region.axis == Axis::micro_batch) repetition_ = 0;
}

void Executor::run_body(const Region& region, Host& host, int64_t repetitions) {
  for (const Item& item : region.items) {
    if (const Region* child = item.region()) run(*child, host, repetitions);
    if (const Op* op = item.op()) run_op(*op, host);
  }
}

void Executor::run_op(const Op& op, Host& host) {
  const Binding binding{program_, layout_, arena_, layer_};
  if (observer_ != nullptr) observer_->before(op, binding);
  if (is_host_op(op)) {
    host.run(op, repetition_);
  } else {
    dispatch(op, binding);
  }
  if (observer_ != nullptr) observer_->after(op, binding);
}

}  // namespace snug
