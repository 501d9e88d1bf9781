#pragma once
// Routed rows of a mixture of experts: how many there are, in what tiles, and which products multiply them. Dropless routing
// within a static bound (every token reaches all its experts) as in Gale et al., "MegaBlocks", 2022: rows are sorted by
// expert and each expert's share is padded to whole tiles.

#include <cstdint>
#include <vector>

#include "program/ops/workspace.h"

namespace snug {

struct RoutedRows {
  int64_t rows = 0;  // bound, a multiple of `tile`
  int64_t tile = 0;
};
// For so many tokens that choose so many of the experts each.
RoutedRows routed_rows(int64_t tokens, int64_t experts, int64_t choices);

// Tiles of one expert that are multiplied together, at most.
int64_t expert_span(int64_t tile, int64_t rows, Arithmetic arithmetic);

// Every product that an expert_matmul op may run, the largest first; how many tiles each takes is for the routing to say.
std::vector<ProductShape> expert_products(const Program& program, const Op& op);

}  // namespace snug
