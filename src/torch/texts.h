#pragma once
// Texts held once each and named by a number; 0 is the empty text. Bounded, for what a hostile file may bring.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "torch/id_table.h"

namespace snug {

using TextId = uint32_t;

class Texts {
 public:
  Texts() { intern(""); }

  // Valid UTF-8: what is not is replaced by U+FFFD. Throws Error beyond 256 MiB in all.
  TextId intern(std::string_view text);

  std::string_view operator[](TextId text) const { return texts_[text]; }

 private:
  std::deque<std::string> texts_;
  IdTable table_;
  size_t bytes_ = 0;
};

}  // namespace snug
