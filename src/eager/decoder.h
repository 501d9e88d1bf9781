#pragma once
// A causal language model as transformers builds it, on sizes: its modules in their order of registration, the adapters that
// peft puts around them, and the forward pass line by line. What autograd keeps follows from it. Letters as in the model
// room: B batch, T tokens, C hidden, F MLP width, V vocabulary, H heads, K key/value heads, D head size.

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "eager/attention_kernels.h"
#include "eager/flat_sharded.h"
#include "eager/fully_sharded.h"
#include "eager/optimizer.h"
#include "eager/partitioned.h"
#include "eager/setup.h"
#include "eager/torch_ops.h"
#include "model/model_spec.h"

namespace snug::eager {

struct Adapter {
  Tensor a, b, magnitude;
  int64_t rank = 0;
};

struct Linear {
  std::string name;  // of the module: "q_proj"
  std::string path;  // within its block: "self_attn.q_proj"
  int64_t in = 0, out = 0;
  Tensor weight, bias;
  bool present = false, biased = false;
  Adapter adapter;
  bool four_bit = false, eight_bit = false, gptq = false, reordered = false;
  Tensor scales, code, offset, scale_scales, scales_code;  // of a quantized weight: absmax, its code book, and absmax's own
  DType compute = DType::bf16;                             // bitsandbytes' compute_dtype
};

struct Norm {
  std::string path;  // within its block
  int64_t size = 0;
  Tensor weight, bias;
};

// A gated delta rule in place of attention: queries, keys and values mixed over tokens; what its output is multiplied by;
// how much is written, and how fast is forgotten.
struct DeltaLayer {
  Linear mixed, gate, beta, decay, output;
  Tensor kernel, step_bias, decay_log;
  Norm norm;
};

struct Block {
  Linear query, key, value, query_key_value, output, gate, up, gate_up, down;
  Norm attention_norm, mlp_norm, attention_post_norm, mlp_post_norm, query_norm, key_norm;
  Tensor router, gate_up_experts, down_experts;
  Adapter router_adapter, gate_up_adapter, down_adapter;
  DeltaLayer delta;
  Tensor causal, masked;  // GPT-2's buffers
  bool local = false;
};

// A linear of a vision tower, or another of its tensors.
struct TowerPart {
  std::string name;
  int64_t count = 0;
  Linear linear;
  Tensor tensor;
};

class Decoder {
 public:
  Decoder(Torch& torch, const ModelSpec& spec, const Setup& setup);

  void load();     // its weights on the device, quantized if that is asked for
  void prepare();  // peft.prepare_model_for_kbit_training
  void adapt();    // peft.get_peft_model

  // Of the rows of the next forward pass.
  void set_length(int64_t tokens) { T_ = tokens; }

  // What is trained, in the order of model.parameters().
  std::vector<Trained> trained();
  // All of model.parameters(), adapters among them.
  std::vector<Tensor*> parameters();

  // They as accelerate wraps them in fully_shard: the embedding, each block, the last norm and the head; with tied
  // embeddings those are one.
  std::vector<UnitParameters> units();
  // They as FSDP 1 wraps them: adapters, blocks, all else (accelerate; peft's fsdp_auto_wrap_policy).
  std::vector<FlatUnit> flat_units();
  // What is around units from now on.
  void share(FullySharded* sharded) { sharded_ = sharded; }
  void share(FlatSharded* flat) { flat_ = flat; }
  void share(PartitionedModel* partitioned) { partitioned_ = partitioned; }
  bool is_tied() const { return spec_.tied_embeddings; }
  // The dtype that modules' constructors make weights in: from_pretrained's, but Qwen 1's own files cast after that.
  DType made_as() const { return is_qwen1() ? DType::f32 : setup_.weights; }

  struct Outputs {
    Tensor loss, logits;  // no logits where the head makes the loss itself
  };
  // One forward pass of a training step.
  Outputs forward();
  // One of an evaluation, of so many rows and tokens; the caller has gradients off.
  Outputs evaluate(int64_t rows, int64_t tokens);

 private:
  struct Positions {
    Tensor cos, sin, indices, mask;
    Tensor cos_other, sin_other;  // of the other kind of layer
    Tensor window;                // of blocks that see a window, where rows are as long as that
    Tensor padding;               // of blocks without attention, where some rows are shorter: the rows' own mask
    Tensor* shares = nullptr;     // where eager attention leaves what it gives beside its output: its block holds it
  };

