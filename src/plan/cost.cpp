#include "plan/cost.h"

#include <algorithm>

#include "op/product.h"
#include "plan/lane_clock.h"

namespace snug {

namespace {

constexpr int64_t kThin = 32;

bool is_half_head(const Program& program, const Op& op) {
  return is_half(program.tensor(op.find(Slot::hidden)).dtype) && op.cut.arithmetic != Arithmetic::fp32;
}

CostClass class_of_product(const Program& program, const Op& op) {
  if (op.cut.arithmetic == Arithmetic::fp32_thin) return CostClass::product_thin;
  const bool half = in_bf16(op.cut.arithmetic);
  const bool quantized = op.find(Slot::absmax) != kNone;
  if (op.kind == OpKind::matmul && !quantized) {
    // A rank-deep product that tiles compute still moves more than it multiplies; its traffic says so.
    const ProductShape shape = product_shape(view_of(program, op));
    if (std::min({shape.m, shape.n, shape.k}) <= kThin) return CostClass::product_thin;
  }
  if (quantized) return half ? CostClass::product_half_quantized : CostClass::product_quantized;
  return half ? CostClass::product_half : CostClass::product_fp32;
}

// Adds up a step, region by region.
class StepClock {
 public:
  StepClock(const CostModel& model, const Program& program) : model_(model), program_(program) {}

  // Seconds of one run of the region, which the step has `runs` of.
  double add(const Region& region, double runs) {
    const double iterations = runs * static_cast<double>(region.count);
    std::vector<double> children;
    double seconds = 0;
    for (const Item& item : region.items)
      if (const Region* child = item.region()) seconds += children.emplace_back(add(*child, iterations));
    if (model_.copies_beside && uses_lanes(region)) {
      const double all = beside(region, children);
      note(region, runs * (all - seconds * static_cast<double>(region.count)));
      return all;
    }
    for (const Item& item : region.items) {
      const Op* op = item.op();
      if (op == nullptr) continue;
      const double taken = seconds_of(model_, program_, *op);
      note(region, iterations * taken);
      seconds += taken;
    }
    return seconds * static_cast<double>(region.count);
  }

  const StepTime& time() const { return time_; }

 private:
  static bool uses_lanes(const Region& region) {
    return std::any_of(region.items.begin(), region.items.end(),
                       [](const Item& item) { return item.op() != nullptr && item.op()->lane != Lane::compute; });
  }

  void note(const Region& region, double seconds) {
    time_.seconds += seconds;
    time_.stages[static_cast<size_t>(region.stage)] += seconds;
  }

  // All iterations of a region whose lanes meet at its end: from some on, each takes as long as the one before.
  double beside(const Region& region, const std::vector<double>& children) const {
    constexpr int64_t kUntilSteady = 8;
    LaneClock clock(program_);
    double before = 0, end = 0;
    const int64_t walked = std::min(region.count, kUntilSteady);
    for (int64_t iteration = 0; iteration < walked; ++iteration) {
      before = end;
      size_t child = 0;
      for (const Item& item : region.items) {
        if (const Op* op = item.op()) run(clock, *op, region.layer_of(iteration));
        if (item.region() != nullptr) clock.run(children[child++]);
      }
      end = clock.end();
    }
    return end + static_cast<double>(region.count - walked) * (end - before);
  }

  void run(LaneClock& clock, const Op& op, int64_t layer) const {
    const double seconds = seconds_of(model_, program_, op);
    if (op.lane == Lane::comm && !model_.collectives_beside) return clock.run(seconds);
    clock.run(op, layer, seconds);
  }

