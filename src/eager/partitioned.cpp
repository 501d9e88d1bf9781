#include "eager/partitioned.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace snug::eager {

namespace {

constexpr int64_t kAllGatherStream = 1, kPartitionStream = 2;

}  // namespace

PartitionedModel::Parameter& PartitionedModel::enlist(Tensor* tensor) {
  const int64_t ranks = setup_.ranks.count;
  Parameter& parameter = parameters_[tensor];
  if (parameter.tensor != nullptr) return parameter;
  parameter.tensor = tensor;
  parameter.number = static_cast<int64_t>(parameters_.size());
  parameter.share = (tensor->count + ranks - 1) / ranks;
  parameter.persists = tensor->count <= setup_.ranks.persistent_elements;
  const bool adapts_parts = setup_.ranks.loads_in_parts && tensor->storage;
  if (!adapts_parts || !t_.stack().zero_leaves_adapters_wide) tensor->dtype = setup_.weights;
  return parameter;
}

// partition_parameters.py: zero_wrapper_for_fp_tensor_constructor makes each parameter whole and narrows it,
// _post_init_method cuts it; GatheredParameters, around what the checkpoint's file gives, has it whole once more.
void PartitionedModel::load(const std::vector<Tensor*>& parameters, DType dtype) {
  for (Tensor* tensor : parameters) {
    Parameter& parameter = enlist(tensor);
    Tensor made = t_.empty(tensor->count, dtype, Role::weights);
    if (dtype != setup_.weights) made = t_.empty(tensor->count, setup_.weights, Role::weights);
    tensor->storage = std::exchange(made, {}).storage;
    cut(parameter);
  }
  for (const Tensor* tensor : parameters) t_.empty(tensor->count, setup_.weights);
}

// _partition_param
void PartitionedModel::cut(Parameter& parameter) {
  parameter.part = t_.empty(parameter.share, parameter.tensor->dtype, Role::weights);
  t_.device().drop(parameter.tensor->storage);
}

// stage3.py _create_fp16_partitions_with_defragmentation: what decays and what does not, in sub-groups. Returns the elements
// of this rank's share of all.
int64_t PartitionedModel::make_groups(const std::vector<Trained>& trained) {
  int64_t kept = 0;
  for (const bool decays : {true, false}) {
    Group group;
    int64_t elements = 0;
    const auto close = [&] {
      if (!group.parameters.empty()) groups_.push_back(std::exchange(group, {}));
      elements = 0;
    };
    for (const Trained& each : trained) {
      if (each.decays != decays) continue;
      Parameter& parameter = parameters_.at(each.tensor);
      parameter.trained = true;
      kept += parameter.share;
      elements += parameter.share;
      group.parameters.push_back(&parameter);
      if (elements >= setup_.ranks.sub_group) close();
    }
    close();
  }
  return kept;
}

// engine.py _configure_distributed_model: what is not in parts yet, adapters or the whole model, is on the device in 16
// bits, then cut; what is trained is laid flat (stage3.py defragment), with a copy in 32 bits.
void PartitionedModel::wrap(const std::vector<Tensor*>& parameters, const std::vector<Trained>& trained) {
  t_.linear_is_deepspeeds = true;
  for (Tensor* tensor : parameters) {
    const DType before = tensor->dtype;
    const bool is_cut = enlist(tensor).part.defined(), stays = tensor->storage && tensor->dtype == before;
    if (!is_cut && !stays) tensor->storage = t_.empty(tensor->count, tensor->dtype, Role::weights).storage;
  }
  for (Tensor* tensor : parameters)
    if (Parameter& parameter = parameters_.at(tensor); !parameter.part.defined()) cut(parameter);
  const int64_t kept = make_groups(trained);
  const Role role = setup_.method == Method::lora ? Role::adapters : Role::weights;
  for (Tensor* tensor : parameters)
    if (parameters_.at(tensor).trained) parameters_.at(tensor).part = {};
  t_.device().release_cached();
  const DType dtype = trained.front().tensor->dtype;
  flat_ = t_.empty(kept, dtype, role);
  int64_t largest = 0;
  for (Group& group : groups_) {
    int64_t count = 0;
    for (const Parameter* parameter : group.parameters) count += parameter->share;
    const Tensor copy = dtype == DType::f32 ? Tensor{} : t_.empty(count, DType::f32);
    group.master = t_.empty(count, DType::f32, role);
    largest = std::max(largest, count);
  }
  t_.empty(largest, DType::f32);  // initialize_optimizer_states: gradients of nothing
  bucket_ = t_.empty(setup_.ranks.bucket_elements, setup_.weights, Role::gradients);
  gradients_ = t_.empty(kept, setup_.weights, Role::gradients);
  for (const Group& group : groups_)  // create_reduce_and_remove_grad_hooks: each is gathered for its hook
    for (const Parameter* parameter : group.parameters) t_.empty(parameter->tensor->count, dtype);
  for (Tensor* tensor : parameters) {
    Parameter& parameter = parameters_.at(tensor);
    if (parameter.persists) persistent_.push_back(&parameter);
    if (!parameter.trained) continue;
    Autograd::require_grad(*tensor);
    tensor->node->after_accumulate = [this, at = &parameter](Node&) { arrive(*at); };
  }
}

