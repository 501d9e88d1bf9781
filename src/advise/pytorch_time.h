#pragma once
// How long a step takes in PyTorch on a card. The card multiplies, and moves what tensors hold through its memory; the host
// meanwhile starts kernel after kernel, which takes longer where they are small. Found by least squares on 59 runs on an
// H100 and an H200 and held against 38 more (tests/golden/card_seconds.csv).

#include "eager/estimate.h"
#include "plan/cost.h"

namespace snug {

// Of forward and backward of one micro-batch.
struct PyTorchWork {
  double tensors = 0, bytes = 0, waits = 0;  // as eager::Work
  double flops = 0;
};

// Seconds of one optimizer step. `trained`: parameters; `rates`: of the card.
double pytorch_step_seconds(const PyTorchWork& micro_batch, const eager::Setup& setup, int64_t trained,
                            const CostModel& rates);

}  // namespace snug
