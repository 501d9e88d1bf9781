#include "eager/fully_sharded.h"

#include <algorithm>
#include <utility>

namespace snug::eager {
namespace {

// FSDPCommContext: streams for gathering and reducing, whose memory is apart.
constexpr int64_t kGatherStream = 1, kReduceStream = 2;

const Trained* find(const std::vector<Trained>& trained, const Tensor* tensor) {
  const auto found = std::find_if(trained.begin(), trained.end(), [&](const Trained& t) { return t.tensor == tensor; });
  return found == trained.end() ? nullptr : &*found;
}

}  // namespace

// _fsdp_init.py _move_states_to_device, _fsdp_param.py _init_sharded_param: a unit is on the device whole, then cut.
// accelerate widens what is trained where there is mixed precision (fsdp2_prepare_model).
FullySharded::Unit FullySharded::make_unit(const UnitParameters& parameters, const std::vector<Trained>& trained,
                                           Tensors& moved) {
  const bool mixed = setup_.autocast.has_value();
  Unit unit;
  for (const UnitParameter& each : parameters) {
    if (each.tensor->storage) continue;  // of a quantized model, which is there
    const DType kept = mixed && find(trained, each.tensor) != nullptr ? DType::f32 : each.tensor->dtype;
    moved.push_back(t_.empty(each.tensor->count, kept));
  }
  for (const UnitParameter& each : parameters) {
    Parameter parameter;
    parameter.whole = each.tensor;
    const Trained* const found = find(trained, each.tensor);
    if (found != nullptr) parameter.trained = *found;
    const DType kept = mixed && found != nullptr ? DType::f32 : each.tensor->dtype;
    const int64_t columns = each.tensor->count / each.rows;
    const int64_t share = (each.rows + setup_.ranks.count - 1) / setup_.ranks.count;
    const int64_t own = std::clamp<int64_t>(each.rows - setup_.ranks.number * share, 0, share);
    parameter.padded = share * columns;
    const Role role = setup_.method == Method::lora && found != nullptr ? Role::adapters : Role::weights;
    if (each.tensor->storage) loaded_.push_back(each.tensor->detached());
    each.tensor->storage = {};
    each.tensor->node.reset();
    parameter.shard = t_.empty(parameter.padded, kept, role);
    parameter.shard.count = own * columns;
    if (mixed) each.tensor->dtype = *setup_.autocast;
    parameter.casts = mixed && kept != *setup_.autocast;
    unit.parameters.push_back(std::move(parameter));
  }
  return unit;
}

void FullySharded::wrap(const std::vector<UnitParameters>& units, const std::vector<Trained>& trained, bool tied) {
  tied_ = tied;
  Tensors held;  // accelerate's function has the embedding and the head at hand until it ends
  for (size_t i = 0; i < units.size(); ++i) {
    Tensors moved;
    units_.push_back(make_unit(units[i], trained, moved));
    const bool embeds = i + 1 == units.size() || (i == 0 && !tied);
    if (embeds) held.insert(held.end(), moved.begin(), moved.end());
  }
  for (Tensor& tensor : loaded_) tensor = {};
  loaded_.clear();
  units_.back().reshards = false;
  for (size_t i = 0; i + 1 < units_.size(); ++i) units_[i].reshards = setup_.ranks.reshards_after_forward;
}

std::vector<Trained> FullySharded::shards() {
  std::vector<Trained> found;
  for (Unit& unit : units_)
    for (Parameter& p : unit.parameters) {
      if (p.trained.tensor == nullptr || p.shard.count == 0) continue;
      found.push_back(p.trained);
      found.back().tensor = &p.shard;
    }
  return found;
}

// foreach_all_gather: shares in the dtype of the forward pass, put together; of several dtypes as bytes.
void FullySharded::gather(Unit& unit) {
  if (unit.gathering.defined() || unit.gathered) return;
  int64_t cast = 0, bytes = 0;
  for (const Parameter& p : unit.parameters) {
    if (p.casts) cast += p.padded;
    bytes += bytes_of(p.whole->dtype, p.padded);
  }
  const DType dtype = setup_.autocast.value_or(DType::f32);
  const Tensor shares = t_.empty(cast, dtype, Role::temporaries, kGatherStream);
  unit.gathering = t_.empty(bytes * setup_.ranks.count, DType::u8, Role::temporaries, kGatherStream);
}

// wait_for_unshard
void FullySharded::lay_out(Unit& unit) {
  if (!unit.gathering.defined()) return;
  if (unit.state == State::forward) held_ = {};
  for (Parameter& p : unit.parameters) {
    Tensor& whole = *p.whole;
    if (whole.storage) {
      t_.device().refill(whole.storage);
      continue;
    }
    whole.storage =
        t_.empty(p.padded * setup_.ranks.count, whole.dtype, p.shard.storage ? p.shard.storage.role() : Role::weights)
            .storage;
    if (p.trained.tensor != nullptr) Autograd::require_grad(whole);
  }
  unit.gathered = true;
  if (unit.state == State::forward) held_ = std::move(unit.gathering);
  unit.gathering = {};
}

void FullySharded::reshard(Unit& unit) {
  if (!unit.gathered) return;
  if (unit.state == State::forward && !unit.reshards) return;
  for (const Parameter& p : unit.parameters) t_.device().drop(p.whole->storage);
  unit.gathered = false;
}

Tensor FullySharded::before_forward(size_t number, const Tensor& input) {
  Unit& unit = units_[number];
  if (unit.state == State::before_backward) {  // a checkpoint recomputes
    gather(unit);
    lay_out(unit);
    return input;
  }
  const bool enters = unit.state != State::forward;
  unit.state = State::forward;
  gather(unit);
  lay_out(unit);
  if (!enters) return input;
  return t_.hooked(input, [this, number] { after_backward(units_[number]); });
}

Tensor FullySharded::after_forward(size_t number, const Tensor& output) {
  Unit& unit = units_[number];
  if (unit.state == State::before_backward) return output;
  if (!t_.in_backward()) {
    reshard(unit);
    unit.in_forward.push_back(order_.size());
    order_.push_back(number);
  }
  unit.state = State::idle;
  return t_.hooked(output, [this, number] { before_backward(units_[number]); });
}

void FullySharded::end_forward() { held_ = {}; }

// pre_backward; the unit that ran before this one in forward is gathered ahead
void FullySharded::before_backward(Unit& unit) {
  if (unit.state == State::before_backward) return;
  unit.state = State::before_backward;
  gather(unit);
  lay_out(unit);
  if (unit.in_forward.empty()) return;
  const size_t place = unit.in_forward.back();
  unit.in_forward.pop_back();
  if (place > 0) gather(units_[order_[place - 1]]);
}

// post_backward, foreach_reduce: gradients are put into one buffer, which is held until the next unit's; this rank's part is
// cast to what its shares are kept in.
void FullySharded::after_backward(Unit& unit) {
  unit.state = State::after_backward;
  if (!reduces_) return reshard(unit);
  Tensors gradients;
  int64_t count = 0;
  DType dtype = DType::f32, kept = DType::f32;
  for (Parameter& p : unit.parameters) {
    if (p.trained.tensor == nullptr || !p.whole->node || !p.whole->node->gradient.defined()) continue;
    gradients.push_back(std::exchange(p.whole->node->gradient, {}));
    count += p.padded;
    dtype = gradients.back().dtype;
    kept = p.shard.dtype;
  }
  reshard(unit);
  reduced_ = {};
  if (gradients.empty()) return;
  reduced_ = t_.empty(count * setup_.ranks.count, dtype, Role::gradients);
  gradients.clear();
  Tensor share = t_.empty(count, dtype, Role::gradients, kReduceStream);
  if (dtype != kept) share = t_.empty(count, kept, Role::gradients, kReduceStream);
  for (Parameter& p : unit.parameters)
    if (p.trained.tensor != nullptr && !p.gradient.defined()) p.gradient = share;
}

void FullySharded::end_backward() {
  for (Unit& unit : units_) {
    if (unit.state != State::after_backward) after_backward(unit);
    unit.state = State::idle;
    unit.gathering = {};
    unit.in_forward.clear();
  }
  held_ = reduced_ = {};
  order_.clear();
}

void FullySharded::forget_gradients() {
  for (Unit& unit : units_)
    for (Parameter& p : unit.parameters) p.gradient = {};
}

}  // namespace snug::eager
