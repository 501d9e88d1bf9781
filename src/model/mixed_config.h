#pragma once
// Families whose blocks are of several kinds: linear attention, state spaces, convolutions or experts beside attention.
// Their parameters are known one by one; their step is not modelled.

#include "model/config_fields.h"
#include "model/model_spec.h"

namespace snug {

// Each fills sizes, tensors and unmodelled_step. A text_config within is the text model; towers beside it are not counted,
// as AutoModelForCausalLM does not build them.
void read_qwen3_next(const ConfigFields& outer, ModelSpec& spec);  // and Qwen3.5
void read_falcon_h1(const ConfigFields& config, ModelSpec& spec);
void read_lfm2(const ConfigFields& config, ModelSpec& spec);
void read_lfm2_moe(const ConfigFields& config, ModelSpec& spec);
void read_granite_hybrid(const ConfigFields& config, ModelSpec& spec);
void read_llama4(const ConfigFields& outer, ModelSpec& spec);
void read_gemma3n(const ConfigFields& outer, ModelSpec& spec);
void read_gemma4(const ConfigFields& outer, ModelSpec& spec);
// early_config.cpp
void read_starcoder2(const ConfigFields& config, ModelSpec& spec);
void read_gpt_bigcode(const ConfigFields& config, ModelSpec& spec);
void read_gpt_neox(const ConfigFields& config, ModelSpec& spec);
void read_gptj(const ConfigFields& config, ModelSpec& spec);  // and CodeGen
void read_chatglm1(const ConfigFields& config, ModelSpec& spec);
void read_gpt_neo(const ConfigFields& config, ModelSpec& spec);
void read_mpt(const ConfigFields& config, ModelSpec& spec);
void read_internlm2(const ConfigFields& config, ModelSpec& spec);
void read_exaone(const ConfigFields& config, ModelSpec& spec);
void read_minicpm(const ConfigFields& config, ModelSpec& spec);
void read_cohere(const ConfigFields& config, ModelSpec& spec);
void read_olmo(const ConfigFields& config, ModelSpec& spec);
void read_apertus(const ConfigFields& config, ModelSpec& spec);

}  // namespace snug
