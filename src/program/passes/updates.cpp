#include "program/passes/updates.h"

#include <algorithm>

#include "program/passes/pages.h"

namespace snug {

namespace {

constexpr uint64_t kStreamOfEnds = 1 << 20;  // the same in both stages

OpKind kind_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adamw:
    case Optimizer::adamw_bf16:
    case Optimizer::adamw_8bit: return OpKind::adamw;
    case Optimizer::sgd: return OpKind::sgd;
    case Optimizer::lion:
    case Optimizer::lion_8bit: return OpKind::lion;
    case Optimizer::adafactor: return OpKind::adafactor;
  }
  return OpKind::adamw;
}

}  // namespace

Updates::Updates(Program& program, const Recipe& recipe) : program_(program), recipe_(recipe) {
  for (const Weight& weight : program.weights)
    if (weight.trainable)
      streams_.emplace(program.tensor(weight.tensor).storage, weight.at_ends ? kStreamOfEnds : streams_.size());
}

// With a master copy the parameter is only written.
Op Updates::update_of(const Trained& trained) const {
  Op update{kind_of(recipe_.optim)};
  update.attributes = {.epsilon = recipe_.adam_epsilon,
                       .beta1 = recipe_.adam_beta1,
                       .beta2 = recipe_.adam_beta2,
                       .weight_decay = trained.decays ? recipe_.weight_decay : 0.0,
                       .momentum = recipe_.momentum};
  update.attributes.noise_seed = recipe_.seed;
  update.attributes.noise_stream = streams_.at(program_.tensor(trained.parameter).storage);
  update.reads(Slot::gradient, trained.gradient).reads(Slot::scalars, program_.interface.scalars);
  const bool has_master = std::any_of(trained.states.begin(), trained.states.end(),
                                      [](const OptimizerState& state) { return state.slot == Slot::master; });
  update.with(Slot::parameter, has_master ? Access::write : Access::update, trained.parameter);
  for (const OptimizerState& state : trained.states) update.updates(state.slot, state.tensor);
  return update;
}

void Updates::add(Region& sink, const Trained& trained) {
  add_in_pages(program_, sink, update_of(trained), program_.tensor(trained.parameter).elements());
}

}  // namespace snug
