#pragma once
// A list of tensors in the making, for the readers of families whose step is not modelled: names as transformers has them,
// sizes from the spec. Knows no config.json.

#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "model/model_spec.h"

namespace snug {

class Listing {
 public:
  explicit Listing(ModelSpec& spec, std::string layer = "model.layers.{}.") : spec_(spec), layer_(std::move(layer)) {}

  void once(const std::string& name, std::vector<int64_t> shape) { spec_.tensors.push_back({name, std::move(shape), 0}); }
  void in(int64_t layers, const std::string& name, std::vector<int64_t> shape) {
    if (layers > 0) spec_.tensors.push_back({layer_ + name, std::move(shape), layers});
  }
  void linear(int64_t layers, const std::string& module, int64_t out, int64_t in_features) {
    in(layers, module + ".weight", {out, in_features});
  }
  void norm(int64_t layers, const std::string& module, int64_t size) { in(layers, module + ".weight", {size}); }
  // With a bias of its own each.
  void biased_linear(const std::string& module, int64_t out, int64_t in_features) {
    linear(spec_.layers, module, out, in_features);
    in(spec_.layers, module + ".bias", {out});
  }
  void biased_norm(const std::string& module) {
    norm(spec_.layers, module, spec_.hidden_size);
    in(spec_.layers, module + ".bias", {spec_.hidden_size});
  }
  void final_biased_norm(const std::string& module) {
    once(module + ".weight", {spec_.hidden_size});
    once(module + ".bias", {spec_.hidden_size});
  }
  // Two products with biases.
  void plain_mlp(const std::string& up, const std::string& down) {
    biased_linear(up, spec_.intermediate_size, spec_.hidden_size);
    biased_linear(down, spec_.hidden_size, spec_.intermediate_size);
  }
  void begin() { once("model.embed_tokens.weight", {spec_.vocab_size, spec_.hidden_size}); }
  void end(const std::string& final_norm) {
    once("model." + final_norm + ".weight", {spec_.hidden_size});
    head();
  }
  // Where it is not the embedding.
  void head() {
    if (!spec_.tied_embeddings) once("lm_head.weight", {spec_.vocab_size, spec_.hidden_size});
  }
  void mlp(int64_t layers, const std::string& root, int64_t width) {
    linear(layers, root + "gate_proj", width, spec_.hidden_size);
    linear(layers, root + "up_proj", width, spec_.hidden_size);
    linear(layers, root + "down_proj", spec_.hidden_size, width);
  }
  // `gated`: queries come with a gate of their size.
  void attention(int64_t layers, bool gated = false, const std::string& output = "o_proj") {
    const int64_t queries = checked_mul(spec_.heads, spec_.head_size), keys = checked_mul(spec_.kv_heads, spec_.head_size);
    linear(layers, "self_attn.q_proj", gated ? checked_mul(2, queries) : queries, spec_.hidden_size);
    linear(layers, "self_attn.k_proj", keys, spec_.hidden_size);
    linear(layers, "self_attn.v_proj", keys, spec_.hidden_size);
    linear(layers, "self_attn." + output, spec_.hidden_size, queries);
  }
  void head_norms(int64_t layers, const std::string& query, const std::string& key) {
    norm(layers, "self_attn." + query, spec_.head_size);
    norm(layers, "self_attn." + key, spec_.head_size);
  }
  // Experts as transformers 5 holds them: all in one tensor.
  void experts(int64_t layers, const std::string& root, const std::string& router) {
    const int64_t C = spec_.hidden_size, E = spec_.experts.count, F = spec_.experts.intermediate_size;
    linear(layers, root + router, E, C);
    in(layers, root + "experts.gate_up_proj", {E, checked_mul(2, F), C});
    in(layers, root + "experts.down_proj", {E, C, F});
  }

 private:
  ModelSpec& spec_;
  std::string layer_;  // what stands before the names of a layer's tensors
};

}  // namespace snug
