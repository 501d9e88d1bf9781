#pragma once
// snug's planner as a library: the exact memory of a fine-tuning step, without loading a model and without a GPU.
//
//   snug::planner::Request request{.model = "meta-llama/Llama-3.1-8B", .memory_bytes = int64_t{24} << 30};
//   request.recipe = {{"method", "lora"}, {"bf16", "true"}, {"max_length", "2048"}};
//   const snug::planner::Result result = snug::planner::plan(request);
//   if (!result.error.empty()) …      // one line: what is wrong, where, and the way out
//   else if (!result.fits) …          // result.smallest_change says what would fit
//
//   const snug::planner::Fit found = snug::planner::fit({.model = "meta-llama/Llama-3.1-8B", .accelerator = "RTX 4090"});
//   if (found.error.empty() && found.fits) …  // found.best.recipe, key by key; plan() of it says the same peak
//
// plan() answers whether a recipe fits, fit() searches the recipe that is best for the memory. Both print nothing, never end
// the process and keep no state: they may be called from several threads at once. They read the config.json that
// Request::model names, and /proc for this machine's memory where no budget is given; nothing else. Their figures are those
// of `snug plan` and `snug fit`, from the same code. Needs C++20. Structures may gain members at their ends in later
// versions, so programs are compiled anew against a new version (kVersion).

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace snug::planner {

inline constexpr const char* kVersion = "0.1.0";

// Keys with their values, as in `snug help keys`: {"lora_r", "16"}.
using Settings = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string model;         // a checkpoint directory, a config.json or a catalogue name; or leave it empty and give …
  std::string config_json;   // … the text of a config.json
  Settings recipe;           // fit() keeps these as they are, and searches the rest
  int64_t memory_bytes = 0;  // the budget; or leave it 0 and name …
  std::string accelerator;   // … a card of `snug gpus`: "A100 80GB"; neither: what this machine can give
  int32_t threads = 0;       // cores that the step would run on; 0: this machine's
  int64_t examples = 0, example_tokens = 0;  // what there is to train on, for the cost of a run; both or neither
};

// Bytes under a name.
struct Bytes {
  std::string name;
  int64_t bytes = 0;
};

struct Result {
  std::string error;  // empty: all below is set; else it alone is
  bool fits = false;
  int64_t peak_bytes = 0;  // the most the process holds, its own libraries included
  int64_t budget_bytes = 0;
  std::string peak_stage;            // "backward"
  std::vector<Bytes> breakdown;      // at the peak, by role: "weights", …, "runtime"; sums to peak_bytes
  std::vector<Bytes> stages;         // the peak of each stage that the recipe has
  std::string smallest_change;       // what would make it fit, one line; empty if it fits
  std::vector<std::string> ignored;  // recipe keys that are known and have no effect on memory
  std::string json;                  // what `snug plan --json` prints, but for what is measured on this machine
};

// What a run over Request::examples takes; what is not known stays empty.
struct Cost {
  std::optional<int64_t> steps, tokens;
  std::optional<double> flops, seconds, dollars;
};

// One recipe that fits, laid out in full.
struct Choice {
  Settings settings;  // what differs from the recipe that was asked for, assumptions included
  Settings recipe;    // all that differs from the defaults: as Request::recipe it is this plan
  int64_t peak_bytes = 0;
  std::string effect;                  // on the result of training: "none", "small" or "real"
  std::vector<std::string> given_up;   // in words, where it is not none
  std::optional<double> step_seconds;  // by the accelerator's rates; empty on this machine
  Cost cost;
};

// The search of one method.
struct Method {
  std::string name;           // "full", "LoRA", "LoRA on int8", "QLoRA"
  std::vector<Choice> front;  // of time, memory and effect, best first; empty: nothing fits
  int64_t least_bytes = 0;    // nothing fits: what the smallest recipe needs; 0 if none makes sense
};

struct Fit {
  std::string error;  // empty: all below is set; else it alone is
  bool fits = false;
  int64_t budget_bytes = 0;
  std::string method;                // of `methods`, the chosen one
  Choice best;                       // its first
  std::vector<Method> methods;       // all that Request::recipe leaves open
  std::vector<std::string> assumed;  // what was taken where the request says nothing: "bf16 true"
  Settings way_out;                  // nothing fits: what would, if more were given up, or what needs least …
  int64_t way_out_bytes = 0;         // … and its peak, above the budget if nothing would
  std::vector<std::string> ignored;  // recipe keys that are known and have no effect on memory
  std::string json;                  // what `snug fit --json` prints, but for what is measured on this machine
};

// Neither throws, but where memory for the result itself runs out. fit() compiles thousands of recipes: seconds.
[[gnu::visibility("default")]] Result plan(const Request& request);
[[gnu::visibility("default")]] Fit fit(const Request& request);

}  // namespace snug::planner