std::vector<Trained> PartitionedModel::partitions() {
  std::vector<Trained> found;
  for (Group& group : groups_) found.push_back({&group.master});
  return found;
}

// --- modules ---

PartitionedModel::Module& PartitionedModel::module_of(const void* key, const std::vector<const Tensor*>& parameters) {
  const auto [found, fresh] = modules_.try_emplace(key);
  if (fresh)
    for (const Tensor* tensor : parameters)
      if (tensor->defined()) found->second.parameters.push_back(&parameters_.at(tensor));
  return found->second;
}

Tensor PartitionedModel::call(const void* key, const std::vector<const Tensor*>& parameters, const Tensor& input,
                              const std::function<Tensor(const Tensor&)>& forward) {
  Module& module = module_of(key, parameters);
  fetch(module, true);
  Tensor output = forward(t_.hooked(input, [this, &module] { release(module, false); }));
  release(module, true);
  return t_.hooked(output, [this, &module] { fetch(module, false); });
}

// What a recomputation gathers of the frozen weights is held for the module whose backward asked for it.
void PartitionedModel::fetch(Module& module, bool forward) {
  if (!forward) in_backward_.push_back(&module);
  Module* const owner = forward && t_.in_backward() && !in_backward_.empty() ? in_backward_.back() : nullptr;
  std::vector<Parameter*> missing;
  for (Parameter* parameter : module.parameters)
    if (!parameter->available && !parameter->gather) missing.push_back(parameter);
  gather(missing);
  for (Parameter* parameter : module.parameters) {
    parameter->users.insert(&module);
    if (owner != nullptr && !parameter->trained) {
      owner->recomputed.insert(parameter);
      parameter->users.insert(owner);
    }
    wait(*parameter);
  }
  if (recorded_) {
    fetch_ahead(module);
  } else {
    order_.push_back(&module);
    for (Parameter* parameter : module.parameters) uses_.push_back({parameter, now_});
  }
  ++now_;
}

// What this module uses leaves the queue; then as many as the bucket for it holds.
void PartitionedModel::fetch_ahead(const Module& module) {
  std::set<const Parameter*> expected, seen;
  for (const Parameter* parameter : module.parameters)
    if (parameter->fetched_until < now_) expected.insert(parameter);
  while (next_use_ < uses_.size() && seen.size() < expected.size()) {
    const Use& use = uses_[next_use_++];
    use.parameter->fetched_until = use.step;
    seen.insert(use.parameter);
  }
  const int64_t most = std::min(setup_.ranks.most_live - live_, setup_.ranks.prefetch_elements);
  std::vector<Parameter*> ahead;
  for (int64_t elements = 0; next_use_ < uses_.size() && elements < most;) {
    const Use& use = uses_[next_use_++];
    Parameter& parameter = *use.parameter;
    parameter.fetched_until = std::max(parameter.fetched_until, use.step);
    const bool is_here = parameter.available || parameter.gather;
    if (is_here || std::find(ahead.begin(), ahead.end(), &parameter) != ahead.end()) continue;
    ahead.push_back(&parameter);
    elements += parameter.tensor->count;
  }
  gather(std::move(ahead));
}

// One parameter is gathered in its place; several into one tensor for each dtype, and from there to their places when one is
// asked for.
void PartitionedModel::gather(std::vector<Parameter*> parameters) {
  if (parameters.empty()) return;
  std::sort(parameters.begin(), parameters.end(),
            [](const Parameter* a, const Parameter* b) { return a->number < b->number; });
  auto gather = std::make_shared<Gather>();
  std::vector<std::pair<DType, int64_t>> elements;
  for (Parameter* parameter : parameters) {
    parameter->gather = gather;
    const DType dtype = parameter->tensor->dtype;
    auto found = std::find_if(elements.begin(), elements.end(), [&](const auto& each) { return each.first == dtype; });
    if (found == elements.end()) found = elements.insert(found, {dtype, 0});
    found->second += parameter->share;
    live_ += parameter->tensor->count;
  }
  if (setup_.ranks.count == 1) {  // _no_gather_coalesced: its part is all of it
    gather->complete = true;
    for (Parameter* parameter : parameters) parameter->available = true;
  } else if (parameters.size() == 1) {
    t_.device().refill(parameters[0]->tensor->storage, kAllGatherStream);
  } else {
    for (const auto& [dtype, count] : elements)
      gather->flat.push_back(t_.empty(count * setup_.ranks.count, dtype, Role::temporaries, kAllGatherStream));
  }
  gather->parameters = std::move(parameters);
}

