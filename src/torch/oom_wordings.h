#pragma once
// The wordings by which an out-of-memory message is recognized, as a table. To teach a new one, add its line.

#include <optional>
#include <string_view>

#include "torch/oom_message.h"

namespace snug {

// How sure a wording is. Where a log holds several, the first of the surest is taken for the cause.
enum class Surety { hint, certain };  // hint: "Killed", which may have had another reason

struct WordingFound {
  size_t begin = 0, end = 0;  // bytes of the line
  OomSource source = OomSource::torch_cuda;
  Surety surety = Surety::certain;
};

// The first certain wording of `line` that ends behind byte `after`, else its first hint; blanks of a wording may be any
// blanks.
std::optional<WordingFound> find_wording(std::string_view line, size_t after);

}  // namespace snug
