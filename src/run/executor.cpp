#include "run/executor.h"

#include <algorithm>
#include <stdexcept>

#include "program/rules.h"
#include "run/code_pages.h"

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
      transfer_(program, layout, homes_),
      lanes_(homes_),
      lookaheads_(lookaheads_of(program)),
      turns_(static_cast<size_t>(program.mesh.chunks)) {
  prepare_ops(program_.root, 0);
}

Executor::Executor(const Program& program, const Layout& layout, const Executor& owner)
    : program_(runnable(program, owner.backend_)),
      layout_(layout),
      backend_(owner.backend_),
      session_(owner.session_),
      homes_(owner.homes_),
      transfer_(program, layout, homes_),
      lanes_(homes_),
      lookaheads_(lookaheads_of(program)),
      turns_(static_cast<size_t>(program.mesh.chunks)) {
  if (!homes_.hold(layout)) throw std::logic_error("the layout does not fit in the homes of another run");
  prepare_ops(program_.root, 0);
}

// With the views of the first layer that runs them.
void Executor::prepare_ops(const Region& region, int64_t layer) {
  if (region.axis == Axis::layer) layer = region.layer_of(0);
  for (const Item& item : region.items) {
    if (const Region* child = item.region()) prepare_ops(*child, layer);
    const Op* const op = item.op();
    if (op == nullptr || run_by(op->kind) != RunBy::backend) continue;
    const kernels::Kernel& kernel = *backend_.kernel(op->kind);
    if (kernel.prepare != nullptr) kernel.prepare(*session_, bound_view(*op, {program_, layout_, homes_.bases(), layer}));
  }
}

