#pragma once
// What an evaluation batch's predictions got right, read from where the Program left them.

#include "comm/rank_rings.h"
#include "run/executor.h"
#include "train/evaluator.h"

namespace snug {

// Adds the batch that `running` has evaluated. Where ranks split it (`ranks`; null: it runs alone) all of them call this,
// and the first counts what they have together.
void count_batch(Executor& running, RankRings* ranks, EvaluationCounts& counts);

}  // namespace snug
