#pragma once
// Stack profile: which libraries train, and what of their habits decides memory, as data. Each habit names the library's
// line that it stands for. Nothing here is fitted to a measurement.

#include <cstdint>
#include <string>
#include <string_view>

namespace snug::eager {

// "2.4.1" as a number that compares: 2'004'001.
int64_t version_number(std::string_view version);

struct StackProfile {
  std::string torch, transformers, peft, bitsandbytes, trl, litgpt, deepspeed;
  std::string fla;  // flash-linear-attention; empty: not installed

  // --- torch ---
  // torch/csrc/autograd/python_variable_indexing.cpp: a full slice ("x[:, n:]") is a node of its own, whose backward fills a
  // new tensor.
  bool full_slices_are_nodes = true;
  // c10/cuda/CUDACachingAllocator.cpp: blocks that fit equally well are ordered by their segments' age; before, by address.
  bool older_segments_first = false;
  // ATen/cuda/CUDABlas.cpp: products take a workspace for their own duration; before, a handle kept one.
  bool workspace_per_product = false;
  // ATen/native/transformers/cuda/attention.cu: the memory-efficient kernel takes fewer heads of keys and values than of
  // queries. Seen in 2.15; not in 2.4, which has no enable_gqa.
  bool efficient_shares_heads = false;
  // ATen/native/cuda/ForeachReduceOp.cu: of each tensor as many parts as it has chunks; before, as the largest has. Seen in
  // 2.15, not in 2.4.
  bool norms_have_chunks_apart = false;
  // torch/cuda/__init__.py asks for kernels to be loaded one by one, when they are first used, which drivers of CUDA 11 may
  // not do; releases before 2.1 are built for that CUDA.
  bool kernels_may_load_at_once = false;
  // torch/optim/adamw.py _multi_tensor_adamw: the roots and epsilon make new tensors; later they are added in place.
  bool adamw_copies_roots = false;
  // ATen/native/transformers/cuda/flash_attn: the state of random numbers is made on the device, used or not.
  bool flash_makes_random_state = false;

  // --- transformers ---
  // loss/loss_utils.py ForCausalLMLoss: logits are shifted and copied; later labels are padded instead.
  bool loss_copies_logits = true;
  // models/llama/modeling_llama.py LlamaForCausalLM.forward: the logits themselves are widened; since ForCausalLMLoss only
  // the loss's copy, and the output holds the narrow ones.
  bool forward_widens_logits = false;
  // models/mistral/modeling_mistral.py MistralFlashAttention2, and Qwen2's, Mixtral's, Phi3's: keys and values are repeated
  // for each head that shares them; Llama's and Gemma's are not, and since 4.48 nobody's.
  bool flash_repeats_heads = false;
  // integrations/sdpa_attention.py: queries, keys and values are made contiguous, keys and values repeated for each head
  // that shares them; later attention does so itself.
  bool sdpa_copies_inputs = true;
  // models/phi3/modeling_phi3.py apply_rotary_pos_emb: what turned is joined to what did not, were it nothing.
  bool phi3_joins_rotations = true;
  // models/llama/modeling_llama.py LlamaRotaryEmbedding: angles by a product of matrices; later element by element.
  bool rotary_by_product = true;
  // likewise: the first frequencies are kept beside those in use.
  bool rotary_keeps_original = false;
  // masking_utils.py: masks are made of booleans; before, of the model's dtype (_prepare_4d_causal_attention_mask…).
  bool masks_are_boolean = false;
  // models/gpt2/modeling_gpt2.py: each block has a buffer of which tokens come before which.
  bool masks_of_gpt2_are_kept = true;
  // models/gpt2/modeling_gpt2.py: past_key_values are tuples of tensors, no DynamicCache.
  bool gpt2_cache_is_tuples = true;
  // models/gemma2/modeling_gemma2.py: there is always a mask, and blocks that see a window cut it.
  bool blocks_cut_masks = true;
  // models/gpt2/modeling_gpt2.py: the loss of the logits as they are; later ForCausalLMLoss, in fp32.
  bool gpt2_loss_stays_narrow = true;
  // models/gemma/modeling_gemma.py GemmaTextScaledWordEmbedding, and Gemma 2's; before, the model scaled what it got. Gemma
  // 3's always did.
  bool embeddings_scale_themselves = false;
  // models/gemma2/modeling_gemma2.py _supports_sdpa: scores that are capped go through no fused kernel; who asks for none
  // gets products and a softmax.
  bool capped_scores_are_eager = false;
  // trainer.py create_optimizer: 8-bit optimizers keep embeddings' states in 32 bits.
  bool embeddings_keep_wide_states = false;
  // trainer.py get_decay_parameter_names: norms are told by class, and these families' are not in the list; later by name.
  bool norms_are_told_by_class = true;
  // training_args.py, default_optim: AdamW is the fused one where nothing is said.
  bool trainer_fuses_adam = false;
  // trainer.py _prepare_for_training: use_cache is taken from TrainingArguments, which have it off; before, the model's own
  // was left on.
  bool trainer_keeps_cache = true;
  // cache_utils.py DynamicLayer.update: the first keys and values too are joined to what was there, nothing, in new tensors.
  bool cache_copies_first = false;
  // modeling_layers.py GradientCheckpointingLayer: a block checkpoints itself; before, the model did around what wraps it.
  bool checkpoints_are_within_layers = false;
  // trainer.py: use_liger_kernel changes models within peft's too; before, it warns and leaves them.
  bool trainer_has_liger_for_adapters = true;
  // trainer.py prediction_step: Liger's head makes the loss without logits where only the loss is asked for.
  bool evaluation_skips_logits = false;
  // integrations/moe.py: experts lie in one tensor, and where torch has the kernel all tokens go through one grouped
  // product.
  bool experts_are_grouped = false;
  // trainer.py prediction_step: the tokens whose loss counts are counted, and the loss is divided by them.
  bool evaluation_counts_items = false;
  // training_args.py gradient_checkpointing_kwargs: the default of use_reentrant.
  bool reentrant_by_default = true;

