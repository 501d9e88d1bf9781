#pragma once
// torchtune on sizes: its modules of Llama's shape (torchtune/modules, 0.6.1) line by line, and the loop of the recipes
// full_finetune_single_device and lora_finetune_single_device around them.

#include <memory>
#include <vector>

#include "eager/attention_kernels.h"
#include "eager/optimizer.h"
#include "eager/setup.h"
#include "model/model_spec.h"

namespace snug::eager {

class TorchTune {
 public:
  TorchTune(Torch& torch, const ModelSpec& spec, const Setup& setup);

  void load();                     // _setup_model
  std::vector<Trained> trained();  // in the order of model.parameters()
  void train(int64_t steps);       // so many optimizer steps

 private:
  struct Linear {
    int64_t in = 0, out = 0, rank = 0;  // of adapters; 0: there are none
    bool biased = false;
    Tensor weight, bias, a, b;
  };
  struct Layer {
    Linear query, key, value, output, gate, up, down;
    Tensor attention_norm, mlp_norm, angles;
  };

  bool adapts(const char* name) const;
  Linear linear(int64_t in, int64_t out, bool biased, const char* name) const;
  void place(Linear& linear);
  void place(Tensor& weight, int64_t count);
  Tensor apply(const Tensor& x, Linear& linear);
  Tensor norm(const Tensor& x, const Tensor& weight);
  Tensor rotated(const Tensor& x);
  Tensor shared(const Tensor& x);
  Tensor attention(const Tensor& x, Layer& layer);
  Tensor mlp(const Tensor& x, Layer& layer);
  Tensor layer(const Tensor& x, Layer& layer);
  Tensors forward();
  Tensor loss(const Tensors& logits);
  void micro_step();

  Torch& t_;
  const ModelSpec& spec_;
  const Setup& setup_;
  int64_t B_, T_, C_, D_, H_, K_;
  Tensor embedding_, angles_, final_norm_;
  std::vector<Layer> layers_;
  Linear head_;
  Tensor ids_, labels_;  // of the batch
  Tensor loss_, running_loss_;
  std::unique_ptr<Optimizers> optimizer_;
};

}  // namespace snug::eager
