#include "advise/pytorch_engine.h"

#include <algorithm>

#include "advise/workload.h"
#include "base/error.h"
#include "eager/held.h"

namespace snug {

namespace {

// Runs of so many layers tell what a layer adds; a model of few more is followed as it is.
constexpr int64_t kFewLayers = 2, kMoreLayers = 4, kWorthIt = 12;
// Blocks that see a window take turns with others in at most so many.
constexpr int64_t kTurn = 6;

PyTorchWork done_in(const eager::Plan& plan) {
  PyTorchWork sum;
  for (const eager::Phase phase : {eager::Phase::forward, eager::Phase::backward}) {
    const eager::Work& work = plan.work[static_cast<size_t>(phase)];
    sum.tensors += static_cast<double>(work.tensors);
    sum.bytes += static_cast<double>(work.bytes);
    sum.waits += static_cast<double>(work.waits);
  }
  return sum;
}

bool takes_turns(const std::vector<bool>& layers) {
  return std::ranges::find(layers, true) != layers.end() && std::ranges::find(layers, false) != layers.end();
}

// After how many layers they are alike again.
int64_t period_of(const std::vector<bool>& layers) {
  size_t period = kFewLayers;
  while (period < layers.size() &&
         !std::equal(layers.begin() + static_cast<std::ptrdiff_t>(period), layers.end(), layers.begin()))
    ++period;
  return static_cast<int64_t>(period);
}

// So many times as far beyond b as b is from a.
PyTorchWork beyond(const PyTorchWork& a, const PyTorchWork& b, double times) {
  return {.tensors = b.tensors + (b.tensors - a.tensors) * times,
          .bytes = b.bytes + (b.bytes - a.bytes) * times,
          .waits = b.waits + (b.waits - a.waits) * times};
}

}  // namespace

eager::Target pytorch_target(const Accelerator& card) {
  if (card.compute_capability == 0) throw Error(card.name + " is no CUDA card: PyTorch there is not modelled yet");
  if (card.compute_capability < 80) throw Error("cards before Ampere are not modelled yet, " + card.name + " is one");
  eager::Target target{.compute_capability = card.compute_capability, .memory_bytes = card.usable_bytes};
  if (card.multiprocessors > 0) target.multiprocessors = card.multiprocessors;
  target.context_least_bytes = card.context_least_bytes;
  target.context_most_bytes = card.context_most_bytes;
  return target;
}

PyTorchEngine::PyTorchEngine(const ModelSpec& model, const Target& target, PyTorchSide side)
    : model_(model), target_(target), side_(std::move(side)) {}

int64_t PyTorchEngine::budget_of(const eager::Target& card) {
  const int64_t room = std::max<int64_t>(0, card.memory_bytes - card.context_most_bytes);
  return static_cast<int64_t>(static_cast<double>(room) / (1 + kReservedMargin)) + card.context_most_bytes;
}

std::optional<eager::Setup> PyTorchEngine::setup_of(const Recipe& recipe) const {
  try {
    return side_.setup(recipe);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<eager::Plan> PyTorchEngine::run(const eager::Setup& setup, int64_t layers, const eager::Target& card) const {
  ModelSpec model = model_;
  model.layers = layers;
  for (std::vector<bool>* kinds : {&model.local_layers, &model.delta_net.layers})
    if (!kinds->empty()) kinds->resize(static_cast<size_t>(layers));
  eager::Target unlimited = card;
  unlimited.memory_bytes = 0;
  try {
    return eager::estimate(model, setup, side_.stack, unlimited);
  } catch (const Error&) {
    return std::nullopt;
  }
}

const eager::Plan* PyTorchEngine::follow(const Recipe& recipe) {
  const auto setup = setup_of(recipe);
  if (!setup) return nullptr;
  for (const Run& run : whole_)
    if (run.setup == *setup) return run.plan ? &*run.plan : nullptr;
  whole_.push_back({*setup, run(*setup, model_.layers, side_.card)});
  return whole_.back().plan ? &*whole_.back().plan : nullptr;
}

std::optional<eager::Plan> PyTorchEngine::first_step(const Recipe& recipe, bool own_loop) const {
  auto setup = setup_of(recipe);
  if (!setup) return std::nullopt;
  setup->steps = 1;
  if (own_loop) {
    setup->own_loop = true;
    setup->chunked_loss = false;
    setup->cache = setup->checkpointing == eager::Checkpointing::none;  // as the model's own configuration has it
  }
  return run(*setup, model_.layers, side_.card);
}

std::pair<int64_t, int64_t> PyTorchEngine::few_and_more() const {
  if (takes_turns(model_.delta_net.layers))
    return {period_of(model_.delta_net.layers), 2 * period_of(model_.delta_net.layers)};
  return takes_turns(model_.local_layers) ? std::pair(kTurn, 2 * kTurn) : std::pair(kFewLayers, kMoreLayers);
}

// What tensors hold at each phase's peak grows by the same with every layer, to a few tenths of a percent; what the
// allocator reserves beside it does not.
int64_t PyTorchEngine::from_few_layers(const eager::Setup& setup) const {
  eager::Setup shorter = setup;
  shorter.accumulation = std::min<int64_t>(2, setup.accumulation);
  if (setup.optimizer == eager::Optimizer::sgd) shorter.steps = 1;  // no states: a second step is like the first
  const auto layers = few_and_more();
  const int64_t few_layers = layers.first, more_layers = layers.second;
  const auto few = run(shorter, few_layers, side_.card), more = run(shorter, more_layers, side_.card);
  if (!few || !more) return kNever;
  const auto extended = [&](int64_t at_few, int64_t at_more) {
    return at_more + (at_more - at_few) * (model_.layers - more_layers) / (more_layers - few_layers);
  };
  int64_t bytes = 0;
  for (size_t phase = 0; phase < eager::kPhases; ++phase)
    bytes = std::max(bytes, extended(few->phases[phase].allocated_bytes, more->phases[phase].allocated_bytes));
  return bytes + side_.card.context_most_bytes;
}

// What is done grows by the same with every layer, and with every row.
PyTorchWork PyTorchEngine::work_of(const eager::Setup& setup) {
  eager::Setup rows = setup;
  rows.batch = rows.accumulation = rows.steps = 1;
  rows.lengths.clear();
  if (setup.ranks.count == 1) rows.optimizer = eager::Optimizer::adamw;  // forward and backward are the same under each
  auto known = std::ranges::find(works_, rows, &RowWork::setup);
  if (known == works_.end()) {
    works_.push_back({rows, {}});
    known = std::prev(works_.end());
    for (PyTorchWork& work : known->of_rows) {
      work = work_of_rows(rows);
      ++rows.batch;
    }
  }
  return beyond(known->of_rows[0], known->of_rows[1], static_cast<double>(setup.batch - 2));
}

PyTorchWork PyTorchEngine::work_of_rows(const eager::Setup& setup) const {
  if (model_.layers <= kWorthIt) {
    const auto whole = run(setup, model_.layers, side_.card);
    return whole ? done_in(*whole) : PyTorchWork{};
  }
  const auto [few_layers, more_layers] = few_and_more();
  const auto few = run(setup, few_layers, side_.card), more = run(setup, more_layers, side_.card);
  if (!few || !more) return {};
  return beyond(done_in(*few), done_in(*more),
                static_cast<double>(model_.layers - more_layers) / static_cast<double>(more_layers - few_layers));
}

double PyTorchEngine::step_seconds(const Recipe& recipe) {
  const auto setup = setup_of(recipe);
  if (!setup) return 0;
  double flops = 0;
  int64_t trained = 0;
  if (model_.unmodelled_step.empty()) {
    const Estimate estimated = estimate(model_, recipe, target_);
    flops = estimated.step_flops;
    trained = estimated.trainable_parameters;
  } else {  // gradients are as large as what they are of
    flops = products_with_weights(model_, recipe);
    trained = eager::held_bytes(model_, *setup, side_.stack).gradients / size_of(setup->weights);
  }
  PyTorchWork work = work_of(*setup);
  work.flops = flops / static_cast<double>(setup->accumulation);
  return pytorch_step_seconds(work, *setup, trained, target_.cost);
}

int64_t PyTorchEngine::about_bytes(const Recipe& recipe) {
  const auto setup = setup_of(recipe);
  if (!setup) return kNever;
  for (const Run& run : whole_)
    if (run.setup == *setup) return run.plan ? run.plan->device_high_bytes : kNever;
  if (model_.layers <= kWorthIt) {
    const eager::Plan* plan = follow(recipe);
    return plan == nullptr ? kNever : plan->device_high_bytes;
  }
  for (const Run& run : few_)
    if (run.setup == *setup) return run.about_bytes;
  few_.push_back({*setup, {}, from_few_layers(*setup)});
  return few_.back().about_bytes;
}

Need PyTorchEngine::about(const Recipe& recipe) {
  const int64_t bytes = about_bytes(recipe);
  return {bytes, bytes == kNever ? 0 : step_seconds(recipe)};
}

Need PyTorchEngine::exactly(const Recipe& recipe) {
  const eager::Plan* plan = follow(recipe);
  return plan == nullptr ? Need{kNever, 0} : Need{plan->device_high_bytes, step_seconds(recipe)};
}

const Accelerator* PyTorchEngine::smallest_card(const Recipe& recipe) const {
  const auto setup = setup_of(recipe);
  if (!setup) return nullptr;
  const auto here = run(*setup, model_.layers, side_.card);
  if (!here) return nullptr;
  std::vector<const Accelerator*> cards;  // kernels differ by card, but not by much
  for (const Accelerator& card : accelerators())
    if (card.compute_capability >= 80 && card.usable_bytes > here->reserved_bytes) cards.push_back(&card);
  std::stable_sort(cards.begin(), cards.end(),
                   [](const Accelerator* a, const Accelerator* b) { return a->usable_bytes < b->usable_bytes; });
  for (const Accelerator* card : cards) {
    const eager::Target target = pytorch_target(*card);
    const auto plan = run(*setup, model_.layers, target);
    if (plan && plan->device_high_bytes <= budget_of(target)) return card;
  }
  return nullptr;
}

}  // namespace snug
