#pragma once
// LitGPT's own model on sizes: litgpt/model.py and litgpt/lora.py of 0.5.0 line by line. One matrix for queries, keys and
// values, a head of its own even where embeddings are tied, rotations in fp32, adapters without peft, linears that
// Lightning's BitsandbytesPrecision quantizes. Knows nothing of the loop around it (litgpt_loop.h).

#include <vector>

#include "eager/attention_kernels.h"
#include "eager/optimizer.h"
#include "eager/setup.h"
#include "model/model_spec.h"

namespace snug::eager {

class LitGpt {
 public:
  LitGpt(Torch& torch, const ModelSpec& spec, const Setup& setup);

  void load();  // fabric.init_module and setup_module
  // fit: tables of angles for rows of so many tokens, which replace those for the longest.
  void set_most_tokens(int64_t tokens);

  // What is trained, in the order of model.parameters().
  std::vector<Trained> trained();

  // Rows of T tokens to logits in fp32, as Fabric's module gives them (HalfPrecision.convert_output): in chunks of so many
  // tokens of each row, 0: in one.
  Tensors forward(int64_t tokens, bool training, int64_t chunk);

 private:
  struct Linear {
    int64_t in = 0, out = 0, rank = 0;  // of adapters; 0: there are none
    bool biased = false, quantized = false;
    Tensor weight, bias, scales, code, offset, scale_scales, scales_code, a, b;
    std::vector<int64_t> parts;  // of b's rows: queries, keys, values; empty: one
    Tensor places;               // lora_ind: where its columns go
  };
  struct Norm {
    Tensor weight, bias;
  };
  struct Block {
    Linear qkv, output, fc_1, fc_2, down;
    Norm norm_1, norm_2, post_attention, post_mlp;
    bool windowed = false;
  };

  bool adapts(std::initializer_list<const char*> names) const;
  Linear linear(int64_t in, int64_t out, bool biased, bool adapted) const;
  void make_block(Block& block, size_t number);
  void place(Linear& linear);
  void place(Norm& norm);
  void place(Block& block);
  void quantize(Linear& linear);
  void stabilize_embedding();
  void train(Linear& linear, std::vector<Trained>& into);
  void train(Norm& norm, std::vector<Trained>& into);
  Tensor dequantized(const Linear& linear);
  Tensor base(const Tensor& x, Linear& linear);
  Tensor apply(const Tensor& x, Linear& linear);
  Tensor apply_qkv(const Tensor& x, Linear& linear);
  Tensor zero_padded(const Tensor& x, Linear& linear);
  Tensor convolved(const Tensor& input, const Tensor& weight, int64_t out);
  Tensor grouped(const Tensor& input, Linear& linear);
  Tensor embedded();
  Tensor norm(const Tensor& x, const Norm& norm);
  Tensor block(const Tensor& input, Block& block);
  Tensor attention(const Tensor& x, Block& block);
  Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, Tensor mask);
  Tensor attend_softly(const Tensor& query, const Tensor& key, const Tensor& value, Tensor mask);
  Tensor window_mask(DType dtype);
  Tensor expanded(const Tensor& x);
  Tensor rotated(const Tensor& whole);
  Tensor with_rest(const Tensor& turned, const Tensor& x);
  Tensor mlp(const Tensor& input, Block& block);
  Tensor dropped(const Tensor& x) { return training_ ? t_.dropout(x, setup_.dropout) : x; }
  int64_t elements(int64_t heads) const { return B_ * T_ * heads * D_; }

  Torch& t_;
  const ModelSpec& spec_;
  const Setup& setup_;
  int64_t B_, T_, C_, D_, H_, K_;
  bool training_ = false;
  Linear head_;
  Tensor embedding_, first_embedding_, cos_, sin_;
  Norm embedding_norm_;  // of a StableEmbedding
  std::vector<Block> blocks_;
  Norm final_norm_;
  Tensor scales_code_;  // bitsandbytes' code book of scales, one for all
};

}  // namespace snug::eager
