#pragma once
// Tiled MLPs (Bekman et al., "Arctic Long Sequence Training", 2025, section 3.2; Blockwise Parallel Transformers, Liu &
// Abbeel, 2023): what an MLP makes between its first product and its last is as wide as its hidden layer and is needed row
// by row. Its ops are run for so many rows at a time, one tile after the other, and what lies between them is one tile high.

#include "program/program.h"

namespace snug {

// Puts the ops around the MLP's activation of every block, forward, evaluation and backward, in a loop over tiles of `rows`
// tokens. Each row is reckoned as before; gradients of weights are added up tile by tile. What blocks keep for their
// backward stays whole. Call when all else has been put in place, and nothing is loaded yet. Throws std::logic_error where
// an op between them needs all rows at once.
void tile_mlp(Program& program, int64_t rows);

}  // namespace snug