void Executor::commit() {
  shrink_code_pages();
  homes_.commit();
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

// Empty while somebody looks.
const Lookahead* Executor::lookahead_of(const Region& region) const {
  if (observer_ != nullptr) return nullptr;
  const auto found = lookaheads_.find(&region);
  return found == lookaheads_.end() ? nullptr : &found->second;
}

std::optional<Binding> Executor::binding_of(const Region& region, int64_t iteration, int64_t count) const {
  if (iteration >= count) return std::nullopt;
  Binding binding = here();
  if (region.axis == Axis::layer) binding.layer = region.layer_of(iteration);
  if (region.axis == Axis::chunk) binding.chunk = iteration;
  return binding;
}

void Executor::run(const Region& region, Host& host, int64_t repetitions) {
  if (skipped(region)) return;
  const int64_t count = count_of(region, repetitions);
  take_turn(region);
  ++depth_;
  for (int64_t iteration = 0; iteration < count; ++iteration) {
    const Binding binding = *binding_of(region, iteration, count);
    layer_ = binding.layer;
    chunk_ = binding.chunk;
    if (region.axis == Axis::micro_batch) repetition_ = iteration;
    if (const Lookahead* ahead = lookahead_of(region); ahead != nullptr && iteration == 0)
      for (const Op* op : ahead->at_entry) begin(*op, binding);
    run_body(region, host, repetitions, binding_of(region, iteration + 1, count));
  }
  lanes_.wait_for_depth(depth_);  // lanes meet where a region ends
  if (comm_ != nullptr) comm_->wait_for_depth(depth_);
  --depth_;
  if (comm_ != nullptr && depth_ == 0) comm_->wait_for_depth(0);  // what was sent has come where it goes
  if (region.axis == Axis::layer) layer_ = 0;
  if (region.axis == Axis::micro_batch) repetition_ = turn_ = 0;
  transfer_.set_turn(turn_);
  if (region.axis == Axis::chunk) chunk_ = 0;
}

int64_t Executor::count_of(const Region& region, int64_t repetitions) const {
  const bool in_rounds = program_.mesh.chunks > 1;  // of which none is left out
  if (region.axis != Axis::micro_batch || repetitions == 0 || in_rounds) return region.count;
  switch (region.section) {
    case Section::warm_up:
    case Section::cool_down: return std::min(region.count, repetitions);
    case Section::steady: return std::max<int64_t>(0, repetitions - (program_.micro_batches - region.count));
    default: return repetitions;
  }
}

// Which micro-batch a region is of, where several are on their way.
void Executor::take_turn(const Region& region) {
  if (region.section == Section::micro_batch) std::fill(turns_.begin(), turns_.end(), Turns{});
  if (region.turn == Turn::none) return;
  Turns& turns = turns_.at(static_cast<size_t>(region.index));
  turn_ = repetition_ = region.turn == Turn::ahead ? turns.begun++ : turns.come_back++;
  transfer_.set_turn(turn_);
}

void Executor::run_body(const Region& region, Host& host, int64_t repetitions, const std::optional<Binding>& next) {
  const Lookahead* const ahead = lookahead_of(region);
  if (ahead != nullptr) begin_all(ahead->at_begin, next);
  for (size_t i = 0; i < region.items.size(); ++i) {
    if (const Region* child = region.items[i].region()) run(*child, host, repetitions);
    if (const Op* op = region.items[i].op()) run_op(*op, host);
    if (ahead != nullptr) begin_all(ahead->after_item[i], next);
  }
}

void Executor::run_op(const Op& op, Host& host) {
  const Binding binding = here();
  if (observer_ != nullptr) observer_->before(op, binding);
  switch (run_by(op.kind)) {
    case RunBy::host: host.run(op, repetition_); break;
    case RunBy::executor:
    case RunBy::ranks: run_beside(op, binding); break;
    case RunBy::backend: run_kernel(op, binding); break;
    case RunBy::nobody: throw std::logic_error(std::string(name_of(op.kind)) + " is not run");
  }
  if (observer_ != nullptr) observer_->after(op, binding);
}

void Executor::join(RankRings& ranks, CommLanes& lanes) {
  if (ranks.mesh() != program_.mesh) throw std::logic_error("a Program of another mesh of ranks");
  ranks_ = &ranks;
  comm_ = &lanes;
  transfer_.set_rank(ranks.rank());
}

// Until no other lane is at work on these bytes.
void Executor::wait_for(const std::byte* memory, int64_t bytes, bool writes) {
  if (!lanes_.idle()) lanes_.wait_for(memory, bytes, writes);
  if (comm_ != nullptr && !comm_->idle()) comm_->wait_for(memory, bytes, writes);
}

void Executor::wait_for(const OpView& view, const Op& op) {
  if (lanes_.idle() && (comm_ == nullptr || comm_->idle())) return;
  size_t next = 0;
  for (const OperandView& operand : view.operands())
    wait_for(static_cast<const std::byte*>(operand.data), operand.bytes(), op.operands[next++].access != Access::read);
  if (comm_ != nullptr) comm_->start();  // while the op computes
}

void Executor::run_kernel(const Op& op, const Binding& binding) {
  const OpView view = bound_view(op, binding);
  wait_for(view, op);
  backend_.kernel(op.kind)->run(*session_, view);
}

void Executor::run_apart(const Op& op, int64_t layer, std::span<std::byte> workspace) {
  OpView view = bound_view(op, {program_, layout_, homes_.bases(), layer, 0, transfer_.rank(), turn_});
  const auto bytes = static_cast<int64_t>(workspace.size());
  view.add({.slot = Slot::workspace,
            .dtype = DType::u8,
            .axes = 1,
            .shape = {bytes},
            .elements = bytes,
            .data = workspace.data()});
  backend_.kernel(op.kind)->run(*session_, view);
}

void Executor::run_beside(const Op& op, const Binding& binding) {
  if (!is_fetch(op) || observer_ != nullptr) begin(op, binding);
  if (run_by(op.kind) == RunBy::ranks && op.lane == Lane::compute) comm_->wait_for_all_of(op.attributes.group, op.kind);
  if (observer_ == nullptr) return;
  lanes_.wait_for_depth(0);
  if (comm_ != nullptr) comm_->wait_for_depth(0);
}

void Executor::begin(const Op& op, const Binding& binding) {
  if (run_by(op.kind) == RunBy::ranks) return begin_collective(op, binding);
  begin_page(op, binding);
}

void Executor::begin_collective(const Op& op, const Binding& binding) {
  if (comm_ == nullptr) throw std::logic_error("a Program of several ranks that is run by one");
  const OpView view = bound_view(op, binding);
  Collective collective{.kind = op.kind,
                        .group = op.attributes.group,
                        .dtype = view[Slot::x].dtype,
                        .x = {},
                        .out = {},
                        .staging = {},
                        .accumulate = op.attributes.accumulate};
  size_t next = 0;
  for (const OperandView& operand : view.operands()) {
    const std::span bytes(static_cast<std::byte*>(operand.data), static_cast<size_t>(operand.bytes()));
    (operand.slot == Slot::x ? collective.x : operand.slot == Slot::out ? collective.out : collective.staging) = bytes;
    if (!lanes_.idle()) lanes_.wait_for(bytes.data(), operand.bytes(), op.operands[next].access != Access::read);
    ++next;
  }
  if (op.kind == OpKind::receive)  // what was sent from there has a lane of its own
    comm_->wait_for(collective.x.data(), static_cast<int64_t>(collective.x.size()), true);
  comm_->begin(collective, op.kind == OpKind::send ? 0 : depth_);  // nobody waits for what is sent
}

void Executor::begin_all(const std::vector<Lookahead::Start>& starts, const std::optional<Binding>& next) {
  for (const Lookahead::Start& start : starts) {
    if (!start.next_iteration) begin(*start.op, here());
    if (start.next_iteration && next) begin(*start.op, *next);
  }
}

void Executor::begin_page(const Op& op, const Binding& binding) {
  const TensorId far = op.find(Slot::far), window = op.find(Slot::window);
  if (comm_ != nullptr)
    comm_->wait_for(static_cast<const std::byte*>(binding.address(window)), program_.tensor(window).bytes(), true);
  lanes_.begin({.home = program_.home_of(far),
                .far = binding.offset(far),
                .bytes = program_.tensor(window).bytes(),
                .memory = static_cast<std::byte*>(binding.address(window)),
                .into_memory = op.kind == OpKind::page_in},
               depth_);
}

}  // namespace snug
