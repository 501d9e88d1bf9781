#pragma once
// Cost model: how long a Program takes on a Target. On an accelerator an op needs the longer of its arithmetic and its
// traffic (the roofline of Williams et al., 2009), each at the rate of its class; on a CPU, where the same threads copy and
// multiply, their sum; and a little to start. The rates come from a probe of this machine or from the catalogue of
// accelerators; it knows no clock. Where copies run beside compute, a region takes as long as the last of its lanes.

#include <array>
#include <cstdint>
#include <string>

#include "program/program.h"
#include "program/rules.h"

namespace snug {

// Ops that run at one rate. Products are told apart by arithmetic and by what their matrix is kept in; half: in bf16.
enum class CostClass : uint8_t {
  product_fp32,
  product_half,       // bf16 or f16 operands
  product_thin,       // one short dimension: a LoRA rank
  product_quantized,  // fp32 arithmetic on codes
  product_half_quantized,
  attention_fp32,
  attention_half,
  attention_backward_fp32,
  attention_backward_half,
  loss_fp32,  // head and cross entropy
  loss_half,
  rows,    // norms, rotations, activations, sums: one pass over their operands
  gather,  // embeddings and routing
  dropout,
  update,  // an optimizer's step over 16- and 32-bit states
  update_8bit,
  update_adafactor,
  from_pinned,  // copies over the links between the device and its other homes
  from_host,
  from_disk,
  to_pinned,
  to_host,
  to_disk,
  between_ranks,  // collectives
  host,           // batches; loading and saving lie outside steps
};
constexpr int kCostClassCount = 25;
inline constexpr std::array kLinks = {CostClass::from_pinned, CostClass::from_host, CostClass::from_disk,
                                      CostClass::to_pinned,   CostClass::to_host,   CostClass::to_disk};
// The link by which the device copies from a home that is not its own, and to it.
CostClass link_from(Home home);
CostClass link_to(Home home);
const char* name_of(CostClass cost_class);

CostClass cost_class_of(const Program& program, const Op& op);

struct CostRate {
  double flops = 0;    // per second; 0: arithmetic costs nothing
  double bytes = 0;    // per second; 0: traffic costs nothing
  double seconds = 0;  // to start one op
};

struct CostModel {
  std::array<CostRate, kCostClassCount> rates{};
  bool overlaps = false;            // arithmetic hides traffic, or the other way round
  bool copies_beside = false;       // copies between homes run beside compute, on lanes of their own
  bool collectives_beside = false;  // likewise what ranks send each other
  int64_t ranks_per_node = 0;       // ranks beyond so many send by `network`; 0: all are on one node
  CostRate network;
  double correction = 1;  // what slow_down has done so far
  std::string source;     // "probed on 2 threads", "catalogue rates of A100-SXM4-80GB"; empty: nothing is known

  bool known() const { return !source.empty(); }
  CostRate& rate(CostClass cost_class) { return rates[static_cast<size_t>(cost_class)]; }
  const CostRate& rate(CostClass cost_class) const { return rates[static_cast<size_t>(cost_class)]; }
  // Every op takes so many times as long.
  void slow_down(double factor);
};

inline constexpr double kNominalDisk = 1e9;  // bytes per second of a disk of which nothing is known

inline constexpr double kNominalLink = 1e9;  // bytes per second that a rank sends to another, likewise

// Rates of no machine in particular, for ranking alone: a core with wide vectors, memory that several share.
CostModel nominal_cpu_rates(int32_t threads);

// What an op's time depends on, its rule's work but for products with quantized weights where arithmetic hides no traffic:
// cores that multiply decode first, so that their bytes are those of the codes.
Work cost_of(const CostModel& model, const Program& program, const Op& op);

// Seconds of one execution.
double seconds_of(const CostModel& model, const Program& program, const Op& op);

// Seconds of one optimizer step, in all and by stage.
struct StepTime {
  double seconds = 0;
  std::array<double, kStageCount> stages{};
};
StepTime step_time(const CostModel& model, const Program& program);

}  // namespace snug
