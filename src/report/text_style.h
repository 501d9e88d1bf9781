#pragma once
// How a screen is written: whether it has colour, and how wide it is. Whoever prints knows; the views do not look.

namespace snug {

struct TextStyle {
  bool colour = false;
  int width = 80;  // columns
};

}  // namespace snug
