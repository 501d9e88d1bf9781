// Families that can be planned, but not be trained yet.

#include "model/families.h"
#include "model/mixed_config.h"
#include "model/planned_config.h"
#include "model/planned_fields.h"
#include "model/tower_config.h"

namespace snug {

namespace {

void as_llama(ModelSpec&) {}

// Norms stand after attention and MLP, not before ("OLMo 2 Furious", 2024).
void olmo2(ModelSpec& spec) {
  spec.naming = TensorNaming::olmo2;
  spec.pre_norms = false;
  spec.post_norms = spec.query_key_norms = spec.wide_query_key_norms = true;
}

// As OLMo 2, with norms of each head's queries and keys.
void exaone4(ModelSpec& spec) {
  olmo2(spec);
  spec.wide_query_key_norms = false;
}

void falcon(ModelSpec& spec) {
  spec.naming = TensorNaming::falcon;
  spec.norm = NormKind::layer;
  spec.fused_projections = true;
  spec.gated_mlp = spec.pad_row_is_fixed = false;
}

void gpt_oss(ModelSpec& spec) {
  spec.naming = TensorNaming::gpt_oss;
  spec.attention_sinks = spec.experts.biased = spec.experts.fused = true;
}

void deepseek(ModelSpec& spec) { spec.naming = TensorNaming::deepseek; }

void deepseek_v3(ModelSpec& spec) {
  deepseek(spec);
  spec.experts.sigmoid_scores = true;
}

void qwen2_5_vl(ModelSpec& spec) { spec.query_key_value_bias = true; }

void qwen3_vl(ModelSpec& spec) { spec.query_key_norms = true; }

void qwen3_vl_moe(ModelSpec& spec) {
  spec.query_key_norms = true;
  spec.naming = TensorNaming::qwen_moe;
}

void olmoe(ModelSpec& spec) {
  spec.naming = TensorNaming::qwen_moe;
  spec.query_key_norms = spec.wide_query_key_norms = true;
}

void qwen2_moe(ModelSpec& spec) {
  spec.naming = TensorNaming::qwen_moe;
  spec.query_key_value_bias = spec.experts.shared_gate = true;
}

void granite_moe(ModelSpec& spec) {
  spec.naming = TensorNaming::granite_moe;
  spec.experts.fused = true;
}

void glm(ModelSpec& spec) { spec.fused_gate_up = true; }

// Norms before and after attention and MLP.
void glm4(ModelSpec& spec) {
  spec.naming = TensorNaming::glm4;
  spec.fused_gate_up = spec.post_norms = true;
}

void glm4_moe(ModelSpec& spec) {
  spec.naming = TensorNaming::glm4_moe;
  spec.experts.sigmoid_scores = true;
}

void stablelm(ModelSpec& spec) {
  spec.naming = TensorNaming::stablelm;
  spec.norm = NormKind::layer;
}

void phi(ModelSpec& spec) {
  spec.naming = TensorNaming::phi;
  spec.norm = NormKind::layer;
  spec.parallel = ParallelBlock::one_norm;
  spec.gated_mlp = false;
  spec.query_key_value_bias = spec.output_bias = spec.mlp_bias = spec.head_bias = true;
}

void nemotron(ModelSpec& spec) {
  spec.norm = NormKind::layer;
  spec.norms_from_zero = true;
  spec.gated_mlp = false;
}

void opt(ModelSpec& spec) {
  spec.naming = TensorNaming::opt;
  spec.norm = NormKind::layer;
  spec.learned_positions = true;
  spec.position_offset = 2;
  spec.gated_mlp = false;
  spec.query_key_value_bias = spec.output_bias = spec.mlp_bias = true;
}

void bloom(ModelSpec& spec) {
  spec.naming = TensorNaming::bloom;
  spec.norm = NormKind::layer;
  spec.activation_form = ActivationForm::bloom;
  spec.fused_projections = spec.alibi = spec.embedding_norm = true;
  spec.gated_mlp = spec.pad_row_is_fixed = false;
  spec.query_key_value_bias = spec.output_bias = spec.mlp_bias = true;
}

// The first generation, whose code comes with its files.
void qwen(ModelSpec& spec) {
  spec.naming = TensorNaming::qwen;
  spec.fused_projections = spec.query_key_value_bias = true;
  spec.pad_row_is_fixed = false;
}

void baichuan(ModelSpec& spec) {
  spec.naming = TensorNaming::baichuan;
  spec.fused_projections = true;
}

void chatglm(ModelSpec& spec) {
  spec.naming = TensorNaming::chatglm;
  spec.fused_projections = spec.fused_gate_up = true;
  spec.pad_row_is_fixed = false;
}

// Whose parameters are known one by one.
constexpr Family listed(std::string_view model_type, std::string_view architecture,
                        void (*read)(const ConfigFields& config, ModelSpec& spec)) {
  return {.model_type = model_type,
          .architecture = architecture,
          .fix = as_llama,
          .max_position = 2048,
          .plan_only = true,
          .tensors = read};
}

constexpr auto kPlanned = std::to_array<Family>({
    {.model_type = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .fix = as_llama,
     .max_position = 32768,
     .kv_heads = 4,
     .rope_theta = 2e6,
     .tied = true,
     .fields = kSmolLm3,
     .plan_only = true},
    {.model_type = "olmo2",
     .architecture = "Olmo2ForCausalLM",
     .fix = olmo2,
     .max_position = 2048,
     .norm_eps = 1e-5,
     .plan_only = true},
    {.model_type = "falcon",
     .architecture = "FalconForCausalLM",
     .fix = falcon,
     .max_position = 2048,
     .norm_eps = 1e-5,
     .tied = true,
     .activation = "gelu",
     .fields = kFalcon,
     .plan_only = true,
     .sizes = read_falcon_sizes},
    {.model_type = "gpt_oss",
     .architecture = "GptOssForCausalLM",
     .fix = gpt_oss,
     .max_position = 131072,
     .kv_heads = 8,
     .head_size = 64,
     .sliding_window = 128,
     .norm_eps = 1e-5,
     .rope_theta = 150000.0,
     .fields = kGptOss,
     .plan_only = true},
    {.model_type = "deepseek_v2",
     .architecture = "DeepseekV2ForCausalLM",
     .fix = deepseek,
     .max_position = 2048,
     .fields = kDeepseek,
     .plan_only = true},
    {.model_type = "deepseek_v3",
     .architecture = "DeepseekV3ForCausalLM",
     .fix = deepseek_v3,
     .max_position = 4096,
     .fields = kDeepseek,
     .plan_only = true},
    {.model_type = "olmo3",
     .architecture = "Olmo3ForCausalLM",
     .fix = olmo2,
     .max_position = 2048,
     .sliding_window = 4096,
     .norm_eps = 1e-5,
     .rope_theta = 500000.0,
     .fields = kOlmo3,
     .plan_only = true},
    {.model_type = "ernie4_5",
     .architecture = "Ernie4_5ForCausalLM",
     .fix = as_llama,
     .max_position = 131072,
     .kv_heads = 2,
     .head_size = 128,
     .norm_eps = 1e-5,
     .rope_theta = 500000.0,
     .tied = true,
     .fields = kErnie,
     .plan_only = true,
     .details = read_ernie},
    {.model_type = "exaone4",
     .architecture = "Exaone4ForCausalLM",
     .fix = exaone4,
     .max_position = 2048,
     .sliding_window = 4096,
     .norm_eps = 1e-5,
     .fields = kExaone4,
     .plan_only = true},
    {.model_type = "qwen2_5_vl",
     .architecture = "Qwen2_5_VLForConditionalGeneration",
     .fix = qwen2_5_vl,
     .max_position = 32768,
     .kv_heads = 8,
     .norm_eps = 1e-5,
     .rope_theta = 1e6,
     .fields = kQwenVl,
     .plan_only = true,
     .details = read_tower},
    {.model_type = "qwen2_vl",
     .architecture = "Qwen2VLForConditionalGeneration",
     .fix = qwen2_5_vl,
     .max_position = 32768,
     .kv_heads = 8,
     .norm_eps = 1e-5,
     .rope_theta = 1e6,
     .fields = kQwenVl,
     .plan_only = true,
     .details = read_tower},
    {.model_type = "qwen3_vl",
     .architecture = "Qwen3VLForConditionalGeneration",
     .fix = qwen3_vl,
     .max_position = 128000,
     .kv_heads = 32,
     .head_size = 128,
     .rope_theta = 5e6,
     .fields = kQwenVl,
     .plan_only = true,
     .details = read_tower},
    {.model_type = "qwen3_vl_moe",
     .architecture = "Qwen3VLMoeForConditionalGeneration",
     .fix = qwen3_vl_moe,
     .max_position = 128000,
     .kv_heads = 16,
     .head_size = 128,
     .rope_theta = 5e6,
     .fields = kQwenVlMoe,
     .plan_only = true,
     .details = read_tower},
    {.model_type = "ministral3",
     .architecture = "Ministral3ForCausalLM",
     .fix = as_llama,
     .max_position = 262144,
     .plan_only = true},
    {.model_type = "mistral3",
     .architecture = "Mistral3ForConditionalGeneration",
     .fix = as_llama,
     .max_position = 131072,
     .plan_only = true},
    {.model_type = "olmoe",
     .architecture = "OlmoeForCausalLM",
     .fix = olmoe,
     .max_position = 4096,
     .norm_eps = 1e-5,
     .fields = kOlmoe,
     .plan_only = true},
    {.model_type = "granite",
     .architecture = "GraniteForCausalLM",
     .fix = as_llama,
     .max_position = 2048,
     .fields = kGranite,
     .plan_only = true,
     .details = read_granite},
    {.model_type = "granitemoe",
     .architecture = "GraniteMoeForCausalLM",
     .fix = granite_moe,
     .max_position = 2048,
     .fields = kGraniteMoe,
     .plan_only = true,
     .details = read_granite},
    {.model_type = "qwen2_moe",
     .architecture = "Qwen2MoeForCausalLM",
     .fix = qwen2_moe,
     .max_position = 32768,
     .kv_heads = 16,
     .fields = kQwen2Moe,
     .plan_only = true,
     .details = read_qwen2_moe},
    {.model_type = "glm",
     .architecture = "GlmForCausalLM",
     .fix = glm,
     .max_position = 131072,
     .kv_heads = 2,
     .head_size = 128,
     .norm_eps = 1.5625e-7,
     .fields = kGlm,
     .plan_only = true,
     .rotary_share = 0.5,
     .details = read_glm},
    {.model_type = "glm4",
     .architecture = "Glm4ForCausalLM",
     .fix = glm4,
     .max_position = 131072,
     .kv_heads = 2,
     .head_size = 128,
     .norm_eps = 1.5625e-7,
     .fields = kGlm,
     .plan_only = true,
     .rotary_share = 0.5,
     .details = read_glm},
    {.model_type = "glm4_moe",
     .architecture = "Glm4MoeForCausalLM",
     .fix = glm4_moe,
     .max_position = 131072,
     .kv_heads = 8,
     .norm_eps = 1e-5,
     .fields = kGlm4Moe,
     .plan_only = true,
     .rotary_share = 0.5,
     .details = read_glm4_moe},
    {.model_type = "stablelm",
     .architecture = "StableLmForCausalLM",
     .fix = stablelm,
     .max_position = 4096,
     .kv_heads = 32,
     .norm_eps = 1e-5,
     .fields = kStableLm,
     .plan_only = true,
     .rotary_share = 0.25,
     .details = read_stablelm},
    {.model_type = "phi",
     .architecture = "PhiForCausalLM",
     .fix = phi,
     .max_position = 2048,
     .norm_eps = 1e-5,
     .activation = "gelu_new",
     .fields = kPhi,
     .plan_only = true,
     .rotary_share = 0.5,
     .details = read_phi},
    {.model_type = "seed_oss",
     .architecture = "SeedOssForCausalLM",
     .fix = as_llama,
     .max_position = 524288,
     .kv_heads = 8,
     .head_size = 128,
     .fields = kSeedOss,
     .plan_only = true,
     .details = read_seed_oss},
    {.model_type = "nemotron",
     .architecture = "NemotronForCausalLM",
     .fix = nemotron,
     .max_position = 4096,
     .norm_eps = 1e-5,
     .activation = "relu2",
     .fields = kNemotron,
     .plan_only = true,
     .rotary_share = 0.5,
     .details = read_nemotron},
    {.model_type = "opt",
     .architecture = "OPTForCausalLM",
     .fix = opt,
     .max_position = 2048,
     .norm_eps = 1e-5,
     .tied = true,
     .activation = "relu",
     .fields = kOpt,
     .plan_only = true,
     .sizes = read_opt_sizes},
    {.model_type = "bloom",
     .architecture = "BloomForCausalLM",
     .fix = bloom,
     .max_position = 2048,
     .norm_eps = 1e-5,
     .tied = true,
     .activation = "gelu",
     .fields = kBloom,
     .plan_only = true,
     .sizes = read_bloom_sizes},
    {.model_type = "qwen",
     .architecture = "QWenLMHeadModel",
     .fix = qwen,
     .max_position = 8192,
     .fields = kQwen1,
     .plan_only = true,
     .sizes = read_qwen_sizes},
    {.model_type = "baichuan",
     .architecture = "BaichuanForCausalLM",
     .fix = baichuan,
     .max_position = 4096,
     .fields = kBaichuan,
     .plan_only = true,
     .details = read_baichuan},
    {.model_type = "chatglm",
     .architecture = "ChatGLMModel",
     .fix = chatglm,
     .max_position = 8192,
     .fields = kChatGlm,
     .plan_only = true,
     .rotary_share = 0.5,
     .sizes = read_chatglm_sizes},
    listed("qwen3_next", "Qwen3NextForCausalLM", read_qwen3_next),
    listed("qwen3_5", "Qwen3_5ForCausalLM", read_qwen3_next),
    listed("qwen3_5_moe", "Qwen3_5MoeForCausalLM", read_qwen3_next),
    listed("falcon_h1", "FalconH1ForCausalLM", read_falcon_h1),
    listed("lfm2", "Lfm2ForCausalLM", read_lfm2),
    listed("lfm2_moe", "Lfm2MoeForCausalLM", read_lfm2_moe),
    listed("granitemoehybrid", "GraniteMoeHybridForCausalLM", read_granite_hybrid),
    listed("llama4", "Llama4ForCausalLM", read_llama4),
    listed("gemma3n", "Gemma3nForCausalLM", read_gemma3n),
    listed("gemma4", "Gemma4ForCausalLM", read_gemma4),
    listed("cohere", "CohereForCausalLM", read_cohere),
    listed("cohere2", "Cohere2ForCausalLM", read_cohere),
    listed("internlm2", "InternLM2ForCausalLM", read_internlm2),
    listed("exaone", "ExaoneForCausalLM", read_exaone),
    listed("minicpm", "MiniCPMForCausalLM", read_minicpm),
    listed("mpt", "MptForCausalLM", read_mpt),
    listed("starcoder2", "Starcoder2ForCausalLM", read_starcoder2),
    listed("gpt_bigcode", "GPTBigCodeForCausalLM", read_gpt_bigcode),
    listed("gpt_neox", "GPTNeoXForCausalLM", read_gpt_neox),
    listed("chatglm1", "ChatGLM1Model", read_chatglm1),
    listed("gptj", "GPTJForCausalLM", read_gptj),
    listed("gpt_neo", "GPTNeoForCausalLM", read_gpt_neo),
    listed("codegen", "CodeGenForCausalLM", read_gptj),
    listed("olmo", "OlmoForCausalLM", read_olmo),
    listed("apertus", "ApertusForCausalLM", read_apertus),
});

}  // namespace

std::span<const Family> planned_families() { return kPlanned; }

}  // namespace snug