  // `columns`: of the last dimension; 0: there is one only.
  using Visit = std::function<void(Tensor& tensor, int64_t count, int64_t columns, bool decays)>;
  void each_linear(const std::function<void(Linear&)>& visit);
  void visit_parameters(const Visit& visit);
  void visit_linear(Linear& linear, const Visit& visit);
  void visit_norm(Norm& norm, const Visit& visit);
  void visit_block(Block& block, const Visit& visit);
  void make_delta_net(Block& block);
  static std::vector<Linear*> linears_of(DeltaLayer& net) {
    return {&net.output, &net.mixed, &net.gate, &net.beta, &net.decay};
  }
  static std::vector<Linear*> linears_of(Block& block);
  void visit_delta_net(Block& block, const Visit& visit);
  Tensor delta_attention(const Tensor& input, Block& block, const Positions& where);
  Tensor convolved(const Tensor& mixed, DeltaLayer& net);
  Tensor unit_length(const Tensor& x, int64_t rows);
  struct DeltaHeads {
    Tensor query, key, value, decay, beta;
  };
  // What a scan over chunks reads, writes, and leaves in its frame.
  struct DeltaScan {
    Tensor within, values, old_keys, decays, state, output, fresh, across;
  };
  DeltaHeads delta_heads(DeltaHeads heads);
  Tensor delta_rule(const DeltaHeads& given);
  // Numbers in tensors of all value heads, and how many of them share a key.
  struct DeltaSizes {
    int64_t keys = 0, values = 0, states = 0, heads = 0, groups = 1;
  };
  Tensor fused_delta_rule(const DeltaHeads& given);
  Tensors fused_delta_gradients(const DeltaSizes& n, const Tensors& saved);
  void scan_chunk(DeltaScan& scan, const DeltaHeads& heads);
  Tensor gated_norm(const Tensor& x, const Tensor& gate, Norm& norm);
  bool is_hybrid() const { return !spec_.delta_net.layers.empty(); }
  void make_tower();
  void visit_tower(const Visit& visit);
  void each_tower_linear(const std::function<void(Linear&)>& visit);
  void each_adaptable_linear(const std::function<void(Linear&)>& visit);
  Tensor placed(int64_t count, DType dtype, Role role);
  bool is_norm(const Tensor& tensor) const;  // whether it is the weight of one
  void make_blocks();
  void start_magnitude(Linear& linear);
  void narrow_adapters();
  void save_module(Tensor& weight);
  void make_frequencies();
  void load_quantized();
  void quantize_four_bit(Linear& linear);
  void quantize_eight_bit(Linear& linear);
  void load_gptq(Linear& linear);
  Tensor matmul_gptq(const Tensor& x, Linear& linear);
  Tensor matmul_eight_bit(const Tensor& x, Linear& linear);
  Tensor matmul_transformed(const Tensor& x, Linear& linear);
  Tensor dequantized(const Linear& linear);
  Tensor base(const Tensor& x, Linear& linear);
  Tensor matmul_four_bit(const Tensor& x, Linear& linear);

