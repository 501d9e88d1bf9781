#pragma once
// Engine: what a recipe needs on snug's own engine, or in PyTorch. Levers, sets of them and --solve ask it, so that they are
// written once. It knows no search.

#include <cstdint>
#include <limits>

#include "plan/plan.h"

namespace snug {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();  // bytes of what an engine cannot do

struct Need {
  int64_t bytes = 0;
  double step_seconds = 0;  // by the target's cost model
};

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  // Near enough to choose by, and quicker than `exactly`.
  virtual Need about(const Recipe& recipe) = 0;
  virtual Need exactly(const Recipe& recipe) = 0;
  // What a recipe may need.
  virtual int64_t budget_bytes() const = 0;
};

// Snug's own: what is live at once, and what is laid out in full. The budget is the recipe's memory_bytes or the target's.
class SnugEngine : public Engine {
 public:
  // Both must outlive it.
  SnugEngine(const ModelSpec& model, const Target& target, int64_t budget_bytes)
      : model_(model), target_(target), budget_bytes_(budget_bytes) {}

  Need about(const Recipe& recipe) override;
  Need exactly(const Recipe& recipe) override;
  int64_t budget_bytes() const override { return budget_bytes_; }

 private:
  const ModelSpec& model_;
  const Target& target_;
  int64_t budget_bytes_;
};

// Another engine, held to a budget of its own.
class WithinBudget : public Engine {
 public:
  WithinBudget(Engine& engine, int64_t budget_bytes) : engine_(engine), budget_bytes_(budget_bytes) {}

  Need about(const Recipe& recipe) override { return engine_.about(recipe); }
  Need exactly(const Recipe& recipe) override { return engine_.exactly(recipe); }
  int64_t budget_bytes() const override { return budget_bytes_; }

 private:
  Engine& engine_;
  int64_t budget_bytes_;
};

}  // namespace snug
