#include "eager/data_parallel.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

namespace snug::eager {
namespace {

struct Bucket {
  size_t first = 0, tensors = 0;  // the number of its first, and how many
  DType dtype = DType::f32;
  int64_t count = 0;
};

// torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size: tensors of one dtype, in their order, until a
// limit is reached; the last limit holds for all that follow.
std::vector<Bucket> buckets_of(const std::vector<const Tensor*>& tensors, const std::vector<int64_t>& limits) {
  std::vector<Bucket> done;
  std::map<DType, Bucket> open;
  std::map<DType, size_t> next;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = *tensors[i];
    Bucket& bucket = open[tensor.dtype];
    if (bucket.count == 0) bucket = {i, 0, tensor.dtype, 0};
    ++bucket.tensors;
    bucket.count += tensor.count;
    size_t& limit = next[tensor.dtype];
    if (bytes_of(bucket.dtype, bucket.count) < limits[limit]) continue;
    done.push_back(std::exchange(bucket, {}));
    limit = std::min(limit + 1, limits.size() - 1);
  }
  for (const auto& [dtype, bucket] : open)
    if (bucket.count > 0) done.push_back(bucket);
  std::sort(done.begin(), done.end(), [](const Bucket& a, const Bucket& b) { return a.first < b.first; });
  return done;
}

// torch/nn/parallel/distributed.py: _DEFAULT_FIRST_BUCKET_BYTES, bucket_cap_mb
constexpr int64_t kFirstBucket = int64_t{1} << 20U, kBucket = int64_t{25} << 20U;

}  // namespace

DataParallel::DataParallel(Torch& torch, const Setup& setup, const std::vector<Tensor*>& parameters,
                           const std::vector<Trained>& trained)
    : t_(torch), setup_(setup) {
  broadcast_coalesced(torch, {parameters.begin(), parameters.end()});
  std::vector<const Tensor*> in_order;
  for (const Trained& each : trained) in_order.push_back(each.tensor);
  arriving_.assign(in_order.rbegin(), in_order.rend());
  const int64_t one = std::numeric_limits<int64_t>::max();  // until it is known in which order gradients come
  if (setup.ranks.finds_unused) {
    make_buckets(in_order, kFirstBucket, kBucket);
    used_ = t_.empty(static_cast<int64_t>(in_order.size()), DType::i32, Role::gradients);
  } else {
    make_buckets(in_order, one, one);
  }
}

void broadcast_coalesced(Torch& torch, const std::vector<const Tensor*>& tensors) {
  constexpr size_t kOnTheWay = 2;
  std::deque<Tensor> on_the_way;
  for (const Bucket& bucket : buckets_of(tensors, {int64_t{250} << 20U})) {
    if (on_the_way.size() >= kOnTheWay) on_the_way.pop_front();
    on_the_way.push_back(bucket.tensors > 1 ? torch.empty(bucket.count, bucket.dtype) : Tensor{});  // one lies flat already
  }
  while (!on_the_way.empty()) on_the_way.pop_front();
}

// reducer.cpp, initialize_buckets: those of the last parameters first.
void DataParallel::make_buckets(const std::vector<const Tensor*>& parameters, int64_t first_limit, int64_t limit) {
  buckets_.clear();
  const std::vector<Bucket> found = buckets_of(parameters, {first_limit, limit});
  for (auto bucket = found.rbegin(); bucket != found.rend(); ++bucket)
    buckets_.push_back(t_.empty(bucket->count, bucket->dtype, Role::gradients));
}

// reducer.cpp, rebuild_buckets: before the second pass, in the order in which gradients came.
void DataParallel::before_forward() {
  if (passes_++ == 1 && !setup_.ranks.finds_unused) make_buckets(arriving_, kFirstBucket, kBucket);
}

}  // namespace snug::eager
