#pragma once
// ModelSpec: what `config.json` says, as one description that covers every decoder family by its fields. It knows nothing of
// recipes, programs or files. Letters: C hidden, F MLP width, V vocabulary, H query heads, K key/value heads, D head size, L
// layers, E experts.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/activation.h"
#include "base/dtype.h"

namespace snug {

enum class RopeScaling : uint8_t { none, linear, llama3, yarn, longrope };

// Rotary position embedding, half-split layout ("rotate_half").
struct Rope {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;                   // linear, llama3, yarn
  double low_freq_factor = 1.0;          // llama3
  double high_freq_factor = 4.0;         // llama3
  double beta_fast = 32.0;               // yarn
  double beta_slow = 1.0;                // yarn
  bool truncate = true;                  // yarn: its limits are whole dimensions
  double attention_factor = 1.0;         // yarn, longrope: cosines and sines are multiplied by it
  int64_t original_max_position = 8192;  // llama3, yarn, longrope: tokens
  std::vector<double> short_factors;     // longrope, up to original_max_position: each frequency's divisor
  std::vector<double> long_factors;      // longrope, beyond

  bool operator==(const Rope&) const = default;
};

enum class NormKind : uint8_t { rms, layer };

// What checkpoints call their tensors; the table is model/parameters.cpp.
enum class TensorNaming : uint8_t {
  llama,
  gemma,
  phi3,
  gpt2,
  mixtral,
  qwen_moe,
  olmo2,
  falcon,
  gpt_oss,
  deepseek,
  granite_moe,
  glm4,
  glm4_moe,
  phi,
  stablelm,
  opt,
  bloom,
  qwen,
  baichuan,
  chatglm
};

// What transformers computes an MLP's nonlinearity by, where it has no gate: one kernel, which keeps its input; the tanh of
// GPT-2 written out; relu, which keeps its output; relu and its square; BLOOM's own function, which keeps its input.
enum class ActivationForm : uint8_t { kernel, written_out, relu, relu_squared, bloom };

// Whether attention and MLP both start from the block's input, by one norm or by one each, and are summed (Falcon).
enum class ParallelBlock : uint8_t { none, one_norm, two_norms };

// A mixture of experts in place of the MLP (Shazeer et al., 2017), without capacity limits.
struct Experts {
  int64_t count = 0;              // E; 0: a plain MLP
  int64_t per_token = 0;          // chosen for each token
  int64_t intermediate_size = 0;  // of one expert
  bool normalize = true;          // the chosen ones' weights sum to 1
  bool biased = false;            // router and experts have biases (gpt-oss)
  bool fused = false;             // an expert's gate and up are one matrix
  int64_t shared = 0;             // beside these as many that every token goes to, as one MLP (DeepSeek)
  int64_t shared_size = 0;        // width of that MLP
  bool shared_gate = false;       // which is weighed by a number for each token (Qwen2-MoE)
  int64_t dense_layers = 0;       // the first layers have a plain MLP instead
  bool sigmoid_scores = false;    // scores are sigmoids, and a correction for each expert helps to choose (DeepSeek-V3)
  double weight_scale = 1.0;      // of the chosen ones' weights

  bool operator==(const Experts&) const = default;
};

// Multi-head latent attention (DeepSeek-AI, "DeepSeek-V2", 2024): keys and values come from a row of low rank for each
// token, and the rotated part of a key is one for all heads. A head's last `rotary_size` numbers rotate, the others do not.
struct LatentAttention {
  int64_t rank = 0;        // of keys and values; 0: plain attention
  int64_t query_rank = 0;  // 0: queries come from one matrix
  int64_t value_size = 0;  // of a head

  bool operator==(const LatentAttention&) const = default;
};

// A gated delta rule in place of attention (Yang et al., "Gated Delta Networks", 2024), in some layers: each value head has
// a state of key_size x value_size numbers.
struct DeltaNet {
  int64_t key_heads = 0, value_heads = 0;
  int64_t key_size = 0, value_size = 0;  // of a head
  int64_t kernel = 0;                    // tokens that the convolution before it sees
  std::vector<bool> layers;              // [L]; empty: none

