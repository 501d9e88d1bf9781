#pragma once
// Where the loader writes a micro-batch.

#include <algorithm>
#include <array>

#include "data/loader.h"
#include "run/executor.h"

namespace snug {

// A micro-batch goes to the tensors that its op names: all of it, or this rank's stretch of its rows.
class BatchOfOp final : public BatchSink {
 public:
  BatchOfOp(Executor& executor, const Op& op) : BatchSink(executor.program().seq_len), executor_(executor), op_(op) {}

  int64_t room(BatchPart /*part*/) const override { return executor_.program().batch * executor_.program().seq_len; }

  void write(BatchPart part, int64_t begin, std::span<const int32_t> values) override {
    const Stretch own = stretch_of(tensor_of(part));
    const int64_t from = std::max(begin, own.begin);
    const int64_t until = std::min(begin + static_cast<int64_t>(values.size()), own.begin + own.rows);
    if (from >= until) return;
    executor_.transfer().write(tensor_of(part), from - own.begin,
                               values.subspan(static_cast<size_t>(from - begin), static_cast<size_t>(until - from)));
  }

  void write_targets(std::span<const int32_t> rows, std::span<const int32_t> tokens) override {
    const TensorId to_rows = tensor_of(BatchPart::target_rows), to_tokens = tensor_of(BatchPart::target_tokens);
    const Stretch own = stretch_of(to_rows);
    const auto first = std::lower_bound(rows.begin(), rows.end(), own.begin) - rows.begin();
    const auto end = std::lower_bound(rows.begin(), rows.end(), own.begin + own.rows) - rows.begin();
    ElementWriter<int32_t> out(executor_.transfer(), to_rows);
    for (auto i = first; i < end; ++i)
      out.put(targets_ + (i - first), static_cast<int32_t>(rows[static_cast<size_t>(i)] - own.begin));
    out.flush();
    executor_.transfer().write(to_tokens, targets_,
                               tokens.subspan(static_cast<size_t>(first), static_cast<size_t>(end - first)));
    targets_ += end - first;
  }

  void end_targets() override {
    for (const BatchPart part : {BatchPart::target_rows, BatchPart::target_tokens}) {
      ElementWriter<int32_t> out(executor_.transfer(), tensor_of(part));
      const int64_t room = executor_.program().tensor(tensor_of(part)).elements();
      for (int64_t i = targets_; i < room; ++i) out.put(i, 0);
      out.flush();
    }
  }

  // That have come here.
  int64_t targets() const { return targets_; }

 private:
  struct Stretch {
    int64_t begin, rows;
  };
  Stretch stretch_of(TensorId tensor) const {
    const Program& program = executor_.program();
    const Tensor& own = program.tensor(tensor);
    return {program.mesh.index(own.rank_group, executor_.transfer().rank()) * own.rank_elements, own.elements()};
  }

  TensorId tensor_of(BatchPart part) const {
    constexpr Slot kSlots[kBatchParts] = {Slot::ids, Slot::positions, Slot::document_start, Slot::target_rows,
                                          Slot::target_tokens};
    return op_.find(kSlots[static_cast<size_t>(part)]);
  }

  Executor& executor_;
  const Op& op_;
  int64_t targets_ = 0;
};

}  // namespace snug