void PartitionedModel::wait(Parameter& parameter) {
  if (!parameter.gather) return;
  pass(++waited_ - setup_.ranks.gathers_behind);
  Gather& gather = *parameter.gather;
  if (!gather.complete)
    for (Parameter* each : gather.parameters) {
      t_.device().refill(each->tensor->storage, kAllGatherStream);
      each->available = true;
    }
  gather.complete = true;
  parameter.gather.reset();
}

// __params_to_release: once the order is known, not what persists, was fetched for a later use already, or is used again
// soon.
std::vector<PartitionedModel::Parameter*> PartitionedModel::releasable(const Module& module) {
  std::vector<Parameter*> found;
  for (Parameter* parameter : module.parameters)
    if (!recorded_ || (!parameter->persists && parameter->fetched_until <= now_)) found.push_back(parameter);
  if (!recorded_) return found;
  int64_t passed = 0;
  for (auto i = static_cast<size_t>(now_); i < order_.size() && passed < setup_.ranks.reuse_distance && !found.empty(); ++i)
    for (const Parameter* parameter : order_[i]->parameters) {
      std::erase(found, parameter);
      passed += parameter->tensor->count;
    }
  return found;
}

void PartitionedModel::release(Module& module, bool forward) {
  auto found = releasable(module);
  for (Parameter* parameter : module.parameters) parameter->users.erase(&module);
  if (!forward) {
    for (Parameter* parameter : module.recomputed) {
      parameter->users.erase(&module);
      if (!parameter->persists && std::find(found.begin(), found.end(), parameter) == found.end())
        found.push_back(parameter);
    }
    module.recomputed.clear();
    std::erase(in_backward_, &module);
  }
  for (Parameter* parameter : found) {
    if (!parameter->available || !parameter->users.empty()) continue;
    give_back(*parameter);
    live_ -= parameter->tensor->count;
  }
}

// free_param
void PartitionedModel::give_back(Parameter& parameter) {
  parameter.available = false;
  if (setup_.ranks.gathers_behind == 0) return t_.device().drop(parameter.tensor->storage);
  used_.emplace_back(waited_, t_.device().drop_later(parameter.tensor->storage));
}

// What was given back before so many gathers is not in use any more.
void PartitionedModel::pass(int64_t gathers) {
  for (; !used_.empty() && used_.front().first < gathers; used_.pop_front()) t_.device().complete(used_.front().second);
}

// --- gradients ---

// reduce_independent_p_g_buckets_and_remove_grads, __add_grad_to_ipg_bucket
void PartitionedModel::arrive(Parameter& parameter) {
  const int64_t count = parameter.tensor->count;
  const int64_t limit = setup_.ranks.bucket_elements;
  if (elements_ + count > limit && elements_ > 0) reduce();
  if (elements_ + count <= limit) parameter.tensor->node->gradient.storage = bucket_.storage;
  in_bucket_.push_back(&parameter);
  elements_ += count;
}

// reduce_scatter_coalesced: several are laid side by side first, as is one that ranks do not share evenly.
void PartitionedModel::reduce() {
  const int64_t ranks = setup_.ranks.count;
  int64_t together = 0;
  for (const Parameter* parameter : in_bucket_) together += parameter->share * ranks;
  if (in_bucket_.size() > 1 || (together > elements_))
    t_.empty(together, setup_.weights, Role::temporaries, kPartitionStream);
  for (Parameter* parameter : in_bucket_) parameter->tensor->node->gradient = {};
  in_bucket_.clear();
  elements_ = 0;
}

void PartitionedModel::end_backward() {
  if (!in_bucket_.empty()) reduce();
  pass(std::numeric_limits<int64_t>::max());
  for (auto& [tensor, parameter] : parameters_) {
    parameter.gather.reset();
    parameter.users.clear();
    parameter.fetched_until = -1;
    if (parameter.persists) continue;
    t_.device().drop(parameter.tensor->storage);
    parameter.available = false;
  }
  for (auto& [key, module] : modules_) module.recomputed.clear();
  in_backward_.clear();
  recorded_ = true;
  next_use_ = 0;
  now_ = live_ = 0;
}

void PartitionedModel::step(Optimizers& optimizer, const std::function<void()>& begin) {
  for (auto& [tensor, parameter] : parameters_) {  // _partition_all_parameters
    t_.device().drop(parameter.tensor->storage);
    parameter.available = false;
  }
  for (const Group& group : groups_)
    for (const Parameter* parameter : group.parameters) t_.empty(parameter->share, DType::f64);
  for (size_t i = 0; i < groups_.size(); ++i) optimizer.step_partition(i, setup_.weights, begin);
  for (Parameter* parameter : persistent_) {  // _post_step
    if (setup_.ranks.count > 1) t_.device().refill(parameter->tensor->storage);
    parameter->available = true;
  }
}

}  // namespace snug::eager
