#include "plan/accelerator_target.h"

namespace snug {

namespace {

// What well-made kernels reach of the brochure's rates: large products three quarters, less where weights are dequantized on
// the way, attention half (FlashAttention-2's
// own figures on A100: 50 to 73 %, backward less), one pass over memory four fifths.
constexpr double kProduct = 0.75, kDequantized = 0.65, kAttention = 0.55, kAttentionBackward = 0.45, kMemory = 0.80,
                 kLink = 0.80;
constexpr double kLaunch = 4e-6;  // seconds from one kernel to the next

// A CUDA context with the libraries' code: 0.45 to 0.62 GiB were measured on cards from 2020 to 2025 by several authors.
constexpr int64_t kContextBytes = int64_t{640} << 20;
constexpr int64_t kPageBytes = int64_t{2} << 20;  // of a GPU's memory

double or_else(double rate, double other) { return rate > 0 ? rate : other; }

CostModel rates_of(const Accelerator& card) {
  const double memory = card.bandwidth * kMemory;
  const double half = or_else(or_else(card.bf16_flops, card.fp16_flops), card.fp32_flops);
  const double single = or_else(card.tf32_flops, card.fp32_flops);
  CostModel model;
  for (CostRate& rate : model.rates) rate = {.flops = card.fp32_flops, .bytes = memory, .seconds = kLaunch};
  const auto set = [&](CostClass cost_class, double flops) { model.rate(cost_class).flops = flops; };
  set(CostClass::product_fp32, single * kProduct);
  set(CostClass::product_half, half * kProduct);
  set(CostClass::product_thin, half * kProduct);
  set(CostClass::product_quantized, single * kDequantized);
  set(CostClass::product_half_quantized, half * kDequantized);
  for (const CostClass attention : {CostClass::attention_fp32, CostClass::attention_half}) set(attention, half * kAttention);
  for (const CostClass attention : {CostClass::attention_backward_fp32, CostClass::attention_backward_half})
    set(attention, half * kAttentionBackward);
  set(CostClass::loss_fp32, single * kProduct);
  set(CostClass::loss_half, half * kProduct);
  for (const CostClass link : kLinks) model.rate(link) = {.bytes = card.host_link * kLink, .seconds = kLaunch};
  for (const CostClass link : {CostClass::from_disk, CostClass::to_disk}) model.rate(link).bytes = kNominalDisk;
  model.rate(CostClass::between_ranks) = {.bytes = or_else(card.peer_link, card.host_link) * kLink, .seconds = kLaunch};
  // What machines for training are built with: 400 Gbit/s for each card (InfiniBand NDR).
  model.network = {.bytes = 50e9 * kLink, .seconds = kLaunch};
  model.rate(CostClass::host) = {};
  model.overlaps = true;
  model.collectives_beside = true;
  model.copies_beside = true;
  model.source = "the catalogue's rates of " + card.name;
  return model;
}

}  // namespace

Target target_of(const Accelerator& accelerator) {
  Target target{.kind = TargetKind::cuda, .name = accelerator.name};
  target.memory_bytes = accelerator.usable_bytes;
  target.page_bytes = kPageBytes;
  target.paged = Home::host;
  target.products = Arithmetic::bf16_pieces;
  target.multiplies_bf16 = accelerator.bf16_flops > 0;
  target.runtime_bytes = kContextBytes;
  target.cost = rates_of(accelerator);
  target.dollars_per_hour = accelerator.dollars_per_hour;
  return target;
}

}  // namespace snug
