#include "eager/flat_sharded.h"

#include <algorithm>
#include <utility>

#include "eager/data_parallel.h"

namespace snug::eager {
namespace {

// _runtime_utils.py, _init_streams: casts before gathering, gathering, and what comes after backward have memory of their
// own.
constexpr int64_t kPreUnshardStream = 1, kUnshardStream = 2, kPostBackwardStream = 3;

int64_t rounded_up(int64_t number, int64_t multiple) { return (number + multiple - 1) / multiple * multiple; }

}  // namespace

// --- wrapping ---

// _init_utils.py, _init_param_handle_from_module: parameters come to the device, are sent to all ranks, laid flat and cut.
FlatSharded::Unit FlatSharded::make_unit(const FlatUnit& from, const std::vector<Trained>& trained) {
  Unit unit;
  std::vector<Tensor*> in_order = from.parameters;
  const auto first = in_order.end() - static_cast<std::ptrdiff_t>(from.moves_first);
  std::rotate(in_order.begin(), first, in_order.end());
  std::map<const Tensor*, Tensor> moved;
  for (Tensor* tensor : in_order)
    moved[tensor] = tensor->storage ? tensor->detached() : t_.empty(tensor->count, tensor->dtype);
  constexpr int64_t kAlignment = 16;  // _get_aligned_numel, in bytes
  const int64_t ranks = setup_.ranks.count;
  for (Tensor* tensor : from.parameters) {
    Parameter parameter;
    parameter.module = tensor;
    parameter.count = tensor->count;
    const auto found = std::find_if(trained.begin(), trained.end(), [&](const Trained& t) { return t.tensor == tensor; });
    if (found != trained.end()) parameter.trained = *found;
    unit.trained = unit.trained || found != trained.end();
    if (setup_.ranks.keeps_parameters) unit.count = rounded_up(unit.count, kAlignment / bytes_of(tensor->dtype, 1));
    parameter.offset = unit.count;
    unit.count += tensor->count;
    unit.parameters.push_back(parameter);
  }
  unit.share = (unit.count + ranks - 1) / ranks;
  if (setup_.ranks.keeps_parameters) unit.count = unit.share * ranks;
  std::vector<const Tensor*> sent = from.buffers;
  Tensors whole;
  for (const Parameter& p : unit.parameters) whole.push_back(std::move(moved[p.module]));
  for (const Tensor& tensor : whole) sent.push_back(&tensor);
  broadcast_coalesced(t_, sent);
  cut(unit, whole);
  return unit;
}

// FlatParamHandle, shard
void FlatSharded::cut(Unit& unit, Tensors& whole) {
  const DType dtype = whole[0].dtype;
  const Role role = setup_.method == Method::lora && unit.trained ? Role::adapters : Role::weights;
  {
    const Tensor flat = t_.empty(unit.count, dtype);
    const int64_t own = std::min(unit.count - setup_.ranks.number * unit.share, unit.share);
    unit.shard = t_.empty(std::max<int64_t>(own, 0), dtype, role);
    if (own < unit.share) unit.shard = t_.empty(unit.share, dtype, role);  // padded
  }
  unit.narrow = setup_.autocast.value_or(dtype);
  for (size_t i = 0; i < whole.size(); ++i) {
    Tensor& module = *unit.parameters[i].module;
    module = {{}, module.count, dtype, unit.trained, nullptr, 0};
    whole[i] = {};
  }
}

void FlatSharded::wrap(const std::vector<FlatUnit>& units, const std::vector<Trained>& trained) {
  for (const FlatUnit& from : units) {
    numbers_[from.key] = units_.size();
    units_.push_back(make_unit(from, trained));
    units_.back().is_inner = from.is_inner;
  }
  units_.back().is_root = true;
  if (setup_.autocast) widen();
  const int64_t rank = setup_.ranks.number;
  for (Unit& unit : units_)
    for (Parameter& p : unit.parameters) {
      const int64_t begin = std::max(p.offset, rank * unit.share);
      const int64_t end = std::min(p.offset + p.count, (rank + 1) * unit.share);
      p.own = unit.shard.detached();
      p.own.count = std::max<int64_t>(end - begin, 0);
    }
}

// FSDP.fsdp_modules: a module before those within it.
std::vector<FlatSharded::Unit*> FlatSharded::outer_first() {
  std::vector<Unit*> found{&units_.back()}, inner;
  for (size_t i = 0; i + 1 < units_.size(); ++i) {
    if (units_[i].is_inner) {
      inner.push_back(&units_[i]);
      continue;
    }
    found.push_back(&units_[i]);
    found.insert(found.end(), inner.begin(), inner.end());
    inner.clear();
  }
  return found;
}

// accelerate, prepare_model: what is trained is kept in 32 bits; the parameters themselves stay views of what was there.
void FlatSharded::widen() {
  for (Unit* unit : outer_first()) {
    if (!unit->trained || unit->shard.dtype == DType::f32) continue;
    Tensor wide = t_.empty(unit->share, DType::f32, unit->shard.storage.role());
    if (setup_.ranks.keeps_parameters) unit->before_widening = unit->shard;
    unit->shard = std::move(wide);
  }
}

// _lazy_init, init_flat_param_attributes: tensors to gather into are made and given back.
void FlatSharded::start() {
  for (Unit* unit : outer_first()) {
    const int64_t whole = unit->share * setup_.ranks.count;
    const bool casts = unit->narrow != unit->shard.dtype;
    if (casts) t_.empty(unit->share, unit->narrow);
    unit->flat = t_.empty(whole, unit->narrow, unit->shard.storage.role());
    t_.device().drop(unit->flat.storage);
    if (casts) t_.empty(whole, unit->shard.dtype);
    unit->flat.count = unit->count;
    if (!unit->trained) continue;
    Autograd::require_grad(unit->flat);
    unit->flat.node->after_accumulate = [this, unit](Node&) { after_backward(*unit); };
  }
  started_ = true;
}

std::vector<Trained> FlatSharded::shards() {
  std::vector<Trained> found;
  for (Unit* unit : outer_first()) {
    if (!unit->trained) continue;
    if (!setup_.ranks.keeps_parameters) {
      found.push_back({&unit->shard, 0, true});
      continue;
    }
    for (Parameter& p : unit->parameters) {
      if (p.trained.tensor == nullptr || p.own.count == 0) continue;
      found.push_back(p.trained);
      p.own.dtype = unit->shard.dtype;
      found.back().tensor = &p.own;
    }
  }
  return found;
}

// --- gathering ---

// _unshard: this rank's part is cast first where it is kept in another type.
void FlatSharded::gather(Unit& unit) {
  if (!unit.gathered) {
    const bool casts = unit.narrow != unit.shard.dtype;
    const Tensor narrow = casts ? t_.empty(unit.share, unit.narrow, Role::temporaries, kPreUnshardStream) : Tensor{};
    t_.device().refill(unit.flat.storage, kUnshardStream);
  }
  unit.gathered = true;
  if (unit.state == State::forward) return view_parameters(unit);
  for (size_t i = 0; i < unit.views.size(); ++i) *unit.parameters[i].module = unit.views[i];
}

// _use_unsharded_views: parts of the flat parameter, whose gradients are put together in one; made where it is gathered, so
// backward puts them together there too.
void FlatSharded::view_parameters(Unit& unit) {
  unit.views.clear();
  std::vector<Tensor*> outputs;
  for (const Parameter& p : unit.parameters) {
    unit.views.push_back(unit.flat.detached());
    unit.views.back().count = p.count;
  }
  for (Tensor& view : unit.views) outputs.push_back(&view);
  const bool grads = std::exchange(t_.grad_enabled, true);
  t_.record({unit.flat}, outputs, {}, [this, count = unit.count](const Node&, const Tensors&, Tensors& g) -> Tensors {
    return {t_.empty(count, g[0].dtype, Role::gradients, kUnshardStream)};
  });
  if (unit.trained) unit.views[0].node->stream = kUnshardStream;
  t_.grad_enabled = grads;
  for (size_t i = 0; i < unit.views.size(); ++i) *unit.parameters[i].module = unit.views[i];
}

// _use_sharded_views: modules have pieces of this rank's part again.
void FlatSharded::show_shard(Unit& unit) {
  for (const Parameter& p : unit.parameters) *p.module = {{}, p.count, unit.shard.dtype, unit.trained, nullptr, 0};
  unit.before_widening = {};
  if (unit.state == State::backward_post) unit.views.clear();
}

void FlatSharded::reshard(Unit& unit, bool frees) {
  const bool stays = unit.state == State::forward && t_.grad_enabled && !setup_.ranks.reshards_after_forward;
  if (setup_.ranks.keeps_parameters && !stays) show_shard(unit);
  if (frees) t_.device().drop(unit.flat.storage);
  if (frees) unit.gathered = false;
  unit.prefetched = false;
}

// --- forward ---

// _root_pre_forward: gradients that the optimizer has forgotten go now.
void FlatSharded::begin_forward() {
  if (!started_) start();
  if (setup_.ranks.keeps_parameters && forgotten_)
    for (Unit& unit : units_) unit.gradient = {};
  before_forward(units_.back(), {});
}

Tensor FlatSharded::before_forward(Unit& unit, const Tensor& input) {
  if (unit.state == State::backward_pre) return input;  // a checkpoint recomputes
  unit.state = State::forward;
  if (!unit.prefetched) gather(unit);
  if (!t_.grad_enabled || unit.trained || unit.hooked) return input;
  unit.hooked = true;
  const auto hook = [this, &unit] { after_backward(unit); };
  if (input.node && input.node->is_leaf) inputs_.push_back(input.node);  // register_multi_grad_hook, grad_fns
  if (!input.node || input.node != output_node_.lock()) return t_.hooked(input, hook);
  output_hooks_->push_back(hook);
  return input;
}

Tensor FlatSharded::after_forward(Unit& unit, const Tensor& output) {
  if (unit.state == State::backward_pre) return output;
  if (unit.place.value_or(0) == 0) unit.place = order_.size();
  order_.push_back(static_cast<size_t>(&unit - units_.data()));
  reshard(unit, !unit.is_root && setup_.ranks.reshards_after_forward);
  unit.state = State::idle;
  if (!t_.grad_enabled) return output;
  unit.ran_before_backward = false;
  unit.needs_gathering = output.requires_grad;
  const auto hooks = std::make_shared<std::vector<std::function<void()>>>();
  hooks->push_back([this, &unit] { before_backward(unit); });
  Tensor hooked = t_.hooked(output, [hooks] {
    for (const auto& hook : *hooks) hook();
  });
  output_node_ = hooked.node;
  output_hooks_ = hooks;
  return hooked;
}

// --- backward ---

void FlatSharded::before_backward(Unit& unit) {
  if (unit.ran_before_backward) return;
  unit.state = State::backward_pre;
  if (unit.needs_gathering && !unit.prefetched) gather(unit);
  unit.needs_gathering = false;
  if (setup_.ranks.gathers_ahead) gather_ahead(unit);
  unit.ran_before_backward = true;
}

// _prefetch_handle, BACKWARD_PRE: the unit whose forward ended before this one's
void FlatSharded::gather_ahead(const Unit& unit) {
  if (unit.place.value_or(0) == 0) return;
  Unit& next = units_[order_[*unit.place - 1]];
  if (!next.needs_gathering || next.prefetched) return;
  const State before = std::exchange(next.state, State::backward_pre);
  gather(next);
  next.state = before;
  next.prefetched = true;
}

void FlatSharded::after_backward(Unit& unit) {
  unit.state = State::backward_post;
  reshard(unit, frees_in_backward());
  if (unit.trained && reduces_) reduce(unit);
  if (unit.trained && !reduces_) show_whole_gradients(unit);
}

// _use_unsharded_grad_views: a gradient must first be made as large as its piece of the parameter.
void FlatSharded::show_whole_gradients(Unit& unit) {
  if (!setup_.ranks.keeps_parameters || std::exchange(unit.shows_gradients, true)) return;
  for (const Parameter& p : unit.parameters)
    if (p.own.count > 0) t_.empty(p.own.count, unit.shard.dtype, Role::temporaries, kUnshardStream);
}

// _reduce_grad: this rank's part, cast to what its parameters are kept in.
void FlatSharded::reduce(Unit& unit) {
  const Tensor gradient = std::exchange(unit.flat.node->gradient, {});
  const bool pads = unit.count != unit.share * setup_.ranks.count;
  const Tensor padded =
      pads ? t_.empty(unit.share * setup_.ranks.count, gradient.dtype, Role::gradients, kPostBackwardStream) : Tensor{};
  Tensor part = t_.empty(unit.share, gradient.dtype, Role::gradients, kPostBackwardStream);
  if (part.dtype != unit.shard.dtype) part = t_.empty(unit.share, unit.shard.dtype, Role::gradients, kPostBackwardStream);
  if (!unit.gradient.defined()) unit.gradient = std::move(part);
  forgotten_ = unit.shows_gradients = false;
}

// _post_backward_final_callback
void FlatSharded::end_backward() {
  for (Unit* unit : outer_first()) {
    if (unit->gathered) reshard(*unit, frees_in_backward());
    unit->state = State::idle;
    unit->ran_before_backward = unit->needs_gathering = unit->prefetched = unit->hooked = false;
    unit->place.reset();
  }
  order_.clear();
  output_node_.reset();
  output_hooks_.reset();
  inputs_.clear();
}

void FlatSharded::forget_gradients() {
  forgotten_ = true;
  if (setup_.ranks.keeps_parameters) return;  // the flat parameters' stay until the next forward pass
  for (Unit& unit : units_) unit.gradient = {};
}

}  // namespace snug::eager