  bool embedding_scales() const;
  Tensor embedded();
  Positions positions();
  Tensor blocks(Tensor hidden, const Positions& where);
  Tensor checkpointed(const Tensor& input, const std::function<Tensor(const Tensor&)>& block);
  bool keeps_cache() const { return t_.training ? setup_.cache : setup_.evaluation.cache; }
  bool fuses_liger_head() const;
  Tensor in_unit(const void* key, const Tensor& input, const std::function<Tensor(const Tensor&)>& forward);
  Tensor block(const Tensor& input, Block& block, const Positions& where);
  Tensor stable_block(const Tensor& input, Block& block, const Positions& where);
  Tensor phi_block(const Tensor& input, Block& block, const Positions& where);
  Tensor qwen_block(const Tensor& input, Block& block, const Positions& where);
  Tensor qwen_attention(const Tensor& x, Block& block, const Positions& where);
  void qwen_angles(Positions& positions);
  Tensor qwen_rotation(const Tensor& x, const Positions& where);
  Tensor qwen_mlp(const Tensor& x, Block& block);
  Tensor opt_positions(const Tensor& embedded);
  void angles(Positions& positions);
  void hybrid_angles(Positions& positions);
  Tensor attended(Tensor& query, Tensor& key, Tensor value, Block& block, const Positions& where, const Tensor& gate);
  Tensor new_gelu(const Tensor& x);
  Tensor plain_mlp(const Tensor& x, Block& block);
  Tensor normalized(const Tensor& x, int64_t rows);
  Tensor over_root(const Tensor& x, int64_t rows, Tensor& variance);
  Tensor attention(const Tensor& x, Block& block, const Positions& where);
  bool joins_rotations() const;
  Tensor repeated(const Tensor& x, int64_t times);
  Tensor attend(Tensor query, Tensor key, Tensor value, const Tensor& mask);
  Tensor attend_eagerly(const Tensor& query, Tensor key, Tensor value, const Positions& where);
  Tensor causal_mask();
  Tensor window_mask();
  Tensor made_mask(bool always);
  Positions in_window(const Positions& where, Tensor& window);
  AttentionShape attention_shape() const;
  Tensor flash(const Tensor& query, const Tensor& key, const Tensor& value, bool copies);
  Tensor efficient(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask);
  Tensor gated_attention(const Tensor& x, Block& block, const Positions& where);
  Tensor viewed_by_heads(const Tensor& x);
  bool value_gradient_is_copied(const Positions& where) const;
  Tensor mlp(const Tensor& x, Block& block);
  // What a router says: its scores, the shares of the experts that each token goes to, and which these are.
  struct Routing {
    Tensor logits, weights, chosen;
  };
  Routing routed(const Tensor& x, Block& b);
  Tensor experts(const Tensor& x, Block& b);
  Tensor grouped(const Tensor& input, const Tensor& weight, const Tensor& offsets, int64_t count);
  Tensor summed(const Tensor& weighed);
  // What peft adds to experts: two factors for each.
  struct Factors {
    Tensor left, right;
  };
  Factors factors(const Adapter& adapter, DType dtype);
  Tensor folded(const Tensor& weight, const Factors& factors);
  void try_fold(const Tensor& weight, const Factors& factors);
  Tensor router_delta(Block& b);
  void adapt_experts();
  void each_expert_adapter(Block& b, const std::function<void(Adapter&, int64_t in, int64_t out)>& visit);
  void visit_experts(Block& b, const Visit& visit);
  Tensor norm(const Tensor& x, const Norm& norm);
  Tensor normed(const Tensor& x, const Norm& norm);
  Tensor called(const void* key, const std::vector<const Tensor*>& parameters, const Tensor& input,
                const std::function<Tensor(const Tensor&)>& forward);
  Tensor rotate(const Tensor& x, const Positions& where);
  void rotate_part(Tensor& query, Tensor& key, const Positions& where, Tensors& locals);
  Tensor apply(const Tensor& x, Linear& linear);
  Tensor adapted(const Tensor& input, Linear& linear);
  Tensor decomposed(const Tensor& x, const Tensor& base_output, Linear& linear);
  Tensor head(const Tensor& hidden);
  Tensor loss(Tensor& logits);
  Tensor chunked_loss(const Tensor& hidden);
  Tensor fused_norm(const Tensor& x, const Norm& norm);
  Tensor fused_rotation(const Tensor& x);
  Tensor fused_loss(const Tensor& shifted, const Tensor& labels);
  Tensor fused_linear_loss(const Tensor& hidden);
  void fused_linear_gradients(const Tensor& hidden, const Tensor& weight, int64_t rows);
  Tensor liger_norm(const Tensor& x, const Norm& norm);
  void liger_rotation(Tensor& query, Tensor& key, const Positions& where);
  Tensor liger_gate(const Tensor& gate, const Tensor& up);
  Tensor liger_linear_loss(const Tensor& hidden);
  void liger_gradients(const Tensor& hidden, const Tensor& weight, DType dtype);
  bool fuses_adapters(std::initializer_list<const Linear*> linears) const;
  Tensors fused_adapters(const Tensor& x, std::vector<Linear*> linears);
  Tensor fused_product(const Tensor& x, Linear& linear, const Tensor& ready, Tensor& dropped);
  void fused_adapter_gradients(const Linear& linear, const Tensor& gradient, int64_t rows, Tensors& results);
  void fused_input_gradient(const Linear& linear, const Tensor& gradient, const Tensor& into);
  void chunk_products(int64_t rows, const Tensor& weight, DType dtype, DType compute);
  bool always_has_mask() const;
  bool is_gpt2() const { return spec_.naming == TensorNaming::gpt2; }
  bool is_qwen1() const { return spec_.naming == TensorNaming::qwen; }
  // Whether a block's modules are registered as GPT-2's are: norms before what they feed, queries, keys and values in one.
  bool is_in_order_of_gpt2() const { return is_gpt2() || is_qwen1(); }
  bool drops_outputs() const;
  // Gemma3Attention: queries and keys are normed when values are there; and its blocks turn by two kinds of angles.
  bool norms_follow_projections() const { return spec_.family.starts_with("gemma3"); }

  Torch& t_;
  const ModelSpec& spec_;
  const Setup& setup_;
  int64_t B_, T_, C_, D_;
  Tensor embedding_, position_embedding_, inverse_frequencies_, original_frequencies_;
  std::vector<Block> blocks_;
  std::vector<TowerPart> tower_;
  Norm final_norm_;
  Linear head_;
  Tensors originals_;   // what peft's ModulesToSaveWrapper keeps beside the copies that are trained
  Tensor scales_code_;  // bitsandbytes' code book of scales, one for all
  bool inputs_require_grad_ = false;
  FullySharded* sharded_ = nullptr;
  FlatSharded* flat_ = nullptr;
  PartitionedModel* partitioned_ = nullptr;
  Tensors cache_;               // of the forward pass that runs
  Tensor kept_cos_, kept_sin_;  // Qwen 1's angles, made for rows twice as long as the longest so far
};

}  // namespace snug::eager
