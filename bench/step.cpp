// One recipe's step, op kind by op kind, beside the machine's own ceilings:
//   build/bench/step MODEL|RECIPE.yaml [recipe keys as flags] [--steps N] [--fp32-products] [--whole]
// Random weights and tokens, no files. The ceiling is oneDNN's product of 2048 x 2048 x 2048 on the same threads, measured
// before and after every 5 steps; the figure is the median of the paired ratios, void if the ceiling moved by more than 15
// %.
// --whole: steps alone, not op by op, so that pages move beside compute as in training.
// --fp32-products: as on a CPU without bf16 arithmetic; where there is, the step is set against both ceilings, fp32's and
// bf16's. Needed work is 2 FLOPs a multiply-add of the forward products, of the input gradients that reach a trained
// weight, of the weight gradients that are trained, and of the causal half of attention (2 products forward, 4 backward);
// nothing that is computed again counts.

#include <fmt/format.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "ask/arguments.h"
#include "ask/target_flags.h"
#include "base/error.h"
#include "kernels/backend.h"
#include "model/catalogue.h"
#include "plan/plan.h"
#include "program/rules.h"
#include "run/executor.h"
#include "run/settle_process.h"
#include "run/synthetic_run.h"
#include "train/trainer.h"

namespace snug {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// ---- Ceilings

// oneDNN's own product of 2048 x 2048 x 2048, its second operand packed as it likes best.
class Ceiling {
 public:
  Ceiling(dnnl::memory::data_type type, int32_t threads) {
    omp_set_num_threads(threads);
    using dnnl::memory;
    const memory::desc a({kSize, kSize}, type, memory::format_tag::ab), b({kSize, kSize}, type, memory::format_tag::any);
    const memory::desc c({kSize, kSize}, memory::data_type::f32, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), engine_);
    primitive_ = dnnl::matmul(description);
    for (const auto& desc : {description.src_desc(), description.weights_desc(), description.dst_desc()}) {
      operands_.emplace_back(desc, engine_);
      std::memset(operands_.back().get_data_handle(), 0, desc.get_size());
    }
    measure();
  }

  // FLOP/s, the median of five.
  double measure() {
    std::vector<double> rates;
    for (int i = 0; i < 5; ++i) {
      const auto start = Clock::now();
      primitive_.execute(stream_,
                         {{DNNL_ARG_SRC, operands_[0]}, {DNNL_ARG_WEIGHTS, operands_[1]}, {DNNL_ARG_DST, operands_[2]}});
      stream_.wait();
      rates.push_back(2.0 * kSize * kSize * kSize / seconds_since(start));
    }
    return median(rates);
  }

 private:
  static constexpr int64_t kSize = 2048;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul primitive_;
  std::vector<dnnl::memory> operands_;
};

// Bytes/s of copying (read and write both counted) 256 MiB, far above a core's caches.
double copy_bandwidth(int32_t threads) {
  constexpr size_t kBytes = size_t{256} << 20;
  std::vector<std::byte> from(kBytes, std::byte{1}), to(kBytes);
  std::vector<double> rates;
  for (int i = 0; i < 6; ++i) {
    const auto start = Clock::now();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int32_t part = 0; part < threads; ++part) {
      const size_t begin = kBytes / static_cast<size_t>(threads) * static_cast<size_t>(part);
      std::memcpy(to.data() + begin, from.data() + begin, kBytes / static_cast<size_t>(threads));
    }
    if (i > 0) rates.push_back(2.0 * kBytes / seconds_since(start));
  }
  return median(rates);
}

// ---- What a step does

// Ops of one kind in one stage.
struct Share {
  std::string name;
  double seconds = 0, flops = 0, bytes = 0;
  int64_t calls = 0;
};

// "matmul forward", "matmul dW": products are told apart by what they are for.
std::string name_of_share(const Op& op, const Program& program, Stage stage) {
  std::string name = snug::name_of(op.kind);
  if (op.kind != OpKind::matmul) return name;
  const Tensor& b = program.tensor(op.find(Slot::b));
  const Tensor& c = program.tensor(op.find(Slot::c));
  const bool low = b.name.find("lora") != std::string::npos || c.name.find("lora") != std::string::npos;
  name = op.attributes.transpose_a ? "weight gradients" : stage == Stage::forward ? "linear forward" : "input gradients";
  return low ? name + ", LoRA" : name;
}

