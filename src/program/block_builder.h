#pragma once
// The ops of decoder blocks: weights by the part they play, products, norms, attention, MLPs and mixtures of experts, out of
// which builder.cpp makes whole Programs. It knows the ModelSpec and the shapes of a step, nothing of stages or passes.
// Letters as everywhere: B, T, C, F, V, H, K, D, M = B * T tokens; x is the residual stream.

#include <array>
#include <map>
#include <string>
#include <vector>

#include "program/builder.h"

namespace snug {

// Consecutive layers with blocks of one kind: a folded region.
struct LayerRun {
  const char* name;
  int64_t first = 0, count = 0;
  bool has_experts = false;
};
std::vector<LayerRun> layer_runs(const ModelSpec& spec);

class BlockBuilder {
 protected:
  BlockBuilder(const ModelSpec& spec, const Precision& precision, const BatchShape& shape)
      : spec_(spec), precision_(precision), shape_(shape) {}

  // Every parameter of the model as a frozen, unplaced weight.
  void add_weights();

  int64_t tokens() const { return shape_.batch * shape_.seq_len; }  // M
  TensorId activation(std::string name, std::vector<Extent> shape);
  TensorId statistics(std::string name, std::vector<Extent> shape);  // fp32 whatever the activations are

  // Rows of the weight's length: [M, C], or heads [B, T, H, D].
  TensorId norm(Region& region, const std::string& part, TensorId x, TensorId into = kNone);
  TensorId linear(Region& region, const std::string& part, TensorId x, std::vector<Extent> shape);
  TensorId sum(Region& region, TensorId a, TensorId b, TensorId out);

  // A block of the run: x_in [M, C] -> x_out [M, C].
  Region block(const LayerRun& run, TensorId x_in, TensorId x_out);

  struct Rotation {
    TensorId cosine = kNone, sine = kNone;
  };

  const ModelSpec& spec_;
  const Precision& precision_;
  BatchShape shape_;
  Program program_;
  std::map<std::string, TensorId> by_part_;           // Parameter::part
  std::map<TensorId, int32_t> weights_;               // index of the weight that a tensor is
  Rotation rotation_, local_rotation_;                // tables of this step
  TensorId key_cache_ = kNone, value_cache_ = kNone;  // of generation
  TensorId embedding_ = kNone, head_ = kNone;

 private:
  Region parallel_block(Region body, TensorId x_in, TensorId x_out);

  // Attention: x [M, C] -> [M, C], without norms around it.
  TensorId attend(Region& body, TensorId x);
  std::array<TensorId, 3> queries_keys_values(Region& body, TensorId x);
  std::array<TensorId, 3> project(Region& body, TensorId x);
  void rotate(Region& region, TensorId x, int64_t first_column = 0);
  TensorId attention(Region& body, TensorId q, TensorId k, TensorId v);
  std::array<TensorId, 3> latent_queries_keys_values(Region& body, TensorId x);
  TensorId latent_queries(Region& body, TensorId x);

  // MLPs: x [M, C] -> [M, C].
  TensorId mlp(Region& body, TensorId x, bool has_experts);
  TensorId gated_mlp(Region& body, const std::string& part, TensorId x, int64_t width);

  struct Routing {
    TensorId weights, expert_rows, row_tokens, tile_experts;
    int64_t rows, needed;  // with padding; tokens times their experts
  };
  TensorId sparse_mlp(Region& body, TensorId x);
  Routing route(Region& body, TensorId x);
  std::array<TensorId, 2> expert_gate_up(Region& body, TensorId rows, const Routing& routing);
  TensorId expert_product(Region& body, const std::string& part, TensorId rows, const Routing& routing);
  void add_expert_bias(Region& region, const std::string& part, TensorId rows, TensorId tile_experts);
};

}  // namespace snug
