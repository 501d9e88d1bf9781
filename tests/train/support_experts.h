#pragma once
// A Program of sparse MLP blocks alone, as the golden cases experts_* have them: x = embedding[0 … M), x += block(x) in
// every layer, then the loss. Ops are emitted as a decoder's block would.

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plan/layout.h"
#include "plan/target.h"
#include "program/program.h"
#include "recipe/recipe.h"
#include "run/executor.h"

namespace snug::testing {

struct ExpertNames {
  std::string prefix, gate, up, down;  // "model.layers.{}.mlp." and the files' names of an expert's weights
};
ExpertNames mixtral_names();
ExpertNames qwen3_names();

struct ExpertSizes {
  int64_t tokens, cols, width, experts, choices, vocabulary, layers;
  bool normalize;
};

// Differentiated and placed, not yet fitted to a target. Trained: all weights, or all but the experts and the head.
struct ExpertOptions {
  std::vector<int64_t> recomputed;  // layers
  DType dtype = DType::f32;         // of weights and activations
  bool train_experts = true;
};
Program build_expert_blocks(const ExpertSizes& sizes, const ExpertNames& names, const ExpertOptions& options);

// A forward and backward pass over `targets` [M].
class ExpertRun : public Host {
 public:
  ExpertRun(Program program, const Target& target, int64_t red_zone = 0);
  double forward_backward(const std::vector<int32_t>& targets);
  void run(const Op& op, int64_t repetition) override;

  Program program;
  Layout layout;
  std::unique_ptr<Executor> executor;
};

}  // namespace snug::testing
