#pragma once
// Runs a compiled Program on the batches of a golden directory, without files of a dataset: the same executor, weights and
// ops that `snug train` uses.

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "run/bucket_executors.h"

namespace snug::testing {

std::filesystem::path golden_directory(const std::string& name);
nlohmann::json read_json(const std::filesystem::path& path);
std::vector<float> read_floats(const std::filesystem::path& file, const std::string& tensor);

// Norm-wise relative error |a - b| / |b|.
double relative_error(const std::vector<double>& a, const std::vector<double>& b);
double relative_error(std::span<const float> a, std::span<const float> b);

class GoldenRun : public Host {
 public:
  // `recipe`'s batch, length and accumulation are taken from the first window.
  GoldenRun(const std::filesystem::path& model, Recipe recipe, const std::vector<nlohmann::json>& first_window,
            int64_t red_zone = 0, const Target& target = this_cpu(2));

  // From here on windows run in the arena of a plan for sequences of up to twice the length, as a bucket of it.
  void run_in_a_bucket();

  Executor& executor() { return *running_; }
  const Program& program() const { return running_->program(); }
  const Plan& plan() const { return plan_; }

  void load();  // weights from the model's directory, adapter from recipe.adapter
  // Gradients of one window of micro-batches; returns the loss. `inverse_labels` 0: one over its targets.
  double forward_backward(const std::vector<nlohmann::json>& window, double denominator = 0);
  // The loss of one batch by the region that evaluates, of a recipe that does.
  double evaluate(const nlohmann::json& batch);
  // What an optimizer in backward is told before.
  void set_rate(double learning_rate, int64_t step);
  // The optimizer after it, unless it ran in backward.
  void update(double learning_rate, int64_t step);

  void run(const Op& op, int64_t repetition) override;

 private:
  void fill(const Op& op, const nlohmann::json& batch);

  Plan plan_;
  std::unique_ptr<BucketExecutors> executors_;
  Executor* running_ = nullptr;
  const std::vector<nlohmann::json>* window_ = nullptr;
};

// Targets of a batch: tokens predicted within documents.
int64_t count_targets(const nlohmann::json& batch);

}  // namespace snug::testing
