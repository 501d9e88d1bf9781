#pragma once
// How a conversation becomes text: the place where a chat template fits in. Knows nothing of tokens.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/row_format.h"

namespace snug {

struct RenderedChat {
  struct Span {
    int64_t begin = 0, end = 0;  // bytes of the text
    int64_t message = 0;
  };
  std::string text;
  std::vector<Span> assistant;  // what the assistant says, in order
};

using ChatRenderer = std::function<RenderedChat(const Chat& chat)>;

}  // namespace snug
