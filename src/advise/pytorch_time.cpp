#include "advise/pytorch_time.h"

#include <algorithm>

#include "base/dtype.h"

namespace snug {

namespace {

// Found on an H100's runs and on 33 of an H200's, torch 2.11 and transformers 5.17; see the header.
// A tensor that is made is written once and read up to twice, by the next op and by backward.
constexpr double kTouches = 2.33;
constexpr double kProducts = 1.26;           // values as they are, not ones: a card draws more power and slows its clock
constexpr double kSecondsPerTensor = 35e-6;  // of the host: Python, dispatch, allocator, launch; 24 to 46 by host and day
constexpr double kHooks = 1.3;               // non-reentrant checkpoints call Python for each tensor that forward saves
constexpr double kSecondsPerWait = 1.6e-3;   // LLM.int8's look for outliers: what was started is waited for

// How often an element of the parameter's size goes through memory in one update.
double passes_of(eager::Optimizer optimizer) {
  switch (optimizer) {
    case eager::Optimizer::adamw:              // torch's foreach: a pass of its own for each product, root and quotient
    case eager::Optimizer::paged_adamw_32bit:  // not measured, nor are Lion and pages
    case eager::Optimizer::lion_32bit: return 18;
    case eager::Optimizer::adamw_fused: return 7;
    case eager::Optimizer::adamw_8bit:
    case eager::Optimizer::paged_adamw_8bit:
    case eager::Optimizer::lion_8bit: return 33;  // its kernel is slower than its bytes
    case eager::Optimizer::adafactor: return 55;
    case eager::Optimizer::sgd: return 3;
  }
  return 0;
}

// Without autocast, products of fp32 are not in TF32 unless a program asks for it.
double product_flops(const eager::Setup& setup, const CostModel& rates) {
  const bool half = setup.autocast || setup.weights != DType::f32;
  return half ? rates.rate(CostClass::product_half).flops : rates.rate(CostClass::rows).flops;
}

}  // namespace

double pytorch_step_seconds(const PyTorchWork& micro_batch, const eager::Setup& setup, int64_t trained,
                            const CostModel& rates) {
  const double memory = rates.rate(CostClass::rows).bytes;
  const double card = kProducts * micro_batch.flops / product_flops(setup, rates) + kTouches * micro_batch.bytes / memory;
  const double hooks = setup.checkpointing == eager::Checkpointing::non_reentrant ? kHooks : 1;
  const double host = hooks * micro_batch.tensors * kSecondsPerTensor;
  const double update = passes_of(setup.optimizer) * static_cast<double>(trained * size_of(setup.weights)) / memory;
  const auto micro_batches = static_cast<double>(setup.accumulation);
  return micro_batches * (std::max(card, host) + micro_batch.waits * kSecondsPerWait) + update;
}

}  // namespace snug
