#pragma once
// Routed rows of a mixture of experts: how many there are, and in what tiles. Dropless routing within a static bound (every
// token reaches all its experts) as in Gale et al., "MegaBlocks", 2022: rows are sorted by expert and each expert's share is
// padded to whole tiles.

#include <cstdint>

namespace snug {

struct RoutedRows {
  int64_t rows = 0;  // bound, a multiple of `tile`
  int64_t tile = 0;
};
// For so many tokens that choose so many of the experts each.
RoutedRows routed_rows(int64_t tokens, int64_t experts, int64_t choices);
// For those of a rank's own experts, where so many ranks split them: all tokens may choose as many of these as they can.
RoutedRows routed_rows(int64_t tokens, int64_t experts, int64_t choices, int64_t ranks);

}  // namespace snug
