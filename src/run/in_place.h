#pragma once
// Tensors where they lie, for this room alone: weights are loaded into their place and saved from it without a copy. All
// others go through Transfer, as this room does for what has no address.

#include <cstddef>
#include <span>

#include "run/executor.h"

namespace snug {

struct InPlace {
  static std::byte* arena(const Executor& executor) { return executor.homes_.bases()[static_cast<size_t>(Home::device)]; }

  // One layer's view of a tensor; empty on disk.
  template <class T = std::byte>
  static std::span<T> elements(const Executor& executor, TensorId tensor, int64_t layer = 0) {
    const Binding binding{executor.program_, executor.layout_, executor.homes_.bases(), layer, 0, executor.transfer_.rank()};
    void* const address = binding.address(tensor);
    if (address == nullptr) return {};
    return {static_cast<T*>(address), static_cast<size_t>(executor.program_.tensor(tensor).bytes()) / sizeof(T)};
  }
};

}  // namespace snug
