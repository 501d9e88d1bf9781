#include "run/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>

#include "plan/plan.h"
#include "program/rules.h"
#include "recipe/keys.h"
#include "run/synthetic_run.h"

namespace snug {

namespace {

using Clock = std::chrono::steady_clock;

// Times every op of a step; one sample for each op of the Program, the median over its runs.
class OpTimes final : public Observer {
 public:
  void before(const Op&, const Binding&) override { start_ = Clock::now(); }
  void after(const Op& op, const Binding&) override {
    runs_[&op].push_back(std::chrono::duration<double>(Clock::now() - start_).count());
  }
  void add_to(std::vector<CostSample>& samples, const CostModel& model, const Program& program) {
    for (auto& [op, seconds] : runs_) {
      const Work work = cost_of(model, program, *op);
      const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
      std::nth_element(seconds.begin(), middle, seconds.end());
      samples.push_back({cost_class_of(program, *op), work.flops, work.bytes, *middle});
    }
  }

 private:
  Clock::time_point start_;
  std::map<const Op*, std::vector<double>> runs_;
};

ModelSpec model_of(int64_t hidden, int64_t width, int64_t heads, int64_t kv_heads, int64_t layers) {
  ModelSpec model;
  model.name = "probe";
  model.architecture = "LlamaForCausalLM";
  model.family = "llama";
  model.hidden_size = hidden;
  model.intermediate_size = width;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.head_size = hidden / heads;
  model.vocab_size = 8192;
  model.layers = layers;
  model.max_position = 4096;
  return model;
}

using Settings = std::vector<std::pair<const char*, const char*>>;

struct Measured {
  ModelSpec model;
  int64_t seq_len;
  Settings settings;
};

// Small and large matrices, each arithmetic, each way of keeping weights and states; enough layers that weights come from
// memory, as they do in models of any use.
std::vector<Measured> programs() {
  const ModelSpec narrow = model_of(576, 1536, 9, 3, 8), wide = model_of(1536, 4096, 24, 8, 2);
  const Settings wide_lora = {{"bf16", "true"}, {"lora_r", "64"}, {"lora_target_modules", "all-linear"}};
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
  return {{narrow, 256, full},      {narrow, 256, long_rows},  {narrow, 512, full_half}, {narrow, 512, lora_half},
          {narrow, 512, lora},      {narrow, 512, qlora_half}, {narrow, 256, qlora},     {narrow, 1024, long_rows},
          {narrow, 128, adafactor}, {narrow, 128, paged},      {wide, 128, full},        {wide, 256, full_half},
          {wide, 512, lora_half},   {narrow, 256, wide_lora},  {wide, 256, qlora_half},  {wide, 64, qlora_half},
          {wide, 64, qlora}};
}

void measure(const Measured& what, const Target& target, const std::filesystem::path& pages,
             std::vector<CostSample>& samples) {
  constexpr int kSteps = 1;
  Recipe recipe;
  recipe.seq_len = what.seq_len;
  for (const auto& [key, value] : what.settings) apply(recipe, key, value);
  const Plan plan = make_plan(what.model, recipe, target);
  Executor executor(plan.program, plan.layout, pages / "probe.pages");
  executor.commit();
  fill_at_random(executor, plan.model);
  RandomBatches batches(executor, plan.model);
  run_random_step(executor, batches, 1);
  OpTimes stopwatch;
  executor.observe(&stopwatch);
  for (int step = 2; step < 2 + kSteps; ++step) run_random_step(executor, batches, step);
  stopwatch.add_to(samples, target.cost, plan.program);
}

// The sums of a least-squares fit of seconds by FLOPs, bytes and one, each sample weighed by 1 / seconds: between absolute
// and relative errors, so that what matters decides and small ops are not forgotten.
struct Normal {
  std::array<std::array<double, 3>, 3> matrix{};
  std::array<double, 3> right{};
  double squares = 0;
};

std::array<double, 3> features(const CostSample& s) { return {s.flops / 1e9, s.bytes / 1e9, 1.0}; }

Normal normal_of(const std::vector<CostSample>& samples) {
  Normal normal;
  for (const CostSample& s : samples) {
    const std::array<double, 3> x = features(s);
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 3; ++j) normal.matrix[i][j] += x[i] * x[j] / s.seconds;
      normal.right[i] += x[i];
    }
    normal.squares += s.seconds;
  }
  return normal;
}

// The least squares over the chosen features alone, by Gauss elimination; none if they do not determine it.
std::optional<std::array<double, 3>> solve(const Normal& normal, const std::vector<size_t>& chosen) {
  std::array<std::array<double, 4>, 3> rows{};
  const size_t n = chosen.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) rows[i][j] = normal.matrix[chosen[i]][chosen[j]];
    rows[i][n] = normal.right[chosen[i]];
  }
  for (size_t pivot = 0; pivot < n; ++pivot) {
    const double scale = normal.matrix[chosen[pivot]][chosen[pivot]];
    if (!(std::abs(rows[pivot][pivot]) > 1e-9 * scale)) return std::nullopt;  // positive semidefinite: no exchange needed
    for (size_t i = 0; i < n; ++i) {
      if (i == pivot) continue;
      const double factor = rows[i][pivot] / rows[pivot][pivot];
      for (size_t j = pivot; j <= n; ++j) rows[i][j] -= factor * rows[pivot][j];
    }
  }
  std::array<double, 3> weights{};
  for (size_t i = 0; i < n; ++i) weights[chosen[i]] = rows[i][n] / rows[i][i];
  return weights;
}

// Squares left over, up to a constant.
double left_over(const Normal& normal, const std::array<double, 3>& weights) {
  double sum = normal.squares;
  for (size_t i = 0; i < 3; ++i) {
    sum -= 2 * weights[i] * normal.right[i];
    for (size_t j = 0; j < 3; ++j) sum += weights[i] * normal.matrix[i][j] * weights[j];
  }
  return sum;
}

// Non-negative least squares over so few features: the best of all subsets whose weights are positive.
CostRate fit_class(const std::vector<CostSample>& samples) {
  const Normal normal = normal_of(samples);
  std::array<double, 3> best{};
  double least = normal.squares;
  for (unsigned subset = 1; subset < 8; ++subset) {
    std::vector<size_t> chosen;
    for (size_t i = 0; i < 3; ++i)
      if ((subset >> i & 1U) != 0) chosen.push_back(i);
    const auto weights = solve(normal, chosen);
    if (!weights || std::any_of(weights->begin(), weights->end(), [](double w) { return w < 0; })) continue;
    if (const double left = left_over(normal, *weights); left < least) {
      least = left;
      best = *weights;
    }
  }
  return {.flops = best[0] > 0 ? 1e9 / best[0] : 0, .bytes = best[1] > 0 ? 1e9 / best[1] : 0, .seconds = best[2]};
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