class Profile final : public Observer {
 public:
  explicit Profile(const Program& program) : program_(program) {
    for_each_op(program.root, [&](const Op& op, const Region& region) {
      places_.emplace_back(&op, index_of(name_of_share(op, program, region.stage)));
    });
    std::sort(places_.begin(), places_.end());
  }
  void before(const Op& /*op*/, const Binding& /*binding*/) override { start_ = Clock::now(); }
  void after(const Op& op, const Binding& /*binding*/) override {
    const double passed = seconds_since(start_);
    const auto place = std::lower_bound(places_.begin(), places_.end(), std::pair<const Op*, size_t>{&op, 0});
    Share& share = shares_[place->second];
    const Work work = rule_of(op.kind).work(program_, op);
    share.seconds += passed;
    share.flops += work.flops;
    share.bytes += work.bytes;
    ++share.calls;
  }
  void clear() {
    for (Share& share : shares_) share = {.name = share.name};
  }
  std::vector<Share> sorted() const {
    std::vector<Share> shares;
    for (const Share& share : shares_)
      if (share.calls > 0) shares.push_back(share);
    std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.seconds > b.seconds; });
    return shares;
  }

 private:
  size_t index_of(const std::string& name) {
    for (size_t i = 0; i < shares_.size(); ++i)
      if (shares_[i].name == name) return i;
    shares_.push_back({.name = name});
    return shares_.size() - 1;
  }

  const Program& program_;
  std::vector<Share> shares_;
  std::vector<std::pair<const Op*, size_t>> places_;
  Clock::time_point start_;
};

bool is_product(OpKind kind) {
  return kind == OpKind::matmul || kind == OpKind::head_loss || kind == OpKind::attention ||
         kind == OpKind::attention_backward;
}

// FLOPs of one region that the mathematics asks for, each layer counted.
double needed_flops(const Program& program, const Region& region, double times) {
  times *= static_cast<double>(region.count);
  double flops = 0;
  for (const Item& item : region.items) {
    if (const Region* child = item.region()) flops += needed_flops(program, *child, times);
    const Op* op = item.op();
    if (op == nullptr || !is_product(op->kind)) continue;
    double work = rule_of(op->kind).work(program, *op).flops;
    if (op->kind == OpKind::attention_backward) work *= 4.0 / 5.0;  // scores are computed again
    if (op->kind == OpKind::head_loss) work *= 1.0 - 1.0 / static_cast<double>(program.seq_len);  // last tokens
    flops += times * work;
  }
  return flops;
}

// What the first block computes without need where nothing below it is trained: the gradient of its own input.
double unneeded_flops(const Program& program) {
  bool reaches_embedding = false;
  for (const Weight& weight : program.weights)
    reaches_embedding = reaches_embedding || (weight.trainable && weight.parameter.kind == ParameterKind::embedding);
  if (reaches_embedding) return 0;
  double flops = 0;
  for_each_op(program.region(Section::backward), [&](const Op& op, const Region&) {
    if (op.kind == OpKind::matmul && !op.attributes.transpose_a &&
        program.tensor(op.find(Slot::c)).name == "d_attention_norm")
      flops += rule_of(op.kind).work(program, op).flops;
  });
  return flops;
}

// ---- Running it

// Steps set against one ceiling.
struct Against {
  const char* name;
  Ceiling ceiling;
  std::vector<double> rates, ratios;  // of the ceiling; one a step

  double spread() const {
    const auto [low, high] = std::minmax_element(rates.begin(), rates.end());
    return (*high - *low) / median(rates);
  }
};

struct Result {
  std::vector<Against> against;
  std::vector<double> seconds;  // one a step
};

Result measure(Executor& executor, const Plan& plan, Profile* profile, double flops, int64_t steps) {
  RandomBatches batches(executor, plan.model);
  int64_t done = 0;
  const auto run_step = [&] {
    const auto start = Clock::now();
    run_random_step(executor, batches, ++done);
    return seconds_since(start);
  };
  run_step();
  if (profile != nullptr) executor.observe(profile);
  Result result;
  const int32_t threads = plan.target.threads;
  result.against.push_back({"fp32", Ceiling(dnnl::memory::data_type::f32, threads), {}, {}});
  if (in_bf16(plan.target.products) && is_half(plan.precision.weights))
    result.against.push_back({"bf16", Ceiling(dnnl::memory::data_type::bf16, threads), {}, {}});
  for (Against& against : result.against) against.rates.push_back(against.ceiling.measure());
  constexpr int64_t kBetween = 5;
  for (int64_t first = 0; first < steps; first += kBetween) {
    const int64_t count = std::min(kBetween, steps - first);
    for (int64_t i = 0; i < count; ++i) result.seconds.push_back(run_step());
    for (Against& against : result.against) {
      const double before = against.rates.back();
      against.rates.push_back(against.ceiling.measure());
      for (auto passed = result.seconds.end() - count; passed != result.seconds.end(); ++passed)
        against.ratios.push_back(flops / *passed / ((before + against.rates.back()) / 2));
    }
  }
  return result;
}

