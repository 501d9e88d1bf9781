#pragma once
// A long array that grows in pieces of 4096 elements: nothing moves and nothing is held twice while it grows, so that
// tables of millions of records peak at what they hold.

#include <cstddef>
#include <memory>
#include <vector>

namespace snug {

template <class T>
class ChunkedArray {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  const T& operator[](size_t i) const { return chunks_[i / kChunk][i % kChunk]; }
  T& operator[](size_t i) { return chunks_[i / kChunk][i % kChunk]; }

  void push_back(const T& value) {
    if (size_ / kChunk == chunks_.size()) chunks_.push_back(std::make_unique_for_overwrite<T[]>(kChunk));
    (*this)[size_++] = value;
  }

 private:
  static constexpr size_t kChunk = size_t{1} << 12;
  std::vector<std::unique_ptr<T[]>> chunks_;
  size_t size_ = 0;
};

}  // namespace snug
