#include "advise/pytorch_time.h"

#include <algorithm>

#include "base/dtype.h"

namespace snug {

namespace {

// Measured on one H100 with torch 2.11 and transformers 5.17; see the header.
constexpr double kTouches = 3;  // a tensor that is made is written once and read twice, by the next op and by backward
constexpr double kSecondsPerTensor = 24e-6;  // of the host: Python, dispatch, allocator and launch
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
  const double card = micro_batch.flops / product_flops(setup, rates) + kTouches * micro_batch.bytes / memory;
  const double host = micro_batch.tensors * kSecondsPerTensor;
  const double update = passes_of(setup.optimizer) * static_cast<double>(trained * size_of(setup.weights)) / memory;
  const auto micro_batches = static_cast<double>(setup.accumulation);
  return micro_batches * (std::max(card, host) + micro_batch.waits * kSecondsPerWait) + update;
}

}  // namespace snug
