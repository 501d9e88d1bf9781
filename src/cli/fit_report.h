#pragma once
// What `snug fit` found, for people and for scripts.

#include <optional>
#include <string>
#include <vector>

#include "advise/fit.h"
#include "advise/workload.h"
#include "cli/plan_text.h"

namespace snug::cli {

// One method's search.
struct MethodReport {
  std::string name;  // "full", "LoRA", "LoRA on 8 bits", "QLoRA"
  FitReport report;
};

// Where nothing fits: what would if more were given up, or what needs least.
struct WayOut {
  bool fits = false;
  std::vector<Setting> settings;  // what differs from the recipe that was asked for
  std::vector<std::string> given_up;
  int64_t peak_bytes = 0;
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
  double seconds = 0;               // that the search took
  std::optional<std::string> diff;  // of another trainer's recipe: the best one in its own words

  const FitReport& report() const { return methods[chosen].report; }
  bool fits() const { return !report().front.empty(); }
};

std::string fit_text(const FitAnswer& answer, const TextStyle& style);
std::string fit_json(const FitAnswer& answer);

}  // namespace snug::cli
