#include "program/passes/updates.h"

#include <algorithm>

#include "base/scalars.h"

namespace snug {

namespace {

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

bool is_far(const Program& program, const Operand& operand) {
  return program.storage(program.tensor(operand.tensor).storage).home != Home::device;
}

// Parameters that an element of this operand stands for.
int64_t span_of(Slot slot) { return slot == Slot::first_absmax || slot == Slot::second_absmax ? kStateBlock : 1; }

}  // namespace

Updates::Updates(Program& program, const Recipe& recipe) : program_(program), recipe_(recipe) {
  for (const Weight& weight : program.weights)
    if (weight.trainable) streams_.emplace(program.tensor(weight.tensor).storage, streams_.size());
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
  Op update = update_of(trained);
  const bool paged =
      std::any_of(update.operands.begin(), update.operands.end(), [&](const Operand& o) { return is_far(program_, o); });
  if (!paged) {
    sink.add(std::move(update));
    return;
  }
  const int64_t elements = program_.tensor(trained.parameter).elements();
  const int64_t chunks = elements / kPagedElements, whole = chunks * kPagedElements;
  if (chunks > 0) add_paged(sink, update, 0, kPagedElements, chunks);
  if (whole < elements) add_paged(sink, update, whole, elements - whole, 1);
}

// The update of `count` chunks of `length` elements from element `begin` on. There are two windows where there are several
// chunks, so that one comes or goes while the other is worked on.
void Updates::add_paged(Region& sink, const Op& update, int64_t begin, int64_t length, int64_t count) {
  Region loop{.name = "paged", .stage = sink.stage, .axis = Axis::chunk, .count = count};
  Op of_chunk = update;
  std::vector<Op> after;
  for (Operand& operand : of_chunk.operands) {
    if (operand.slot == Slot::scalars) continue;
    const int64_t span = span_of(operand.slot);
    Tensor chunk = program_.tensor(operand.tensor);
    const int64_t size = size_of(chunk.dtype), held = (length + span - 1) / span;
    chunk.shape = {held};
    chunk.offset += begin / span * size;
    chunk.chunk_stride = held * size;
    if (!is_far(program_, operand)) {
      operand.tensor = program_.add_tensor(chunk);
      continue;
    }
    const Page page = page_of(chunk, count > 1 ? 2 : 1);
    operand.tensor = page.seen;
    loop.add(Op{OpKind::page_in, Lane::copy_in}).reads(Slot::far, page.far).writes(Slot::window, page.window);
    after.push_back(Op{OpKind::page_out, Lane::copy_out}.writes(Slot::far, page.far).reads(Slot::window, page.window));
  }
  loop.add(std::move(of_chunk));
  for (Op& page : after) loop.add(std::move(page));
  sink.add(std::move(loop));
}

// A chunk in the far home, and so many windows that its loop takes in turn.
Updates::Page Updates::page_of(const Tensor& chunk, int64_t turns) {
  Tensor far = chunk, window = chunk;
  far.dtype = DType::u8;
  far.shape = {align_up(chunk.bytes(), kFarAlignment)};
  window.name += ".window";
  window.storage = program_.add_storage(
      {.name = window.name, .bytes = checked_mul(far.bytes(), turns), .role = Role::temporary, .alignment = kFarAlignment});
  window.offset = window.layer_stride = window.instance = 0;
  window.instance_by_layer = false;
  window.chunk_stride = far.bytes();
  window.chunk_turns = turns;
  const TensorId seen = program_.add_tensor(window);
  window.dtype = far.dtype;
  window.shape = far.shape;
  return {program_.add_tensor(far), program_.add_tensor(window), seen};
}

}  // namespace snug
