#include "eager/zero.h"

#include <algorithm>
#include <utility>

namespace snug::eager {

namespace {

constexpr int64_t kReductionStream = 2;  // reduction_stream, where buckets overlap

}  // namespace

void ZeroOptimizer::wrap(const std::vector<Tensor*>& parameters, const std::vector<Trained>& trained) {
  for (Tensor* parameter : parameters) {
    const Role role = parameter->requires_grad && setup_.method == Method::lora ? Role::adapters : Role::weights;
    const bool is_here = static_cast<bool>(parameter->storage);  // of a quantized model, whose codes stay as they are
    if (is_here && (parameter->dtype == DType::u8 || parameter->dtype == setup_.weights)) continue;
    if (is_here) parameter->node.reset();
    parameter->dtype = setup_.weights;
    parameter->storage = t_.empty(parameter->count, parameter->dtype, role).storage;
  }
  for (const bool decays : {true, false}) make_group(trained, decays);
  for (Group& group : groups_)
    for (Parameter& parameter : group.parameters) {
      Autograd::require_grad(*parameter.tensor);
      parameter.tensor->node->after_accumulate = [this, &parameter](Node&) { arrive(parameter); };
    }
  Tensors first;  // initialize_optimizer_states: gradients of nothing
  for (const Group& group : groups_) first.push_back(t_.empty(group.partition, DType::f32));
}

void ZeroOptimizer::make_group(const std::vector<Trained>& trained, bool decays) {
  Group group;
  for (const Trained& each : trained)
    if (each.decays == decays) group.parameters.push_back({each.tensor});
  if (group.parameters.empty()) return;
  lay_flat(group);
  groups_.push_back(std::move(group));
}

// The group in one tensor that ranks share alike; a parameter that two of them have is kept by both.
void ZeroOptimizer::lay_flat(Group& group) {
  constexpr int64_t kAlignment = 2;  // nccl_start_alignment_factor
  const int64_t ranks = setup_.ranks.count, unit = kAlignment * ranks;
  int64_t count = 0;
  for (const Parameter& parameter : group.parameters) count += parameter.tensor->count;
  const int64_t padded = (count + unit - 1) / unit * unit;
  const Role role = group.parameters[0].tensor->storage.role();
  const DType dtype = group.parameters[0].tensor->dtype;
  t_.device().release_cached();
  group.flat = t_.empty(padded, dtype, role);
  group.partition = padded / ranks;
  const int64_t begin = setup_.ranks.number * group.partition, end = begin + group.partition;
  int64_t offset = 0;
  for (Parameter& parameter : group.parameters) {
    parameter.tensor->storage = group.flat.storage;
    parameter.offset = offset;
    parameter.partition = group.partition;
    const int64_t within = std::min(end, offset + parameter.tensor->count) - std::max(begin, offset);
    parameter.kept = within > 0;
    parameter.own = std::max<int64_t>(within, 0);
    offset += parameter.tensor->count;
  }
  const Tensor copy = t_.empty(group.partition, dtype);
  group.master = t_.empty(group.partition, DType::f32, role);
}

std::vector<Trained> ZeroOptimizer::partitions() {
  std::vector<Trained> found;
  for (Group& group : groups_) found.push_back({&group.master});
  return found;
}

// setup_buckets, process_gradients
void ZeroOptimizer::arrive(Parameter& parameter) {
  if (!buckets_[0].defined())
    for (Tensor& bucket : buckets_)
      if (&bucket == &buckets_[0] || setup_.ranks.overlaps)
        bucket = t_.empty(setup_.ranks.bucket_elements, parameter.tensor->dtype, Role::gradients);
  const bool at_once = setup_.ranks.sharding == Sharding::zero2 || (setup_.ranks.overlaps && last_);
  if (at_once) take(parameter);
}

// reduce_independent_p_g_buckets_and_remove_grads
void ZeroOptimizer::take(Parameter& parameter) {
  const int64_t count = parameter.tensor->count, limit = setup_.ranks.bucket_elements;
  if (elements_ + count > limit) {
    reduce();
    if (setup_.ranks.overlaps) filling_ = 1 - filling_;
  }
  if (count <= limit) parameter.tensor->node->gradient.storage = buckets_[filling_].storage;  // else it stays where it is
  in_bucket_.push_back(&parameter);
  elements_ += count;
}

// average_tensor, allreduce_and_scatter: the bucket in slices that go to one rank each; several of them are flattened first.
void ZeroOptimizer::average() {
  std::vector<std::pair<int64_t, int64_t>> slices;  // rank, elements
  for (const Parameter* parameter : in_bucket_)
    for (int64_t at = parameter->offset, end = at + parameter->tensor->count; at < end;) {
      const int64_t rank = at / parameter->partition, next = std::min(end, (rank + 1) * parameter->partition);
      if (slices.empty() || slices.back().first != rank) slices.emplace_back(rank, 0);
      slices.back().second += next - at;
      at = next;
    }
  int64_t together = 0, number = 0;
  const auto flatten = [&] {
    if (number > 1) t_.empty(together, buckets_[0].dtype, Role::temporaries, setup_.ranks.overlaps ? kReductionStream : 0);
    together = number = 0;
  };
  for (const auto& [rank, elements] : slices) {
    together += elements;
    ++number;
    if (together > setup_.ranks.bucket_elements) flatten();
  }
  flatten();
}

// copy_grads_in_partition: what this rank keeps of the bucket goes to a tensor that holds all that it keeps.
void ZeroOptimizer::reduce() {
  if (in_bucket_.empty()) return;
  average();
  for (Parameter* parameter : in_bucket_) {
    Tensor& gradient = parameter->tensor->node->gradient;
    if (parameter->kept && !kept_.defined()) {
      int64_t all = 0;
      for (const Group& group : groups_)
        for (const Parameter& each : group.parameters) all += each.kept ? each.tensor->count : 0;
      kept_ = t_.empty(all, buckets_[0].dtype, Role::gradients, setup_.ranks.overlaps ? kReductionStream : 0);
    }
    if (parameter->kept) {
      gradient.storage = kept_.storage;
    } else if (setup_.ranks.sharding == Sharding::zero2) {
      gradient = {};
    }
  }
  in_bucket_.clear();
  elements_ = 0;
}

// independent_gradient_partition_epilogue
void ZeroOptimizer::end_backward() {
  const bool partitions_gradients = setup_.ranks.sharding == Sharding::zero2;
  if (!last_ && !partitions_gradients) return;
  if (!partitions_gradients && !setup_.ranks.overlaps)
    for (Group& group : groups_)
      for (Parameter& parameter : group.parameters) take(parameter);
  reduce();
  if (accumulated_.defined()) kept_ = {};  // added to it
  if (!accumulated_.defined()) accumulated_ = std::move(kept_);
  kept_ = buckets_[0] = buckets_[1] = {};
  filling_ = 0;
  for (Group& group : groups_)
    for (Parameter& parameter : group.parameters) parameter.tensor->node->gradient = {};
}

// The norm of each gradient in 64 bits; then a group's gradients in one tensor, in 32 bits, and its update.
void ZeroOptimizer::step(Optimizers& optimizer, const std::function<void()>& begin) {
  for (const Group& group : groups_)
    for (const Parameter& parameter : group.parameters)
      if (parameter.kept) t_.empty(parameter.own, DType::f64);
  for (size_t i = 0; i < groups_.size(); ++i)
    optimizer.step_partition(i, groups_[i].flat.dtype, [&] {
      if (i + 1 == groups_.size()) accumulated_ = {};
      begin();
    });
}

}  // namespace snug::eager
