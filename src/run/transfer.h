#pragma once
// Transfer: how the host reads and writes the tensors of a run, wherever they lie: by copies. Nobody above this room holds
// an address of a home, so that a backend whose memory the host cannot reach has one place to be asked in.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "plan/layout.h"
#include "program/program.h"
#include "run/homes.h"

namespace snug {

class Transfer {
 public:
  Transfer(const Program& program, const Layout& layout, Homes& homes) : program_(program), layout_(layout), homes_(homes) {}

  // Bytes of one layer's view of a tensor, from byte `begin` on. What other ranks hold of it is not written; to read it is
  // a mistake.
  void read_bytes(TensorId tensor, int64_t layer, int64_t begin, std::span<std::byte> out) const;
  void write_bytes(TensorId tensor, int64_t layer, int64_t begin, std::span<const std::byte> bytes);

  // Its elements, from element `begin` on.
  template <class T>
  void read(TensorId tensor, int64_t begin, std::span<T> out, int64_t layer = 0) const {
    require_size(tensor, sizeof(T));
    read_bytes(tensor, layer, begin * static_cast<int64_t>(sizeof(T)), std::as_writable_bytes(out));
  }
  template <class T>
  void write(TensorId tensor, int64_t begin, std::span<const T> values, int64_t layer = 0) {
    require_size(tensor, sizeof(T));
    write_bytes(tensor, layer, begin * static_cast<int64_t>(sizeof(T)), std::as_bytes(values));
  }

  const Program& program() const { return program_; }

  // Whose homes these are. Of a tensor that is spread over ranks each writes, and may read, what it holds.
  void set_rank(int64_t rank) { rank_ = rank; }
  int64_t rank() const { return rank_; }
  // The micro-batch whose tensors are read and written, where several are on their way.
  void set_turn(int64_t turn) { turn_ = turn; }
  // The bytes that this rank holds of one layer's view of a tensor: [first, second).
  std::pair<int64_t, int64_t> held_bytes(TensorId tensor, int64_t layer) const;

  // Zeroes a storage that lives throughout the run.
  void clear(StorageId storage);

  // Room that the plan gives to the host: memory of its own, which no op of a backend reads or writes. Empty for kNone.
  template <class T>
  std::span<T> host_room(TensorId tensor) const {
    if (tensor == kNone) return {};
    require_size(tensor, sizeof(T));
    const std::span<std::byte> bytes = host_bytes(tensor);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

 private:
  int64_t place_of(TensorId tensor, int64_t layer, int64_t begin, size_t bytes) const;
  std::span<std::byte> host_bytes(TensorId tensor) const;
  void require_size(TensorId tensor, size_t bytes) const;

  const Program& program_;
  const Layout& layout_;
  Homes& homes_;
  int64_t rank_ = 0, turn_ = 0;
};

// Elements of one tensor, one after the other: gathered here and written some hundreds at a time.
template <class T>
class ElementWriter {
 public:
  ElementWriter(Transfer& to, TensorId tensor, int64_t layer = 0) : to_(to), tensor_(tensor), layer_(layer) {}

  void put(int64_t index, T value) {
    if (count_ == held_.size() || index != begin_ + static_cast<int64_t>(count_)) {
      flush();
      begin_ = index;
    }
    held_[count_++] = value;
  }
  // Call when all are put.
  void flush() {
    if (count_ > 0) to_.write(tensor_, begin_, std::span<const T>(held_).first(count_), layer_);
    count_ = 0;
  }

 private:
  Transfer& to_;
  TensorId tensor_;
  int64_t layer_, begin_ = 0;
  size_t count_ = 0;
  std::array<T, 512> held_;
};

// Elements of one tensor, at ascending indices: read some hundreds at a time.
template <class T>
class ElementReader {
 public:
  ElementReader(const Transfer& from, TensorId tensor)
      : from_(from), tensor_(tensor), elements_(from.program().tensor(tensor).elements()) {}

  T at(int64_t index) {
    if (index < begin_ || index >= end_) {
      begin_ = index;
      end_ = std::min(elements_, index + static_cast<int64_t>(held_.size()));
      from_.read(tensor_, begin_, std::span(held_).first(static_cast<size_t>(end_ - begin_)));
    }
    return held_[static_cast<size_t>(index - begin_)];
  }

 private:
  const Transfer& from_;
  TensorId tensor_;
  int64_t elements_, begin_ = 0, end_ = 0;
  std::array<T, 512> held_;
};

}  // namespace snug
