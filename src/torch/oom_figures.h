#pragma once
// Sizes in a sentence and what the words around them call them. No grammar of the whole: sentences come reworded, wrapped
// and cut short, the words beside a figure stay.

#include <cstdint>
#include <optional>
#include <string_view>

#include "torch/oom_message.h"

namespace snug {

struct SizeFound {
  size_t begin = 0, end = 0;     // bytes of the text
  std::optional<int64_t> bytes;  // none if it is beyond 2^62
};

// The next size ("643.57 MiB", "0 bytes", "98765kB") from byte `from` on; a unit that is cut off makes it none.
// `binary_units`: "GB" means 2^30, as PyTorch's MPS backend has it.
std::optional<SizeFound> next_size(std::string_view text, size_t from, bool binary_units);

// Fills the fields of `message` from the sentence `text`.
void read_figures(OomMessage& message, std::string_view text);

}  // namespace snug