  bool operator==(const DeltaNet&) const = default;
};

// How a checkpoint's linears are quantized, in bitsandbytes' formats.
struct StoredQuantization {
  DType type = DType::nf4;    // nf4, fp4 or i8
  bool double_quant = false;  // of 4-bit types
  bool operator==(const StoredQuantization&) const = default;
};

// A parameter of a model whose blocks are of several kinds: "model.layers.{}.conv.conv.weight", and how many layers have it;
// 0: it belongs to none.
struct KnownTensor {
  std::string name;
  std::vector<int64_t> shape;
  int64_t layers = 0;
  bool operator==(const KnownTensor&) const = default;
};

struct ModelSpec {
  std::string name;          // directory or catalogue name, for messages only
  std::string architecture;  // "LlamaForCausalLM"
  std::string family;        // model_type: "llama"
  TensorNaming naming = TensorNaming::llama;

  int64_t hidden_size = 0;        // C
  int64_t intermediate_size = 0;  // F
  int64_t vocab_size = 0;         // V
  int64_t layers = 0;             // L
  int64_t heads = 0;              // H
  int64_t kv_heads = 0;           // K, divides H
  int64_t head_size = 0;          // D
  int64_t max_position = 0;       // tokens

  NormKind norm = NormKind::rms;
  double norm_eps = 1e-6;
  bool norms_from_zero = false;       // a norm multiplies by 1 + weight
  bool post_norms = false;            // norms also after attention and MLP, before the residual sum
  bool pre_norms = true;              // norms before attention and MLP
  bool query_key_norms = false;       // over each head, before positions
  bool wide_query_key_norms = false;  // these are over all heads at once (OLMo 2)
  ParallelBlock parallel = ParallelBlock::none;

  bool fused_projections = false;     // one matrix for queries, keys and values
  bool fused_gate_up = false;         // one matrix for gate and up
  bool input_features_first = false;  // linear weights are [in, out] (GPT-2's Conv1D)
  bool query_key_value_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool head_bias = false;

  LatentAttention latent;
  DeltaNet delta_net;
  bool gated_attention = false;    // queries come with a gate of their size, which what attention gives is multiplied by
  double attention_scale = 0.0;    // of scores; 0: 1 / sqrt(D)
  bool attention_sinks = false;    // a learned score for each head beside those of the keys (gpt-oss)
  double attention_softcap = 0.0;  // scores become cap * tanh(score / cap); 0: none
  double logit_softcap = 0.0;
  int64_t sliding_window = 0;      // in local layers a token sees so many, itself the last of them; 0: there are none
  std::vector<bool> local_layers;  // [L]; empty: none

  bool learned_positions = false;  // a table of positions in place of rotations
  int64_t position_offset = 0;     // the table begins with so many rows that are never read (OPT)
  bool alibi = false;              // neither: scores fall with distance, by a slope for each head
  int64_t rotary_size = 0;         // the first so many numbers of a head turn (latent: the last); 0: all
  Rope rope;
  double local_rope_theta = 0.0;  // local layers turn by this, unscaled; 0: as the others

  bool gated_mlp = true;
  Activation activation = Activation::silu;
  ActivationForm activation_form = ActivationForm::kernel;
  Experts experts;

  double embedding_scale = 1.0;
  double residual_scale = 1.0;   // of what blocks add (Granite)
  double logit_scale = 1.0;      // of logits
  bool embedding_norm = false;   // of embedded tokens (BLOOM)
  bool pad_row_is_fixed = true;  // the embedding of pad_token_id gets no gradient (torch's padding_idx)
  bool tied_embeddings = false;  // lm_head is a view of embed_tokens
  double initializer_range = 0.02;
  double dropout = 0.0;            // what transformers would train with; not applied here
  int64_t vision_parameters = 0;   // of a vision tower and its projector, which stay as they are
  std::vector<KnownTensor> tower;  // these, in their order of registration, where they are known one by one (Gemma 3)

  DType dtype = DType::bf16;  // torch_dtype of the checkpoint

  std::optional<StoredQuantization> quantization;  // none: the checkpoint holds numbers
  // What of its step is not modelled, so that only its parameters are known, here one by one; empty: nothing.
  std::string unmodelled_step;
  std::vector<KnownTensor> tensors;
  std::string stored_format;  // of files that hold other numbers than fine-tuning does ("fp8"); empty: the same

  int64_t bos_token_id = -1;  // -1: none
  int64_t eos_token_id = -1;
  int64_t pad_token_id = -1;

  bool has_latent_attention() const { return latent.rank > 0; }
  int64_t value_size() const { return has_latent_attention() ? latent.value_size : head_size; }
  int64_t rotated() const { return rotary_size > 0 ? rotary_size : head_size; }
  bool operator==(const ModelSpec&) const = default;
};

}  // namespace snug
