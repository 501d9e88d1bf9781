#pragma once
// What a recipe needs in PyTorch on a card, by the eager model: whole runs are followed for every figure that is shown, runs
// of a few layers tell which are worth it. A recipe fits that leaves a margin beside what the model says: PyTorch may
// reserve a little more. How a recipe becomes a Setup (the words of file and flags) is for others to say.

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "advise/engine.h"
#include "advise/pytorch_time.h"
#include "eager/estimate.h"
#include "plan/accelerators.h"

namespace snug {

// By how much more PyTorch may reserve than the model says: of the 421 runs that the model is held against, 5 are further
// off (docs/eager.md).
inline constexpr double kReservedMargin = 0.03;

struct PyTorchSide {
  std::string trainer = "PyTorch";  // "axolotl on PyTorch"
  eager::StackProfile stack;
  eager::Target card;                                // memory_bytes: of the whole card, more than 0
  std::function<eager::Setup(const Recipe&)> setup;  // throws Error for what the eager model does not cover
};

// The card as PyTorch sees it, all its memory usable. Throws Error for a card whose kernels no run was held against.
eager::Target pytorch_target(const Accelerator& card);

class PyTorchEngine : public Engine {
 public:
  // `target`: whose rates tell times; it must outlive the engine, as `model` must.
  PyTorchEngine(const ModelSpec& model, const Target& target, PyTorchSide side);

  // Bytes of the device with the largest context; kNever for what the eager model does not cover. `about` counts what
  // tensors hold, to which the allocator adds what it cannot use: 1 to 25 %.
  Need about(const Recipe& recipe) override;
  Need exactly(const Recipe& recipe) override;
  // The card's memory less the margin.
  int64_t budget_bytes() const override { return budget_of(side_.card); }
  int64_t margin_bytes() const { return side_.card.memory_bytes - budget_bytes(); }

  // A whole run, on a device as large as it asks for; null where the eager model does not cover it. It lives as long as the
  // engine.
  const eager::Plan* follow(const Recipe& recipe);
  // The first optimizer step alone, by the trainer or by a loop of the user's own; none where the eager model does not cover
  // it.
  std::optional<eager::Plan> first_step(const Recipe& recipe, bool own_loop = false) const;
  // The bytes of `about` alone.
  int64_t about_bytes(const Recipe& recipe);
  // By the card's rates, which must be known; 0 for what the eager model does not cover.
  double step_seconds(const Recipe& recipe);

  const PyTorchSide& side() const { return side_; }
  int64_t looked_at() const { return static_cast<int64_t>(few_.size() + whole_.size()); }
  int64_t followed() const { return static_cast<int64_t>(whole_.size()); }  // whole runs so far

  // The card of the catalogue with the least memory on which the recipe fits; none if none is large enough.
  const Accelerator* smallest_card(const Recipe& recipe) const;

 private:
  struct Run {
    eager::Setup setup;
    std::optional<eager::Plan> plan;
    int64_t about_bytes = 0;
  };
  static int64_t budget_of(const eager::Target& card);
  std::optional<eager::Setup> setup_of(const Recipe& recipe) const;
  std::optional<eager::Plan> run(const eager::Setup& setup, int64_t layers, const eager::Target& card) const;
  int64_t from_few_layers(const eager::Setup& setup) const;
  // Layers of the two runs that tell what one adds.
  std::pair<int64_t, int64_t> few_and_more() const;
  PyTorchWork work_of(const eager::Setup& setup);
  PyTorchWork work_of_rows(const eager::Setup& setup) const;

  const ModelSpec& model_;
  const Target& target_;
  PyTorchSide side_;
  std::deque<Run> whole_, few_;  // what was asked before
  // Of setups whose rows alone differ: forward and backward of one row, and of two.
  struct RowWork {
    eager::Setup setup;
    std::array<PyTorchWork, 2> of_rows;
  };
  std::deque<RowWork> works_;
};

}  // namespace snug
