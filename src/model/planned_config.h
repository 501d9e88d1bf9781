#pragma once
// What the config.json of families that can only be planned says in words of its own.

#include "model/config_fields.h"
#include "model/model_spec.h"

namespace snug {

// Sizes, where a family does not call them as most do.
void read_falcon_sizes(const ConfigFields& config, ModelSpec& spec);
void read_opt_sizes(const ConfigFields& config, ModelSpec& spec);
void read_bloom_sizes(const ConfigFields& config, ModelSpec& spec);
void read_qwen_sizes(const ConfigFields& config, ModelSpec& spec);     // the first generation
void read_chatglm_sizes(const ConfigFields& config, ModelSpec& spec);  // ChatGLM 2 and 3

// What else they say.
void read_granite(const ConfigFields& config, ModelSpec& spec);  // and its mixtures of experts
void read_qwen2_moe(const ConfigFields& config, ModelSpec& spec);
void read_glm(const ConfigFields& config, ModelSpec& spec);  // and GLM-4
void read_glm4_moe(const ConfigFields& config, ModelSpec& spec);
void read_stablelm(const ConfigFields& config, ModelSpec& spec);
void read_phi(const ConfigFields& config, ModelSpec& spec);
void read_seed_oss(const ConfigFields& config, ModelSpec& spec);
void read_nemotron(const ConfigFields& config, ModelSpec& spec);
void read_ernie(const ConfigFields& config, ModelSpec& spec);
void read_baichuan(const ConfigFields& config, ModelSpec& spec);

}  // namespace snug
