#include "eager/held.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "eager/from_recipe.h"
#include "model/catalogue.h"

namespace snug::eager {
namespace {

// What stays allocated between steps, gradients gone, in real runs on a null device (tests/oracle/eager_goldens.py --row):
// transformers 5.23.0, peft 0.21.2, bitsandbytes 0.50.2.
struct Measured {
  const char* model;
  eager::Setup setup;
  int64_t counted;
};

std::vector<Measured> runs() {
  const std::vector<std::string> attention = {"q_proj", "k_proj", "v_proj", "o_proj"};
  return {{"LiquidAI/LFM2-1.2B", {.targets = attention}, 2'351'304'192},
          {"LiquidAI/LFM2-1.2B", {.method = Method::full}, 7'022'059'008},
          {"LiquidAI/LFM2-350M", {.method = Method::full, .optimizer = Optimizer::adamw_8bit}, 1'839'934'976},
          {"LiquidAI/LFM2-700M",
           {.quantization = Quantization::four_bit, .preparation = Preparation::peft, .targets = {"all-linear"}},
           845'277'696},
          {"ibm-granite/granite-4.0-micro", {.targets = attention}, 6'931'502'592}};
}

TEST(Held, IsWhatStaysAllocatedBetweenSteps) {
  const StackProfile stack = stack_profile();
  for (const Measured& run : runs()) {
    const Held held = held_bytes(*find_model(run.model), run.setup, stack);
    const auto bytes = static_cast<double>(held.weights + held.adapters + held.optimizer);
    EXPECT_LE(bytes, static_cast<double>(run.counted)) << run.model;
    EXPECT_GE(bytes, 0.994 * static_cast<double>(run.counted)) << run.model;  // some blocks have more than was asked for
    EXPECT_GT(held.gradients, 0);
  }
}

TEST(Held, AdaptersThatFindNoModuleAreRefused) {
  eager::Setup setup;
  setup.targets = {"c_attn"};
  EXPECT_THROW(held_bytes(*find_model("LiquidAI/LFM2-1.2B"), setup, stack_profile()), Error);
}

// Where the recipe names none, PEFT's own mapping holds (peft 0.21, constants.py).
TEST(Held, AdaptersOfRecipesWithoutTargetsAreWherePeftPutsThem) {
  const std::pair<const char*, std::vector<std::string>> expected[] = {
      {"mosaicml/mpt-7b", {"Wqkv"}},
      {"bigcode/starcoder", {"c_attn"}},
      {"openai-community/gpt2", {"c_attn"}},
      {"tiiuae/falcon-7b", {"query_key_value"}},
      {"zai-org/chatglm3-6b", {"query_key_value"}},
      {"bigscience/bloom-3b", {"query_key_value"}},
      {"EleutherAI/pythia-1b", {"query_key_value"}},
      {"microsoft/phi-2", {"q_proj", "v_proj", "fc1", "fc2"}},
      {"meta-llama/Llama-2-7b-hf", {"q_proj", "v_proj"}}};
  for (const auto& [name, targets] : expected) {
    const ModelSpec spec = find_model(name).value();
    Recipe recipe;
    recipe.method = snug::Method::lora;
    const eager::Setup setup = setup_of(recipe, spec, stack_profile(), Program::transformers);
    EXPECT_EQ(setup.targets, targets) << name;
    EXPECT_GT(held_bytes(spec, setup, stack_profile()).adapters, 0) << name;
  }
}

}  // namespace
}  // namespace snug::eager