  const CostModel& model_;
  const Program& program_;
  StepTime time_;
};

}  // namespace

const char* name_of(CostClass cost_class) {
  constexpr const char* kNames[kCostClassCount] = {"product_fp32",
                                                   "product_half",
                                                   "product_thin",
                                                   "product_quantized",
                                                   "product_half_quantized",
                                                   "attention_fp32",
                                                   "attention_half",
                                                   "attention_backward_fp32",
                                                   "attention_backward_half",
                                                   "loss_fp32",
                                                   "loss_half",
                                                   "rows",
                                                   "gather",
                                                   "dropout",
                                                   "update",
                                                   "update_8bit",
                                                   "update_adafactor",
                                                   "from_pinned",
                                                   "from_host",
                                                   "from_disk",
                                                   "to_pinned",
                                                   "to_host",
                                                   "to_disk",
                                                   "between_ranks",
                                                   "host"};
  return kNames[static_cast<int>(cost_class)];
}

CostClass link_from(Home home) {
  switch (home) {
    case Home::pinned: return CostClass::from_pinned;
    case Home::disk: return CostClass::from_disk;
    default: return CostClass::from_host;
  }
}

CostClass link_to(Home home) {
  switch (home) {
    case Home::pinned: return CostClass::to_pinned;
    case Home::disk: return CostClass::to_disk;
    default: return CostClass::to_host;
  }
}

void CostModel::slow_down(double factor) {
  for (CostRate& rate : rates) rate = {rate.flops / factor, rate.bytes / factor, rate.seconds * factor};
  correction *= factor;
}

CostClass cost_class_of(const Program& program, const Op& op) {
  switch (op.kind) {
    case OpKind::matmul:
    case OpKind::expert_matmul: return class_of_product(program, op);
    case OpKind::attention:
    case OpKind::cached_attention: return in_bf16(op.cut.arithmetic) ? CostClass::attention_half : CostClass::attention_fp32;
    case OpKind::attention_backward:
      return in_bf16(op.cut.arithmetic) ? CostClass::attention_backward_half : CostClass::attention_backward_fp32;
    case OpKind::head_loss: return is_half_head(program, op) ? CostClass::loss_half : CostClass::loss_fp32;
    case OpKind::embedding:
    case OpKind::embedding_backward:
    case OpKind::gather_rows:
    case OpKind::gather_rows_backward:
    case OpKind::combine:
    case OpKind::combine_backward: return CostClass::gather;
    case OpKind::dropout:
    case OpKind::noise: return CostClass::dropout;
    case OpKind::adamw:
    case OpKind::sgd:
    case OpKind::lion: return op.find(Slot::first_absmax) != kNone ? CostClass::update_8bit : CostClass::update;
    case OpKind::adafactor: return CostClass::update_adafactor;
    case OpKind::page_in: return link_from(program.home_of(op.find(Slot::far)));
    case OpKind::page_out: return link_to(program.home_of(op.find(Slot::far)));
    case OpKind::all_reduce:
    case OpKind::reduce_scatter:
    case OpKind::pass_on:
    case OpKind::send:
    case OpKind::receive:
    case OpKind::all_gather: return CostClass::between_ranks;
    case OpKind::load:
    case OpKind::save:
    case OpKind::batch:
    case OpKind::turn:
    case OpKind::fetch: return CostClass::host;
    default: return CostClass::rows;
  }
}

CostModel nominal_cpu_rates(int32_t threads) {
  constexpr double kFlops = 50e9, kHalfFlops = 150e9, kBytes = 5e9;  // of a core
  const double cores = threads;
  CostModel model;
  for (int i = 0; i < kCostClassCount; ++i)
    model.rates[static_cast<size_t>(i)] = {.flops = kFlops * cores, .bytes = kBytes * cores, .seconds = 5e-6};
  for (const CostClass half : {CostClass::product_half, CostClass::product_half_quantized, CostClass::attention_half,
                               CostClass::attention_backward_half, CostClass::loss_half})
    model.rate(half).flops = kHalfFlops * cores;
  for (const CostClass link : kLinks) model.rate(link) = {};  // the host is the device
  for (const CostClass link : {CostClass::from_disk, CostClass::to_disk}) model.rate(link) = {.bytes = kNominalDisk};
  model.rate(CostClass::between_ranks) = {.bytes = kNominalLink};
  model.rate(CostClass::host) = {};
  model.copies_beside = true;  // the disk needs no core
  return model;
}

Work cost_of(const CostModel& model, const Program& program, const Op& op) {
  Work work = rule_of(op.kind).work(program, op);
  const CostClass cost_class = cost_class_of(program, op);
  const bool decodes = cost_class == CostClass::product_quantized || cost_class == CostClass::product_half_quantized;
  if (decodes && !model.overlaps) work.bytes = static_cast<double>(program.tensor(op.find(Slot::b)).bytes());
  return work;
}

namespace {

// Of ranks on several nodes the slowest link counts.
const CostRate& rate_of(const CostModel& model, const Program& program, const Op& op) {
  const CostClass cost_class = cost_class_of(program, op);
  const bool pair = op.kind == OpKind::send || op.kind == OpKind::receive;
  if (cost_class == CostClass::between_ranks && model.ranks_per_node > 0 &&
      program.mesh.reach(op.attributes.group, pair) > model.ranks_per_node)
    return model.network;
  return model.rate(cost_class);
}

// A pipeline fills and empties once a step: as much longer as stages stand idle, for a chunk's time each.
double with_bubble(const Program& program) {
  if (program.mesh.pipeline == 1) return 1;
  const auto micro_batches = static_cast<double>(program.micro_batches);
  const double idle = static_cast<double>(program.mesh.pipeline - 1) / static_cast<double>(program.mesh.chunks);
  return (micro_batches + idle) / micro_batches;
}

}  // namespace

namespace {

// A ring of attention that is still one op: keys and values of all others, which come while it works.
double seconds_of_keys(const CostModel& model, const Program& program, const Op& op) {
  if (op.kind != OpKind::attention || op.attributes.ranks == 1 || op.attributes.ring_step >= 0) return 0;
  double seconds = 0;
  for (const Slot slot : {Slot::k, Slot::v}) {
    Op pass{OpKind::pass_on};
    pass.attributes = op.attributes;
    seconds += seconds_of(model, program, pass.reads(Slot::x, op.find(slot)));
  }
  return static_cast<double>(op.attributes.ranks - 1) * seconds;
}

}  // namespace

double seconds_of(const CostModel& model, const Program& program, const Op& op) {
  const CostRate& rate = rate_of(model, program, op);
  const Work work = cost_of(model, program, op);
  const double arithmetic = rate.flops > 0 ? work.flops / rate.flops : 0;
  const double traffic = rate.bytes > 0 ? work.bytes / rate.bytes : 0;
  const double alone = rate.seconds + (model.overlaps ? std::max(arithmetic, traffic) : arithmetic + traffic);
  return std::max(alone, seconds_of_keys(model, program, op));
}

StepTime step_time(const CostModel& model, const Program& program) {
  StepClock clock(model, program);
  clock.add(program.region(Section::step), 1);
  StepTime time = clock.time();
  time.seconds *= with_bubble(program);
  return time;
}

}  // namespace snug
