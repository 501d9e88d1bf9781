#pragma once
// torchtune's builders of models (torchtune/models/*) by the names of the checkpoints that its own configs download.

#include <array>
#include <string_view>

namespace snug::dialects {

struct Builder {
  std::string_view component, model;
};

// torchtune/models/*: the end of the builder's name -> the checkpoint that its config downloads.
inline constexpr auto kBuilders = std::to_array<Builder>({
    {"llama2_7b", "meta-llama/Llama-2-7b-hf"},
    {"llama2_13b", "meta-llama/Llama-2-13b-hf"},
    {"llama2_70b", "meta-llama/Llama-2-70b-hf"},
    {"code_llama2_7b", "codellama/CodeLlama-7b-hf"},
    {"code_llama2_13b", "codellama/CodeLlama-13b-hf"},
    {"llama3_8b", "meta-llama/Meta-Llama-3-8B-Instruct"},
    {"llama3_70b", "meta-llama/Meta-Llama-3-70B-Instruct"},
    {"llama3_1_8b", "meta-llama/Llama-3.1-8B-Instruct"},
    {"llama3_1_70b", "meta-llama/Llama-3.1-70B-Instruct"},
    {"llama3_1_405b", "meta-llama/Llama-3.1-405B-Instruct"},
    {"llama3_2_1b", "meta-llama/Llama-3.2-1B-Instruct"},
    {"llama3_2_3b", "meta-llama/Llama-3.2-3B-Instruct"},
    {"llama3_3_70b", "meta-llama/Llama-3.3-70B-Instruct"},
    {"mistral_7b", "mistralai/Mistral-7B-v0.1"},
    {"gemma_2b", "google/gemma-2b"},
    {"gemma_7b", "google/gemma-7b"},
    {"gemma2_2b", "google/gemma-2-2b"},
    {"gemma2_9b", "google/gemma-2-9b"},
    {"gemma2_27b", "google/gemma-2-27b"},
    {"phi3_mini", "microsoft/Phi-3-mini-4k-instruct"},
    {"phi4_14b", "microsoft/phi-4"},
    {"qwen2_0_5b", "Qwen/Qwen2-0.5B-Instruct"},
    {"qwen2_1_5b", "Qwen/Qwen2-1.5B-Instruct"},
    {"qwen2_7b", "Qwen/Qwen2-7B-Instruct"},
    {"qwen2_5_0_5b", "Qwen/Qwen2.5-0.5B-Instruct"},
    {"qwen2_5_1_5b_base", "Qwen/Qwen2.5-1.5B"},
    {"qwen2_5_1_5b_instruct", "Qwen/Qwen2.5-1.5B-Instruct"},
    {"qwen2_5_3b", "Qwen/Qwen2.5-3B-Instruct"},
    {"qwen2_5_7b_base", "Qwen/Qwen2.5-7B"},
    {"qwen2_5_7b_instruct", "Qwen/Qwen2.5-7B-Instruct"},
    {"qwen2_5_14b_base", "Qwen/Qwen2.5-14B"},
    {"qwen2_5_14b_instruct", "Qwen/Qwen2.5-14B-Instruct"},
    {"qwen2_5_32b_base", "Qwen/Qwen2.5-32B"},
    {"qwen2_5_32b_instruct", "Qwen/Qwen2.5-32B-Instruct"},
    {"qwen2_5_72b_base", "Qwen/Qwen2.5-72B"},
    {"qwen2_5_72b_instruct", "Qwen/Qwen2.5-72B-Instruct"},
    {"qwen3_0_6b_base", "Qwen/Qwen3-0.6B-Base"},
    {"qwen3_0_6b_instruct", "Qwen/Qwen3-0.6B"},
    {"qwen3_1_7b_base", "Qwen/Qwen3-1.7B-Base"},
    {"qwen3_1_7b_instruct", "Qwen/Qwen3-1.7B"},
    {"qwen3_4b_base", "Qwen/Qwen3-4B-Base"},
    {"qwen3_4b_instruct", "Qwen/Qwen3-4B"},
    {"qwen3_8b_base", "Qwen/Qwen3-8B-Base"},
    {"qwen3_8b_instruct", "Qwen/Qwen3-8B"},
    {"qwen3_14b_base", "Qwen/Qwen3-14B-Base"},
    {"qwen3_14b_instruct", "Qwen/Qwen3-14B"},
    {"qwen3_32b", "Qwen/Qwen3-32B"},
});

}  // namespace snug::dialects
