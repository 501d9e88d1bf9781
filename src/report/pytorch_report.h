#pragma once
// What PyTorch needs for a recipe, as text and as JSON, beside what snug itself needs: allocated, reserved and device bytes
// are never mixed, and where the eager model does not cover a recipe its reason stands in place of a figure.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "eager/estimate.h"
#include "model/quantized_share.h"
#include "report/text_style.h"

namespace snug {

struct PyTorchAnswer {
  std::string trainer = "PyTorch";      // "axolotl on PyTorch"
  std::optional<eager::Plan> plan;      // none: `not_covered` says why
  std::string not_covered;              // one clause
  eager::StackProfile stack;            // the versions that were assumed
  int64_t memory_bytes = 0;             // of the card; 0: none was named, so nothing fits or not
  std::optional<eager::Setup> setup;    // what was followed
  bool leads = false;                   // its verdict is the command's
  std::optional<std::string> autocast;  // "bf16", where there is autocast
  bool assumes_autocast = false;        // nobody said so
  std::string weights;                  // their dtype as loaded: "bfloat16"
  bool delta_rule = false;              // some layers have a gated delta rule, by PyTorch's own ops
  bool tower_rests = false;             // the model has a vision tower, the rows no images
  std::optional<QuantizedShare> share;  // of a load that quantizes
  std::optional<double> step_seconds;   // by the card's rates, where they are known

  // Whether there is a verdict.
  bool decides() const { return leads && plan && memory_bytes > 0; }
};

// "PyTorch: fits: 27.4 GiB allocated, 29.1 GiB reserved, 29.6 – 30.1 GiB on the device of 79.1 GiB".
std::string pytorch_verdict(const PyTorchAnswer& answer);
// Phases, breakdown and what was assumed, a block of lines.
std::string pytorch_text(const PyTorchAnswer& answer, const TextStyle& style);
// The object "pytorch" of `snug plan --json`.
nlohmann::ordered_json pytorch_json(const PyTorchAnswer& answer);

}  // namespace snug
