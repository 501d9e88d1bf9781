#pragma once
// snug's planner as a library: the exact memory of a fine-tuning step, without loading a model and without a GPU.
//
//   snug::planner::Request request{.model = "meta-llama/Llama-3.1-8B", .memory_bytes = int64_t{24} << 30};
//   request.recipe = {{"method", "lora"}, {"bf16", "true"}, {"max_length", "2048"}};
//   const snug::planner::Result result = snug::planner::plan(request);
//   if (!result.error.empty()) …      // one line: what is wrong, where, and the way out
//   else if (!result.fits) …          // result.smallest_change says what would fit
//
// plan() prints nothing, never ends the process and keeps no state: it may be called from several threads at once. It reads
// the config.json that Request::model names, and /proc for this machine's memory where no budget is given; nothing else. Its
// figures are those of `snug plan`, from the same code. Needs C++20. Structures may gain members at their ends in later
// versions, so programs are compiled anew against a new version (kVersion).

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace snug::planner {

inline constexpr const char* kVersion = "0.1.0";

struct Request {
  std::string model;        // a checkpoint directory, a config.json or a catalogue name; or leave it empty and give …
  std::string config_json;  // … the text of a config.json
  std::vector<std::pair<std::string, std::string>> recipe;  // keys as in `snug help keys`: {"lora_r", "16"}
  int64_t memory_bytes = 0;                                 // the budget; or leave it 0 and name …
  std::string accelerator;  // … a card of `snug gpus`: "A100 80GB"; neither: what this machine can give
  int32_t threads = 0;      // cores that the step would run on; 0: this machine's
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
  std::string json;                  // what `snug plan --json` prints, but for seconds measured on this machine
};

// Never throws, but where memory for the result itself runs out.
[[gnu::visibility("default")]] Result plan(const Request& request);

}  // namespace snug::planner
