#pragma once
// Where the loader writes a micro-batch.

#include "data/loader.h"
#include "run/executor.h"

namespace snug {

// A micro-batch goes to the tensors that its op names.
class BatchOfOp final : public BatchSink {
 public:
  BatchOfOp(Executor& executor, const Op& op) : BatchSink(executor.program().seq_len), executor_(executor), op_(op) {}
  int64_t room(BatchPart part) const override { return executor_.program().tensor(tensor_of(part)).elements(); }
  void write(BatchPart part, int64_t begin, std::span<const int32_t> values) override {
    executor_.transfer().write(tensor_of(part), begin, values);
  }

 private:
  TensorId tensor_of(BatchPart part) const {
    constexpr Slot kSlots[kBatchParts] = {Slot::ids, Slot::positions, Slot::document_start, Slot::target_rows,
                                          Slot::target_tokens};
    return op_.find(kSlots[static_cast<size_t>(part)]);
  }

  Executor& executor_;
  const Op& op_;
};

}  // namespace snug
