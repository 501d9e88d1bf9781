// Every family's config.json: what is read of it, totals as published, and back again.

#include "model/families.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "model/config.h"
#include "model/parameters.h"

namespace snug {
namespace {

ModelSpec parse(const std::string& json) { return parse_config(json, "config.json"); }

struct Published {
  const char* name;
  const char* config;
  int64_t parameters;
};

// Sizes from the models' own files; totals from their cards, as safetensors counts them.
const Published kPublished[] = {
    {"Qwen2.5-0.5B",
     R"({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
         "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": true,
         "max_window_layers": 24, "sliding_window": 32768, "use_sliding_window": false, "rope_theta": 1000000.0})",
     494032768},
    {"Qwen2.5-7B",
     R"({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
         "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": false})",
     7615616512},
    {"Qwen3-0.6B",
     R"({"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "head_dim": 128,
         "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 151936, "tie_word_embeddings": true})",
     596049920},
    {"Qwen3-8B",
     R"({"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "head_dim": 128,
         "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 151936, "attention_bias": false})",
     8190735360},
    {"gemma-2b",
     R"({"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18, "head_dim": 256,
         "num_attention_heads": 8, "num_key_value_heads": 1, "vocab_size": 256000})",
     2506172416},
    {"gemma-2-2b",
     R"({"model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "head_dim": 256,
         "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 256000, "query_pre_attn_scalar": 256})",
     2614341888},
    {"gemma-3-1b",
     R"({"model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26,
         "head_dim": 256, "num_attention_heads": 4, "num_key_value_heads": 1, "vocab_size": 262144, "sliding_window": 512,
         "sliding_window_pattern": 6, "rope_local_base_freq": 10000, "rope_theta": 1000000, "rope_scaling": null,
         "query_pre_attn_scalar": 256})",
     999885952},
    {"gemma-3-4b and medgemma-4b",
     R"({"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "image_token_index": 262144,
         "mm_tokens_per_image": 256, "torch_dtype": "bfloat16", "eos_token_id": [1, 106],
         "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
                         "num_hidden_layers": 34, "sliding_window": 1024, "num_attention_heads": 8,
                         "num_key_value_heads": 4, "vocab_size": 262208,
                         "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
         "vision_config": {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
                           "num_attention_heads": 16, "image_size": 896, "patch_size": 14,
                           "model_type": "siglip_vision_model", "vision_use_head": false}})",
     4300079472},
    {"Phi-3-mini-4k",
     R"({"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064, "sliding_window": 2047,
         "original_max_position_embeddings": 4096, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attention_bias": false})",
     3821079552},
    {"Mixtral-8x7B",
     R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8,
         "num_experts_per_tok": 2, "router_aux_loss_coef": 0.02, "output_router_logits": false})",
     46702792704},
    {"Qwen3-30B-A3B",
     R"({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 48,
         "head_dim": 128, "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 151936, "num_experts": 128,
         "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": true, "decoder_sparse_step": 1,
         "mlp_only_layers": [], "max_window_layers": 48, "rope_theta": 1000000.0})",
     30532122624},
    {"gpt2", R"({"model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
                 "summary_type": "cls_index", "vocab_size": 50257, "task_specific_params": {"text-generation": {}}})",
     124439808},
};

TEST(Families, TotalsAreThePublishedOnes) {
  for (const Published& model : kPublished) EXPECT_EQ(total_parameters(parse(model.config)), model.parameters) << model.name;
}

// Gemma 3 with a vision tower reads back as the text model alone: the tower's description is not kept.
TEST(Families, AConfigIsReadBackAsItWasWritten) {
  for (const Published& model : kPublished) {
    ModelSpec spec = parse(model.config);
    if (spec.vision_parameters > 0) continue;
    const ModelSpec again = parse(format_config(spec, spec.dtype));
    EXPECT_TRUE(again == spec) << model.name << ": " << format_config(spec, spec.dtype);
  }
}

TEST(Families, GoldenConfigsOfTransformersAreReadBackToo) {
  int64_t read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(SNUG_SOURCE_DIR) + "/tests/golden")) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    ModelSpec spec = read_config(entry.path());
    if (spec.vision_parameters > 0) continue;
    spec.quantization.reset();  // what is written describes a checkpoint of numbers
    ModelSpec again = parse(format_config(spec, spec.dtype));
    again.name = spec.name;
    EXPECT_TRUE(again == spec) << entry.path();
    ++read;
  }
  EXPECT_GE(read, 15);
}

TEST(Families, LayersSeeWindowsWhereTheyShould) {
  const auto pattern = [](const std::string& json) {
    std::string text;
    for (const bool local : parse(json).local_layers) text += local ? 'w' : 'f';
    return text;
  };
  const std::string sizes =
      R"("hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 7, "num_attention_heads": 4,
         "num_key_value_heads": 4, "vocab_size": 100)";
  EXPECT_EQ(pattern(R"({"model_type": "mistral", )" + sizes + "}"), "wwwwwww");
  EXPECT_EQ(pattern(R"({"model_type": "mistral", "sliding_window": null, )" + sizes + "}"), "");
  EXPECT_EQ(pattern(R"({"model_type": "gemma2", )" + sizes + "}"), "wfwfwfw");
  EXPECT_EQ(pattern(R"({"model_type": "gemma3_text", )" + sizes + "}"), "wwwwwfw");
  EXPECT_EQ(pattern(R"({"model_type": "gemma3_text", "sliding_window_pattern": 3, )" + sizes + "}"), "wwfwwfw");
  EXPECT_EQ(pattern(R"({"model_type": "qwen2", "sliding_window": 32, "max_window_layers": 4, )" + sizes + "}"), "");
  EXPECT_EQ(pattern(R"({"model_type": "qwen2", "use_sliding_window": true, "sliding_window": 32,
                        "max_window_layers": 4, )" +
                    sizes + "}"),
            "ffffwww");
  EXPECT_EQ(pattern(R"({"model_type": "qwen3", "use_sliding_window": true, "sliding_window": 32, "layer_types":
                        ["full_attention", "sliding_attention", "full_attention", "full_attention", "full_attention",
                         "full_attention", "full_attention"], )" +
                    sizes + "}"),
            "fwfffff");
}

