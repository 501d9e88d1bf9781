#pragma once
// A micro-batch in memory.

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "data/loader.h"

namespace snug::test {

class HeldBatch : public BatchSink {
 public:
  // Filled with what must not survive.
  HeldBatch(int64_t row_tokens, int64_t numbers) : BatchSink(row_tokens) {
    for (auto& part : parts_) part.assign(static_cast<size_t>(numbers), -77);
  }
  int64_t room(BatchPart part) const override { return static_cast<int64_t>(of(part).size()); }
  void write(BatchPart part, int64_t begin, std::span<const int32_t> values) override {
    std::vector<int32_t>& out = parts_[static_cast<size_t>(part)];
    if (begin + static_cast<int64_t>(values.size()) > room(part)) throw std::logic_error("more numbers than a part has");
    std::copy(values.begin(), values.end(), out.begin() + begin);
  }
  void write_targets(std::span<const int32_t> rows, std::span<const int32_t> tokens) override {
    write(BatchPart::target_rows, targets_, rows);
    write(BatchPart::target_tokens, targets_, tokens);
    targets_ += static_cast<int64_t>(rows.size());
  }
  void end_targets() override {
    constexpr int32_t kZero = 0;
    while (targets_ < room(BatchPart::target_rows)) write_targets({&kZero, 1}, {&kZero, 1});
    targets_ = 0;
  }
  const std::vector<int32_t>& of(BatchPart part) const { return parts_[static_cast<size_t>(part)]; }

 private:
  std::array<std::vector<int32_t>, kBatchParts> parts_;
  int64_t targets_ = 0;  // of the batch that comes
};

}  // namespace snug::test
