#include "train/support_golden.h"
#include "run/settle_process.h"

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "formats/checkpoint.h"
#include "model/config.h"
#include "run/in_place.h"
#include "run/inverse_frequency.h"
#include "run/weight_files.h"
#include "train/trainer.h"

namespace snug::testing {

namespace fs = std::filesystem;
using Json = nlohmann::json;

fs::path golden_directory(const std::string& name) { return fs::path(SNUG_SOURCE_DIR) / "tests" / "golden" / name; }

Json read_json(const fs::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("no " + path.string());
  return Json::parse(file);
}

std::vector<float> read_floats(const fs::path& file, const std::string& tensor) {
  const Checkpoint checkpoint(file);
  const TensorEntry& entry = checkpoint.at(tensor);
  std::vector<float> values(static_cast<size_t>(entry.elements()));
  checkpoint.read(entry, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a.at(i) - b[i]) * (a.at(i) - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference) / std::sqrt(norm);
}

double relative_error(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  return relative_error(std::vector<double>(a.begin(), a.end()), std::vector<double>(b.begin(), b.end()));
}

int64_t count_targets(const Json& batch) {
  int64_t count = 0;
  for (size_t row = 0; row < batch["tokens"].size(); ++row) {
    size_t start = 0;
    for (const Json& length : batch["documents"][row]) {
      for (size_t t = start; t + 1 < start + length.get<size_t>(); ++t)
        count += batch["labels"][row][t + 1].get<int>() != -100 ? 1 : 0;
      start += length.get<size_t>();
    }
  }
  return count;
}

GoldenRun::GoldenRun(const fs::path& model, Recipe recipe, const std::vector<Json>& first_window, int64_t red_zone,
                     const Target& target) {
  recipe.model = model.string();
  recipe.batch = static_cast<int64_t>(first_window.at(0)["tokens"].size());
  recipe.seq_len = static_cast<int64_t>(first_window.at(0)["tokens"][0].size());
  recipe.accumulation = static_cast<int64_t>(first_window.size());
  settle_process(2);
  plan_ = make_plan(read_config(model), recipe, target, red_zone);
  executors_ = std::make_unique<BucketExecutors>(plan_, std::span<const int64_t>(),
                                                 fs::temp_directory_path() / ("snug-pages-" + std::to_string(getpid())));
  running_ = &executors_->of_plan();
}

void GoldenRun::run_in_a_bucket() {
  const int64_t length = plan_.program.seq_len;
  Recipe recipe = plan_.recipe;
  recipe.seq_len = std::min(2 * length, plan_.model.max_position);
  executors_.reset();
  plan_ = make_plan(plan_.model, recipe, plan_.target);
  executors_ = std::make_unique<BucketExecutors>(plan_, std::span(&length, 1));
  running_ = &executors_->holding(length);
}

void GoldenRun::load() { running_->run(program().region(Section::load), *this); }

double GoldenRun::forward_backward(const std::vector<Json>& window, double denominator) {
  window_ = &window;
  int64_t targets = 0;
  for (const Json& batch : window) targets += count_targets(batch);
  running_->set_scalar(Scalar::inverse_labels, 1.0 / (denominator > 0 ? denominator : static_cast<double>(targets)));
  running_->set_scalar(Scalar::loss_sum, 0);
  running_->set_scalar(Scalar::square_sum, 0);
  running_->run(program().region(Section::clear), *this);
  running_->run(program().region(Section::micro_batch), *this, static_cast<int64_t>(window.size()));
  return running_->scalar(Scalar::loss_sum);
}

double GoldenRun::evaluate(const Json& batch) {
  const std::vector<Json> window{batch};
  window_ = &window;
  running_->set_scalar(Scalar::inverse_labels, 1.0 / static_cast<double>(count_targets(batch)));
  running_->set_scalar(Scalar::loss_sum, 0);
  running_->run(program().region(Section::evaluate), *this);
  return running_->scalar(Scalar::loss_sum);
}

void GoldenRun::set_rate(double learning_rate, int64_t step) {
  running_->set_scalar(Scalar::learning_rate, learning_rate);
  running_->set_scalar(Scalar::step, static_cast<double>(step));
}

void GoldenRun::update(double learning_rate, int64_t step) {
  set_rate(learning_rate, step);
  running_->run(program().region(Section::norm), *this);
  if (plan_.recipe.optimizer_in_bwd) return;
  running_->run(program().region(Section::optimizer), *this);
  if (plan_.recipe.fp16) running_->run(program().region(Section::scale), *this);
}

void GoldenRun::run(const Op& op, int64_t repetition) {
  if (op.kind == OpKind::batch) {
    running_->set_scalar(Scalar::micro_batch, static_cast<double>(repetition));
    fill(op, window_->at(static_cast<size_t>(repetition)));
  }
  if (op.kind != OpKind::load) return;
  const auto scalars = InPlace::elements<double>(*running_, program().interface.scalars);
  std::fill(scalars.begin(), scalars.end(), 0.0);
  running_->set_scalar(Scalar::loss_scale, plan_.recipe.fp16 ? 65536.0 : 1.0);
  for (size_t id = 0; id < program().storages.size(); ++id)
    if (program().storages[id].role == Role::optimizer) running_->transfer().clear(static_cast<StorageId>(id));
  fill_inverse_frequencies(plan_.model, *running_);
  const auto staging = InPlace::elements(*running_, op.find(Slot::staging));
  load_model(*running_, plan_.model, Checkpoint(plan_.recipe.model), plan_.recipe.seed, load_room(*running_, op));
  if (!plan_.recipe.adapter.empty()) load_adapter(*running_, plan_.recipe.adapter, plan_.recipe.lora, staging);
}

void GoldenRun::fill(const Op& op, const Json& batch) {
  const auto tokens = InPlace::elements<int32_t>(*running_, op.find(Slot::ids));
  const auto positions = InPlace::elements<int32_t>(*running_, op.find(Slot::positions));
  const auto starts = InPlace::elements<int32_t>(*running_, op.find(Slot::document_start));
  const auto rows = InPlace::elements<int32_t>(*running_, op.find(Slot::target_rows));
  const auto targets = InPlace::elements<int32_t>(*running_, op.find(Slot::target_tokens));
  const size_t T = batch["tokens"][0].size();
  size_t count = 0;
  for (size_t b = 0; b < batch["tokens"].size(); ++b) {
    size_t start = 0;
    for (const Json& length : batch["documents"][b]) {
      const size_t end = start + length.get<size_t>();
      for (size_t t = start; t < end; ++t) {
        tokens[b * T + t] = batch["tokens"][b][t];
        positions[b * T + t] = static_cast<int32_t>(t - start);
        starts[b * T + t] = static_cast<int32_t>(start);
        if (t + 1 == end || batch["labels"][b][t + 1].get<int>() == -100) continue;
        rows[count] = static_cast<int32_t>(b * T + t);
        targets[count++] = batch["labels"][b][t + 1];
      }
      start = end;
    }
  }
  for (size_t i = count; i < rows.size(); ++i) rows[i] = targets[i] = 0;
  running_->set_scalar(Scalar::target_count, static_cast<double>(count));
}

}  // namespace snug::testing