// The fields of DeepSeek-V3's own file.
TEST(Families, LatentAttentionAndSharedExpertsAreRead) {
  const std::string fields =
      R"("architectures": ["DeepseekV3ForCausalLM"], "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV3Config"},
         "attention_bias": false, "aux_loss_alpha": 0.001, "ep_size": 1, "first_k_dense_replace": 3, "hidden_size": 7168,
         "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 163840, "moe_intermediate_size": 2048,
         "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true,
         "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
         "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
         "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8"},
         "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
                          "original_max_position_embeddings": 4096, "type": "yarn"},
         "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "seq_aux": true, "topk_group": 4,
         "topk_method": "noaux_tc", "torch_dtype": "bfloat16", "v_head_dim": 128, "vocab_size": 129280})";
  for (const char* type : {"deepseek_v3", "kimi_k2"}) {
    const ModelSpec spec = parse(std::string(R"({"model_type": ")") + type + "\", " + fields);
    EXPECT_EQ(total_parameters(spec), 671'026'404'352);
    EXPECT_EQ(spec.latent, (LatentAttention{.rank = 512, .query_rank = 1536, .value_size = 128}));
    EXPECT_EQ(spec.head_size, 192);
    EXPECT_EQ(spec.rotated(), 64);
    EXPECT_EQ(spec.experts.dense_layers, 3);
    EXPECT_EQ(spec.experts.weight_scale, 2.5);
    EXPECT_EQ(spec.rope.attention_factor, 1.0);
    EXPECT_FALSE(spec.quantization);
    EXPECT_EQ(spec.stored_format, "fp8");
  }
}

TEST(Families, WhatAFamilyCannotHaveIsRefusedByName) {
  const auto refusal = [](const std::string& more) -> std::string {
    const std::string sizes =
        R"("hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
           "num_key_value_heads": 4, "vocab_size": 100, )";
    try {
      parse("{" + sizes + more + "}");
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::pair<const char*, const char*> cases[] = {
      {R"("model_type": "gemma2", "hidden_activation": "gelu")", "hidden_activation \"gelu\" is not supported yet"},
      {R"("model_type": "gemma2", "layer_types": ["full_attention"])", "layer_types has 1 entries for 2 layers"},
      {R"("model_type": "qwen3", "layer_types": ["chunked_attention", "full_attention"])", "'chunked_attention'"},
      {R"("model_type": "qwen3", "layer_types": ["sliding_attention", "full_attention"])", "sliding_window is not given"},
      {R"("model_type": "phi3", "resid_pdrop": 0.1)", "resid_pdrop = 0.1"},
      {R"("model_type": "phi3", "attention_bias": true)", "attention_bias"},
      {R"("model_type": "phi3", "rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1]})",
       "must have 8 numbers each"},
      {R"("model_type": "llama", "partial_rotary_factor": 0.1)", "turns 1 numbers of a head"},
      {R"("model_type": "qwen3_5_text", "linear_num_key_heads": 16, "linear_num_value_heads": 24)", "no multiple of"},
      {R"("model_type": "qwen3_moe", "decoder_sparse_step": 2)", "decoder_sparse_step"},
      {R"("model_type": "qwen3_moe", "mlp_only_layers": [0])", "mlp_only_layers"},
      {R"("model_type": "mixtral", "router_jitter_noise": 0.1)", "router_jitter_noise"},
      {R"("model_type": "deepseek_v3", "num_experts_per_tok": 9, "n_routed_experts": 8)", "num_experts_per_tok"},
      {R"("model_type": "deepseek_v3", "first_k_dense_replace": 2)", "first_k_dense_replace"},
      {R"("model_type": "deepseek_v3", "first_k_dense_replace": 1, "moe_layer_freq": 2)", "moe_layer_freq"},
      {R"("model_type": "deepseek_v3", "first_k_dense_replace": 1, "scoring_func": "softmax")", "scoring_func 'softmax'"},
      {R"("model_type": "deepseek_v2", "num_experts_per_tok": 2, "topk_method": "noaux_tc")", "topk_method 'noaux_tc'"},
      {R"("model_type": "deepseek_v2")", "num_experts_per_tok is missing"},
      {R"("model_type": "deepseek_v2", "attention_bias": true)", "attention_bias = true"},
      {R"("model_type": "deepseek_v2", "qk_rope_head_dim": 63)", "qk_rope_head_dim 63 is odd"},
      {R"("model_type": "llama", "quantization_config": {"quant_method": "fp8"})", "quant_method 'fp8' is not supported"},
      {R"("model_type": "gemma3")", "text_config is missing"},
      {R"("model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 0})",
       "text_config.hidden_size"},
  };
  for (const auto& [more, part] : cases)
    EXPECT_NE(refusal(more).find(part), std::string::npos) << more << " says: " << refusal(more);
}

}  // namespace
}  // namespace snug