void print(const Plan& plan, const Result& result, double flops, double bandwidth) {
  const double step = median(result.seconds);
  const auto tokens = static_cast<double>(plan.program.batch * plan.program.seq_len * plan.program.micro_batches);
  for (const Against& against : result.against) {
    fmt::print("{:.1f} % of the {} ceiling, {:.0f} GFLOP/s (spread {:.1f} %{})\n", 100 * median(against.ratios),
               against.name, median(against.rates) / 1e9, 100 * against.spread(),
               against.spread() > 0.15 ? ": VOID, above 15 %" : "");
  }
  fmt::print("{:.3f} s a step, {:.0f} tokens/s, needed work {:.1f} GFLOP\n", step, tokens / step, flops / 1e9);
  fmt::print("{} threads, {}{}, copying {:.1f} GB/s, {} steps\n", plan.target.threads, kernels::built_in_backend().name(),
             result.against.size() > 1 ? ", products in bf16" : "", bandwidth / 1e9, result.seconds.size());
}

// How long steps waited for pages, of all that were run.
void print_traffic(const PageLanes::Traffic& traffic, double seconds) {
  if (traffic.fetched + traffic.sent == 0) return;
  fmt::print("pages: {:.3f} GB fetched, {:.3f} GB sent, {:.1f} % of the time waited for\n",
             static_cast<double>(traffic.fetched) / 1e9, static_cast<double>(traffic.sent) / 1e9,
             100 * traffic.waited / seconds);
}

void print_ops(const Profile& profile, const Result& result, double bandwidth) {
  const double ceiling = median(result.against.front().rates);
  const auto steps = static_cast<double>(result.seconds.size());
  const double total = std::accumulate(result.seconds.begin(), result.seconds.end(), 0.0);
  fmt::print(
      "\n| op | share | ms a step | calls | GFLOP | MB | GFLOP/s | GB/s | of its fp32 roofline |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  double seen = 0;
  for (const Share& share : profile.sorted()) {
    seen += share.seconds;
    const double roofline = std::max(share.flops / ceiling, share.bytes / bandwidth);
    fmt::print("| {} | {:.1f} % | {:.1f} | {:.0f} | {:.1f} | {:.0f} | {:.0f} | {:.1f} | {:.0f} % |\n", share.name,
               100 * share.seconds / total, 1e3 * share.seconds / steps, static_cast<double>(share.calls) / steps,
               share.flops / steps / 1e9, share.bytes / steps / 1e6, share.flops / share.seconds / 1e9,
               share.bytes / share.seconds / 1e9, 100 * roofline / share.seconds);
  }
  fmt::print("| between ops | {:.1f} % | {:.1f} | | | | | | |\n", 100 * (total - seen) / total,
             1e3 * (total - seen) / steps);
}

int run(std::span<char* const> words) {
  Listener listener;
  const Arguments arguments = parse_arguments(words, {"steps=", "fp32-products", "whole"}, listener);
  const int64_t steps = std::stoll(arguments.value("steps", "20"));
  Recipe recipe = arguments.recipe;
  Target target = target_for(arguments);
  if (arguments.has("fp32-products")) target.products = Arithmetic::fp32;
  const Plan plan = make_plan(resolve_model(recipe.model), recipe, target);
  settle_process(plan.target.threads);
  const double bandwidth = copy_bandwidth(plan.target.threads);
  Executor executor(plan.program, plan.layout, recipe.output_dir + ".pages");
  executor.commit();
  fill_at_random(executor, plan.model);
  Profile profile(plan.program);
  const double flops = needed_flops(plan.program, plan.program.region(Section::step), 1) - unneeded_flops(plan.program);
  const bool whole = arguments.has("whole");
  const Result result = measure(executor, plan, whole ? nullptr : &profile, flops, steps);
  print(plan, result, flops, bandwidth);
  print_traffic(executor.traffic(), std::accumulate(result.seconds.begin(), result.seconds.end(), 0.0));
  if (!whole) print_ops(profile, result, bandwidth);
  return 0;
}

}  // namespace
}  // namespace snug

int main(int count, char** words) {
  try {
    return snug::run(std::span<char* const>(words + 1, static_cast<size_t>(count - 1)));
  } catch (const std::exception& error) {
    fmt::print(stderr, "step: {}\n", error.what());
    return 1;
  }
}