  // --- trl ---
  // sft_trainer.py compute_loss: the forward pass is told to keep no cache.
  bool sft_drops_cache = false;
  // sft_config.py loss_type: logits are made in tiles unless "nll" is asked for; later whatever is asked for.
  bool sft_chunks_loss = false, sft_always_chunks_loss = false;

  // sft_trainer.py __init__: a quantized model is not prepared as peft has it (prepare_model_for_kbit_training); what is
  // trained of it is cast to bf16 instead, DoRA's lengths later no more.
  bool sft_narrows_adapters = false, sft_narrows_magnitudes = false;

  // --- peft ---
  // tuners/tuners_utils.py: adapters of quantized weights are made in fp32, codes being no type to follow; later in the
  // model's dtype and widened.
  bool adapters_of_codes_are_wide = false;
  // tuners/lora/layer.py update_layer: adapters take the dtype of the weight that they follow; earlier they were fp32, as
  // they are since autocast_adapter_dtype.
  bool adapters_follow_weights = false;
  // tuners/lora/layer.py ParamWrapper: an adapter of experts is added to their weights in one product; before, it was made
  // whole first.
  bool expert_adapters_are_folded = false;
  // utils/other.py prepare_model_for_kbit_training: cached memory is given back once all is widened (auto_clear_cache).
  bool preparation_empties_cache = false;
  // tuners/lora/dora.py: without dropout the base layer's output is used, not computed a second time.
  bool dora_uses_base_output = false;
  // … the product of the adapter's matrices is taken in their dtype and widened to the input's, and the identity that gives
  // it is gone before the rest (get_lora_weight); before, it is of the input's dtype and stays.
  bool dora_product_follows_adapter = false;

  // --- deepspeed ---
  // runtime/engine.py _configure_distributed_model: adapters of a model that was built in parts keep their dtype
  // (_cast_module_mixed_precision). Seen in 0.19; until 0.16 all was cast (module.bfloat16()).
  bool zero_leaves_adapters_wide = false;

  // --- litgpt ---
  // rmsnorm.py: rows are widened to fp32 (since October 2023).
  bool litgpt_widens_norms = true;
  // lora.py zero_pad: index_copy_; before, index_copy, of rows that were transposed first.
  bool litgpt_pads_in_place = true;
  // config.py: Mistral's and Phi-3's blocks see a window, by a mask; before, all tokens that came before.
  bool litgpt_windows_mistral = true;
  // finetune/lora.py: of quantized models the embedding is replaced by bitsandbytes' StableEmbedding, which gets gradients
  // that nobody clears.
  bool litgpt_stable_embedding = true;

  // --- bitsandbytes ---
  // functional.py quantize_4bit: scales less their mean are a new tensor, and each state has a code book of its own.
  bool four_bit_state_is_copied = false;
  // nn/modules.py Linear4bit.set_compute_type: the first input's dtype is computed in, whatever was asked for.
  bool four_bit_follows_input = true;
  // autograd/_functions.py MatMul4Bit: the context holds the input, which no checkpoint sees.
  bool four_bit_keeps_input = false;
  // autograd/_functions.py MatMul8bitLt: codes are reordered for cublasLt's int8 kernels.
  bool int8_is_transformed = true;
  // optim/optimizer.py: numbers of an 8-bit state that share a scale.
  int64_t optimizer_block = 2048;
};

// The stack of the versions given; what is empty is today's. Throws Error for a version that is no version.
StackProfile stack_profile(std::string_view torch = {}, std::string_view transformers = {}, std::string_view peft = {},
                           std::string_view bitsandbytes = {}, std::string_view trl = {}, std::string_view litgpt = {},
                           std::string_view deepspeed = {}, std::string_view fla = {});

}  // namespace snug::eager
