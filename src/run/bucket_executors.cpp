#include "run/bucket_executors.h"

#include <utility>

namespace snug {

BucketExecutors::Bucket::Bucket(BucketProgram made_program, const Executor& owner)
    : made(std::move(made_program)), executor(made.program, made.layout, owner) {}

BucketExecutors::BucketExecutors(const Plan& plan, std::span<const int64_t> lengths, const std::filesystem::path& pages)
    : whole_(plan.program, plan.layout, pages) {
  for (const int64_t length : lengths) {
    if (length >= plan.program.seq_len) break;
    if (std::optional<BucketProgram> made = plan_bucket(plan, length)) buckets_.emplace_back(std::move(*made), whole_);
  }
  whole_.commit();
}

Executor& BucketExecutors::holding(int64_t tokens) {
  for (Bucket& bucket : buckets_)
    if (bucket.made.program.seq_len >= tokens) return bucket.executor;
  return whole_;
}

}  // namespace snug
