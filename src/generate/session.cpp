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
  executor_->commit();
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
    const int64_t fed = std::min(rows, length() - stored);
    ahead_ = std::min(rows - fed, capacity() - length());
    first_ = stored - (rows - fed - ahead_);
    incoming_ = std::span(tokens_).subspan(static_cast<size_t>(first_), static_cast<size_t>(rows - ahead_));
    executor_->run(*steps_[step], *this);
    stored += fed;
  }
}

// The longest step that `left` tokens fill, or the next longer one where to fill it up costs less than another pass over the
// weights. What is missing stands at places behind the sequence, which nobody sees before its own tokens are there, or is
// tokens before them, fed again.
size_t Session::next_step(int64_t left) const {
  constexpr int64_t kPass = 48;  // rows of its cost where weights are packed: 35 ms, 0.7 a row (135 M, two cores)
  const std::vector<GenerationStep>& steps = plan_.program.generation.steps;
  size_t step = 0;
  while (steps[step].rows > left) ++step;
  if (step == 0 || steps[step].rows == left) return step;
  const int64_t longer = steps[step - 1].rows, missing = longer - left;
  return missing <= std::min(left, kPass) && longer <= capacity() ? step - 1 : step;
}

std::span<float> Session::logits() {
  executor_->run(plan_.program.region(Section::head), *this);
  return logits_room_;
}

void Session::run(const Op& op, int64_t) {
  if (op.kind == OpKind::load) load(op);
  if (op.kind == OpKind::fetch) executor_->transfer().read(op.find(Slot::x), 0, logits_room_);
  if (op.kind != OpKind::batch) return;
  // What fills the step up comes first, so that the last row is the last token's.
  const auto count = static_cast<int64_t>(incoming_.size());
  ElementWriter<int32_t> ids(executor_->transfer(), op.find(Slot::ids));
  ElementWriter<int32_t> positions(executor_->transfer(), op.find(Slot::positions));
  for (int64_t i = 0; i < ahead_ + count; ++i) {
    ids.put(i, incoming_[static_cast<size_t>(std::max<int64_t>(0, i - ahead_))]);
    positions.put(i, static_cast<int32_t>(i < ahead_ ? length() + i : first_ + i - ahead_));
  }
  ids.flush();
  positions.flush();
}

}  // namespace snug
