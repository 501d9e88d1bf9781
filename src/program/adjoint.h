#pragma once
// What an adjoint rule may do: ask whether a gradient is wanted, get the tensor to write or add it to, emit ops.
// Reverse-mode differentiation over a Program (Griewank & Walther, "Evaluating Derivatives", ch. 3); gradients are fp32.

#include <map>
#include <set>

#include "program/program.h"

namespace snug {

class Adjoint {
 public:
  // Ops go to the end of `sink`. `wanted` holds the tensors whose gradients are needed.
  Adjoint(Program& program, const std::set<TensorId>& wanted) : program_(program), wanted_(wanted) {}

  struct Destination {
    TensorId tensor = kNone;
    bool accumulate = false;
    Access access() const { return accumulate ? Access::update : Access::write; }
  };

  const Program& program() const { return program_; }
  Program& program() { return program_; }  // for temporaries
  bool wanted(TensorId tensor) const { return wanted_.contains(tensor); }
  // The gradient of `tensor` so far, kNone if nothing has reached it.
  TensorId gradient(TensorId tensor) const;
  // Where to put a contribution to the gradient of `tensor`: fresh memory at first, added to afterwards. A trained weight's
  // gradient is its view of the flat buffer, always added to.
  Destination destination(TensorId tensor);
  // The gradient of `tensor` is the memory of `gradient` (residual sums, in-place results).
  void share(TensorId tensor, TensorId gradient);
  // No tensor but this one has its gradient in the same memory: an op may change it in place.
  bool alone(TensorId tensor) const;
  // The op that made `tensor` has been passed: its gradient has been read for the last time.
  void passed(TensorId tensor);
  void emit(Op op);

  void into(Region& sink) { sink_ = &sink; }

 private:
  Program& program_;
  const std::set<TensorId>& wanted_;
  Region* sink_ = nullptr;
  std::map<TensorId, TensorId> gradients_;          // tensor -> gradient
  std::map<TensorId, std::set<TensorId>> sharers_;  // gradient -> tensors whose gradient it still is
};

// Adds the backward regions to a Program that holds a forward, and turns the loss op into its training form (it makes its
// gradients while the logits exist). Gradients of trained weights are created unplaced.
void differentiate(Program& program);

}  // namespace snug
