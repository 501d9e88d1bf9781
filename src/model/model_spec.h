#pragma once
// ModelSpec: what `config.json` says, as one description that covers every decoder family by its fields. It knows nothing of
// recipes, programs or files. Letters: C hidden, F MLP width, V vocabulary, H query heads, K key/value heads, D head size, L
// layers.

#include <cstdint>
#include <string>

#include "base/dtype.h"

namespace snug {

enum class RopeScaling : uint8_t { none, linear, llama3 };

// Rotary position embedding, half-split layout ("rotate_half").
struct Rope {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;                   // linear, llama3
  double low_freq_factor = 1.0;          // llama3
  double high_freq_factor = 4.0;         // llama3
  int64_t original_max_position = 8192;  // llama3, tokens
};

struct ModelSpec {
  std::string name;          // directory or catalogue name, for messages only
  std::string architecture;  // "LlamaForCausalLM"
  std::string family;        // model_type: "llama"

  int64_t hidden_size = 0;        // C
  int64_t intermediate_size = 0;  // F
  int64_t vocab_size = 0;         // V
  int64_t layers = 0;             // L
  int64_t heads = 0;              // H
  int64_t kv_heads = 0;           // K, divides H
  int64_t head_size = 0;          // D
  int64_t max_position = 0;       // tokens
  int64_t sliding_window = 0;     // a token sees so many, itself the last of them; 0: all before it

  double norm_eps = 1e-6;
  Rope rope;
  bool tied_embeddings = false;  // lm_head is a view of embed_tokens
  bool attention_bias = false;   // refused where it is true, until a family needs it
  bool mlp_bias = false;         // likewise
  double initializer_range = 0.02;

  DType dtype = DType::bf16;  // torch_dtype of the checkpoint

  int64_t bos_token_id = -1;  // -1: none
  int64_t eos_token_id = -1;
  int64_t pad_token_id = -1;
};

}  // namespace snug
