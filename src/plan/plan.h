#pragma once
// Plan: a recipe compiled for a target, with every figure a user asks for. The same object is executed by `snug train`, so
// the figures and the run cannot differ.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "model/model_spec.h"
#include "plan/layout.h"
#include "plan/target.h"
#include "program/passes/saved_choice.h"
#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

// One stage of a pipeline, whose ranks are all alike.
struct StagePlan {
  int64_t peak_bytes = 0, arena_bytes = 0, sent_bytes = 0;
};

struct Plan {
  ModelSpec model;
  Recipe recipe;
  Precision precision;
  Target target;
  SavedChoice saved;  // what becomes of what blocks save, where the plan chose it (gradient_checkpointing: auto)
  Program program;
  Layout layout;

  int64_t budget_bytes = 0;
  int64_t runtime_bytes = 0;  // program, libraries, heap, stacks, prepared products
  int64_t peak_bytes = 0;     // runtime + the device's arena
  Stage peak_stage = Stage::backward;
  std::array<int64_t, kRoleCount> breakdown{};                    // at the peak, by role; with runtime it sums to peak_bytes
  std::array<std::optional<int64_t>, kStageCount> stage_peaks{};  // none: the recipe has no such stage
  double step_flops = 0;                                          // needed work of one optimizer step
  StepTime step_time;                                             // by the target's cost model, if it is known
  double saved_seconds = 0;                                       // … of it, to make again and move what `saved` says
  std::vector<StagePlan> stages;                                  // of a plan for all of them: it is that which needs most

  // What it takes in bytes that each home has.
  bool fits() const { return peak_bytes <= budget_bytes && !overfull_home(); }
  // A home away from the device that has less room than the Layout needs there.
  std::optional<Home> overfull_home() const;
  // What products round their operands to; they sum in fp32, and ops on rows compute in it.
  DType compute() const;
  // What lies in other homes than the device.
  int64_t away_bytes() const;
};

// Compiles and lays out. Throws Error for a recipe that makes no sense for the model. `red_zone`: see lay_out.
Plan make_plan(const ModelSpec& model, const Recipe& recipe, const Target& target, int64_t red_zone = 0);
// The same with every block's input kept, also where gradient_checkpointing: auto would go further: what a search compares.
Plan plan_with_all_inputs(const ModelSpec& model, const Recipe& recipe, const Target& target, int64_t red_zone = 0);

// What a plan would need at least, without placing anything: the most that is live at once on the folded timeline. The
// layout's holes, mostly none, come on top. Of gradient_checkpointing: auto with every block's input kept.
struct Estimate {
  int64_t peak_bytes = 0;
  std::optional<Home> overfull_home;
  StepTime step_time;
  double step_flops = 0;             // as the plan's; without the time none
  int64_t trainable_parameters = 0;  // likewise
};
Estimate estimate(const ModelSpec& model, const Recipe& recipe, const Target& target);
// The same where this is chosen, whatever the recipe says.
Estimate estimate(const ModelSpec& model, const Recipe& recipe, const Target& target, const SavedChoice& saved);
// The same without the time.
Estimate estimate_bytes(const ModelSpec& model, const Recipe& recipe, const Target& target, const SavedChoice& saved);

// The recipe's own, or what the target has.
int64_t budget_of(const Recipe& recipe, const Target& target);

// What a generating run is asked for.
struct GenerationRequest {
  int64_t capacity = 1;      // tokens of a sequence, prompt and answer
  int64_t longest_feed = 1;  // the most new tokens that come at once: a prompt
  bool bf16 = false;         // weights, activations and cache; arithmetic is fp32
  bool fp16 = false;         // likewise
  std::optional<Lora> lora;  // the stack of adapters, as compile_generation takes it
  int64_t memory_bytes = 0;  // budget; 0: what the target has
  int64_t text_bytes = 0;    // what tokenizer, template and prompts hold outside the arena
};

// Compiles and lays out a generating run. Throws Error for adapters that the model has no place for.
Plan make_plan(const ModelSpec& model, const GenerationRequest& request, const Target& target, int64_t red_zone = 0);

// The largest capacity of at least `least` tokens that fits the budget, in steps of 64 tokens or exactly `least`; none if
// none does.
std::optional<int64_t> capacity_that_fits(const Plan& plan, const GenerationRequest& request, int64_t least);

// One storage at the peak, for the list of largest.
struct LargeStorage {
  std::string name;
  Role role;
  int64_t bytes;  // all instances alive at the peak
};
std::vector<LargeStorage> largest_at_peak(const Plan& plan, size_t count);

}  // namespace snug
