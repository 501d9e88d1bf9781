#pragma once
// recommend: what should I change? What was left open is taken as most people would have it, every method that may be is
// searched (fit, fit_in_pytorch), at a length that suits the data; LoRA is chosen unless another method was asked for, on
// fewer bits only where 16 do not fit; where nothing fits, the cheapest way out is planned. It reads no files: another
// trainer's recipe is asked what it can say (foreign_fit).

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "advise/fit.h"
#include "advise/pytorch_engine.h"
#include "advise/workload.h"

namespace snug {

// Of a search in another trainer's file.
struct FileLimits {
  std::function<bool(const std::vector<Setting>&)> can_say;  // whether the file's own words can say these settings
  std::function<bool(const Recipe&)> can_become;             // likewise, all that makes it this recipe
  bool method_asked = false;                                 // beside the file: its own method is not the one to keep
};

// What most train in on this target: bf16 where it multiplies it, fp16 elsewhere.
std::string_view usual_half(const Target& target);

struct FitQuestion {
  ModelSpec model;
  Target target;
  Recipe recipe;
  std::vector<std::string> keys_set;  // they stay as they are
  std::optional<FileLimits> file;     // none: a recipe of ours, which can say all
  // What there is to train on; may be empty, and is where the model's step is not modelled.
  std::function<std::optional<CountedData>(const Plan&)> counts;
  PyTorchEngine* pytorch = nullptr;  // whose memory is searched; null: snug's own

  bool is_set(std::string_view key) const;
};

// One method's search.
struct MethodReport {
  std::string name;  // "full", "LoRA", "LoRA on int8", "QLoRA"
  FitReport report;
};

// Where nothing fits: what would if more were given up, or what needs least.
struct WayOut {
  bool fits = false;
  std::vector<Setting> settings;  // what differs from the recipe that was asked for
  std::vector<std::string> given_up;
  int64_t peak_bytes = 0;
};

// Of a search for PyTorch.
struct PyTorchFit {
  std::string trainer;              // "axolotl on PyTorch"
  int64_t margin_bytes = 0;         // of the card's memory, kept free
  std::optional<eager::Plan> plan;  // of the best recipe; where nothing fits, of the one that needs least
  std::string smallest_card;        // nothing fits: of the catalogue, the card that would take what needs least; may be ""
  int64_t smallest_card_bytes = 0;  // its memory
};

struct FitAnswer {
  ModelSpec model;
  Target target;
  int64_t budget_bytes = 0;
  std::vector<MethodReport> methods;  // more than one if none was asked for
  size_t chosen = 0;                  // of methods
  std::vector<std::string> assumed;   // "bf16 true"
  std::string data;                   // what there is to train on; empty: unknown
  std::optional<Workload> workload;
  std::optional<WayOut> way_out;
  double seconds = 0;                 // that the search took
  std::optional<std::string> diff;    // of another trainer's recipe: the best one in its own words
  std::optional<PyTorchFit> pytorch;  // none: the search was of snug's own engine

  const FitReport& report() const { return methods[chosen].report; }
  bool fits() const { return !report().front.empty(); }
};

// Throws Error for a recipe that makes no sense, and what counting the data throws.
FitAnswer recommend(FitQuestion question);

// What a run of one of the answer's recipes takes.
RunCost run_cost(const FitAnswer& answer, const FitChoice& choice);

}  // namespace snug
