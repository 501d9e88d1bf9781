#include "train/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "plan/plan.h"
#include "program/rules.h"
#include "recipe/keys.h"
#include "train/synthetic_run.h"

namespace snug {

namespace {

using Clock = std::chrono::steady_clock;

// Times every op of a step; one sample for each op of the Program, the median over its runs.
class Stopwatch final : public Observer {
 public:
  void before(const Op&, const Binding&) override { start_ = Clock::now(); }
  void after(const Op& op, const Binding&) override {
    runs_[&op].push_back(std::chrono::duration<double>(Clock::now() - start_).count());
  }
  void add_to(std::vector<CostSample>& samples, const Program& program) {
    for (auto& [op, seconds] : runs_) {
      const OpRule& rule = rule_of(op->kind);
      if (rule.work == nullptr) continue;
      const Work work = rule.work(program, *op);
      const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
      std::nth_element(seconds.begin(), middle, seconds.end());
      samples.push_back({cost_class_of(program, *op), work.flops, work.bytes, *middle});
    }
  }

 private:
  Clock::time_point start_;
  std::map<const Op*, std::vector<double>> runs_;
};

ModelSpec model_of(int64_t hidden, int64_t width, int64_t heads, int64_t kv_heads, int64_t vocabulary) {
  ModelSpec model;
  model.name = "probe";
  model.architecture = "LlamaForCausalLM";
  model.family = "llama";
  model.hidden_size = hidden;
  model.intermediate_size = width;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.head_size = hidden / heads;
  model.vocab_size = vocabulary;
  model.layers = 2;
  model.max_position = 4096;
  return model;
}

using Settings = std::vector<std::pair<const char*, const char*>>;

struct Measured {
  ModelSpec model;
  int64_t seq_len;
  Settings settings;
};

// Small and large matrices, each arithmetic, each way of keeping weights and states.
std::vector<Measured> programs() {
  const ModelSpec narrow = model_of(576, 1536, 9, 3, 8192), wide = model_of(1536, 4096, 24, 8, 8192);
  const Settings full = {{"method", "full"}};
  const Settings full_half = {{"method", "full"}, {"bf16", "true"}, {"optim", "adamw_8bit"}};
  const Settings lora_half = {
      {"bf16", "true"}, {"lora_r", "16"}, {"lora_target_modules", "all-linear"}, {"lora_dropout", "0.1"}};
  const Settings lora = {{"lora_r", "8"}, {"lora_target_modules", "all-linear"}};
  const Settings qlora_half = {{"bf16", "true"}, {"load_in_4bit", "true"}, {"lora_r", "8"}};
  const Settings qlora = {{"load_in_4bit", "true"}, {"lora_r", "8"}};
  const Settings long_rows = {{"bf16", "true"}};
  const Settings adafactor = {{"method", "full"}, {"optim", "adafactor"}};
  const Settings paged = {{"method", "full"}, {"bf16", "true"}, {"optim", "paged_adamw_32bit"}};
  return {{narrow, 256, full},       {narrow, 512, full_half}, {narrow, 512, lora_half},  {narrow, 512, lora},
          {narrow, 512, qlora_half}, {narrow, 256, qlora},     {narrow, 1024, long_rows}, {narrow, 128, adafactor},
          {narrow, 128, paged},      {wide, 128, full},        {wide, 256, full_half},    {wide, 512, lora_half},
          {wide, 256, qlora_half}};
}

void measure(const Measured& what, const Target& target, const std::filesystem::path& pages,
             std::vector<CostSample>& samples) {
  constexpr int kSteps = 2;
  Recipe recipe;
  recipe.seq_len = what.seq_len;
  for (const auto& [key, value] : what.settings) apply(recipe, key, value);
  const Plan plan = make_plan(what.model, recipe, target);
  Executor executor(plan.program, plan.layout, pages / "probe.pages");
  fill_at_random(executor, plan.model);
  RandomBatches batches(executor, plan.model);
  run_random_step(executor, batches, 1);
  Stopwatch stopwatch;
  executor.observe(&stopwatch);
  for (int step = 2; step < 2 + kSteps; ++step) run_random_step(executor, batches, step);
  stopwatch.add_to(samples, plan.program);
}

// Two rates so that each sample takes the longer of its two times: the samples are sorted to the rate that bounds them, and
// the rates are their medians, weighed by time so that the ops that matter decide, until nothing changes.
double weighed_median(std::vector<std::pair<double, double>> rates) {  // rate, weight
  std::sort(rates.begin(), rates.end());
  double all = 0, seen = 0;
  for (const auto& [rate, weight] : rates) all += weight;
  for (const auto& [rate, weight] : rates)
    if ((seen += weight) >= all / 2) return rate;
  return 0;
}

CostRate fit_class(const std::vector<CostSample>& samples) {
  CostRate rate;
  for (const CostSample& s : samples) {
    rate.flops = std::max(rate.flops, s.flops / s.seconds);
    rate.bytes = std::max(rate.bytes, s.bytes / s.seconds);
  }
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::pair<double, double>> flops, bytes;
    for (const CostSample& s : samples) {
      const bool by_arithmetic = s.flops / rate.flops > s.bytes / rate.bytes;
      (by_arithmetic ? flops : bytes).emplace_back((by_arithmetic ? s.flops : s.bytes) / s.seconds, s.seconds);
    }
    if (!flops.empty()) rate.flops = weighed_median(flops);
    if (!bytes.empty()) rate.bytes = weighed_median(bytes);
  }
  return rate;
}

}  // namespace

CostModel fit_rates(const std::vector<CostSample>& samples, const CostModel& otherwise) {
  CostModel model = otherwise;
  for (int i = 0; i < kCostClassCount; ++i) {
    std::vector<CostSample> of_class;
    for (const CostSample& sample : samples)
      if (sample.cost_class == static_cast<CostClass>(i) && sample.seconds > 0 && sample.bytes > 0)
        of_class.push_back(sample);
    if (!of_class.empty()) model.rates[static_cast<size_t>(i)] = fit_class(of_class);
  }
  return model;
}

CostModel probe(const Target& target, const std::filesystem::path& pages, const std::function<void(double)>& progress) {
  std::vector<CostSample> samples;
  const std::vector<Measured> list = programs();
  for (size_t i = 0; i < list.size(); ++i) {
    measure(list[i], target, pages, samples);
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(list.size()));
  }
  CostModel model = fit_rates(samples, nominal_cpu_rates(target.threads));
  model.source = fmt::format("a probe of this machine with {} threads", target.threads);
  return model;
}

}  // namespace snug
