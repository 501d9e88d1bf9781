#include "generate/session.h"

#include <algorithm>

#include "base/error.h"
#include "run/inverse_frequency.h"
#include "run/settle_process.h"
#include "run/weight_files.h"

namespace snug {

Session::Session(const Plan& plan, const std::filesystem::path& model, const AdapterStack* adapters)
    : plan_(plan), model_(model), adapters_(adapters) {
  settle_process(plan.target.threads);
  tokens_.reserve(static_cast<size_t>(capacity()));
  for (size_t step = 0; step < plan.program.generation.steps.size(); ++step)
    steps_.push_back(&plan.program.region(Section::generation_step, static_cast<int32_t>(step)));
  executor_.emplace(plan.program, plan.layout);
  logits_room_ = executor_->transfer().host_room<float>(plan.program.generation.fetched);
  sampler_room_ = executor_->transfer().host_room<int32_t>(plan.program.generation.order);
  executor_->run(plan.program.region(Section::load), *this);
}

void Session::load(const Op& op) {
  Transfer& transfer = executor_->transfer();
  const auto staging = transfer.host_room<std::byte>(op.find(Slot::staging));
  transfer.clear(plan_.program.tensor(plan_.program.interface.scalars).storage);
  fill_inverse_frequencies(plan_.model, *executor_);
  load_model(*executor_, plan_.model, Checkpoint(model_), 0, {.staging = staging, .absmax = {}});
  if (adapters_ != nullptr) adapters_->load(*executor_, staging);
}

void Session::begin(int64_t length) {
  tokens_.clear();
  fill_inverse_frequencies(plan_.model, *executor_, std::max<int64_t>(1, length));
}

int64_t Session::rewind_to_common(std::span<const int32_t> tokens) {
  const auto differ = std::mismatch(tokens_.begin(), tokens_.end(), tokens.begin(), tokens.end());
  auto common = static_cast<size_t>(differ.first - tokens_.begin());
  if (common == tokens.size() && common > 0) --common;  // the last is fed for its logits
  tokens_.resize(common);
  return static_cast<int64_t>(common);
}

void Session::feed(std::span<const int32_t> tokens) {
  if (length() + static_cast<int64_t>(tokens.size()) > capacity())
    throw Error("the sequence has " + std::to_string(length() + static_cast<int64_t>(tokens.size())) + " tokens where " +
                    std::to_string(capacity()) + " are planned",
                "", "give a larger --max-length");
  int64_t stored = length();
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  while (stored < length()) {
    const size_t step = next_step(length() - stored);
    const int64_t rows = plan_.program.generation.steps[step].rows;
    first_ = std::min(stored, length() - rows);
    incoming_ = std::span(tokens_).subspan(static_cast<size_t>(first_), static_cast<size_t>(rows));
    executor_->run(*steps_[step], *this);
    stored = first_ + rows;
  }
}

// The longest step that `left` tokens fill; or a longer one, if they fill half of it and tokens before them the rest: to
// feed those again costs less than several passes over the weights.
size_t Session::next_step(int64_t left) const {
  const std::vector<GenerationStep>& steps = plan_.program.generation.steps;
  size_t step = 0;
  while (steps[step].rows > left) ++step;
  if (step == 0 || steps[step].rows == left) return step;
  const int64_t longer = steps[step - 1].rows;
  return longer <= length() && longer <= 2 * left ? step - 1 : step;
}

std::span<float> Session::logits() {
  executor_->run(plan_.program.region(Section::head), *this);
  return logits_room_;
}

void Session::run(const Op& op, int64_t) {
  if (op.kind == OpKind::load) load(op);
  if (op.kind == OpKind::fetch) executor_->transfer().read(op.find(Slot::x), 0, logits_room_);
  if (op.kind != OpKind::batch) return;
  executor_->transfer().write(op.find(Slot::ids), 0, incoming_);
  ElementWriter<int32_t> positions(executor_->transfer(), op.find(Slot::positions));
  for (int64_t i = 0; i < static_cast<int64_t>(incoming_.size()); ++i) positions.put(i, static_cast<int32_t>(first_ + i));
  positions.flush();
}

}  // namespace snug
