#pragma once
// The tables behind torch/stage.h: names of functions and lines of source that tell what a program was doing. To teach a
// framework, add its lines.

#include <span>
#include <string_view>

#include "torch/stage.h"

namespace snug {

struct StageSign {
  TorchStage stage;
  std::string_view file;      // part of its path, with slashes; empty: any
  std::string_view function;  // its name, behind a class too; empty: any
};

// What a line of source says, where names do not: the user's own loop.
struct StageCode {
  TorchStage stage;
  std::string_view code;
};

// In order of precedence: a step that holds others comes first. Evaluation runs a forward; a forward is no evaluation.
std::span<const StageSign> stage_signs();
std::span<const StageCode> stage_codes();

}  // namespace snug
