#include "eager/from_recipe.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "eager/estimate.h"
#include "model/catalogue.h"

namespace snug::eager {
namespace {

TEST(FromRecipe, MeansWhatTheTrainerMeans) {
  const ModelSpec spec = *find_model("TinyLlama/TinyLlama-1.1B-Chat-v1.0");
  Recipe recipe;
  recipe.bf16 = true;
  recipe.gradient_checkpointing = true;
  recipe.optim = snug::Optimizer::adamw_8bit;
  recipe.pages_states = true;
  recipe.quantize.in_4bit = true;
  const auto old = setup_of(recipe, spec, stack_profile("2.4.1", "4.48.1"));
  EXPECT_EQ(old.weights, spec.dtype);  // bf16 is autocast, not the weights' dtype
  EXPECT_EQ(old.autocast, DType::bf16);
  EXPECT_EQ(old.optimizer, Optimizer::paged_adamw_8bit);
  EXPECT_EQ(old.quantization, Quantization::four_bit);
  EXPECT_EQ(old.checkpointing, Checkpointing::reentrant);
  EXPECT_EQ(old.targets, (std::vector<std::string>{"q_proj", "v_proj"}));
  EXPECT_EQ(setup_of(recipe, spec, stack_profile()).checkpointing, Checkpointing::non_reentrant);
}

TEST(FromRecipe, WeightsThatAreStoredInFourBitsAreLoadedSo) {
  const auto stored = setup_of(Recipe{}, *find_model("unsloth/llama-3-8b-bnb-4bit"), stack_profile());
  EXPECT_EQ(stored.quantization, Quantization::four_bit);
  EXPECT_TRUE(stored.double_quant);
  EXPECT_EQ(setup_of(Recipe{}, *find_model("unsloth/llama-3-8b"), stack_profile()).quantization, Quantization::none);
}

TEST(FromRecipe, CappedScoresHaveNoFusedKernelToday) {
  const ModelSpec gemma = *find_model("google/gemma-2-2b");
  EXPECT_EQ(setup_of(Recipe{}, gemma, stack_profile()).attention, Attention::eager);
  EXPECT_EQ(setup_of(Recipe{}, gemma, stack_profile("2.4.1", "4.48.1")).attention, Attention::sdpa);
}

// peft raises ValueError: Target modules … not found in the base model.
TEST(FromRecipe, AdaptersThatFindNoModuleAreRefused) {
  const ModelSpec spec = *find_model("openai-community/gpt2");
  const StackProfile stack = stack_profile();
  Recipe recipe;
  EXPECT_GT(estimate(spec, setup_of(recipe, spec, stack), stack, {}).allocated_bytes, 0);  // peft's own: c_attn
  recipe.lora.target_modules = {"q_proj"};
  EXPECT_THROW(estimate(spec, setup_of(recipe, spec, stack), stack, {}), Error);
}

TEST(FromRecipe, EmbeddingAndHeadMayBeTrainedWholeWhereTheyAreTwo) {
  Recipe recipe;
  recipe.lora.modules_to_save = {"embed_tokens", "lm_head"};
  const auto setup = setup_of(recipe, *find_model("meta-llama/Llama-2-7b-hf"), stack_profile());
  EXPECT_TRUE(setup.saves_embedding && setup.saves_head);
  EXPECT_THROW(setup_of(recipe, *find_model("meta-llama/Llama-3.2-1B"), stack_profile()), Error);
  recipe.lora.modules_to_save = {"input_layernorm"};
  EXPECT_THROW(setup_of(recipe, *find_model("meta-llama/Llama-2-7b-hf"), stack_profile()), Error);
}

TEST(FromRecipe, QuantizedWeightsNeedLessThanWhole) {
  const ModelSpec spec = *find_model("TinyLlama/TinyLlama-1.1B-Chat-v1.0");
  const StackProfile stack = stack_profile();
  Recipe recipe;
  recipe.seq_len = 256;
  const int64_t whole = estimate(spec, setup_of(recipe, spec, stack), stack, {}).static_bytes;
  recipe.quantize.in_4bit = true;
  EXPECT_LT(estimate(spec, setup_of(recipe, spec, stack), stack, {}).static_bytes, whole);
}

}  // namespace
}  // namespace snug::eager
