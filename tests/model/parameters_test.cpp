#include "model/parameters.h"

#include <gtest/gtest.h>

#include "model/catalogue.h"

namespace snug {
namespace {

TEST(Parameters, TotalsAreThePublishedOnes) {
  const std::pair<const char*, int64_t> published[] = {
      {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", 1'100'048'384},
      {"HuggingFaceTB/SmolLM2-135M", 134'515'008},
      {"HuggingFaceTB/SmolLM2-360M", 361'821'120},
      {"HuggingFaceTB/SmolLM2-1.7B", 1'711'376'384},
      {"meta-llama/Llama-2-7b-hf", 6'738'415'616},
      {"meta-llama/Llama-2-13b-hf", 13'015'864'320},
      {"meta-llama/Llama-2-70b-hf", 68'976'648'192},
      {"meta-llama/Meta-Llama-3-8B", 8'030'261'248},
      {"meta-llama/Llama-3.1-8B", 8'030'261'248},
      {"meta-llama/Llama-3.1-70B", 70'553'706'496},
      {"meta-llama/Llama-3.1-405B", 405'853'388'800},
      {"meta-llama/Llama-3.2-1B", 1'235'814'400},
      {"meta-llama/Llama-3.2-3B", 3'212'749'824},
      {"mistralai/Mistral-7B-v0.1", 7'241'732'096},
      {"mistralai/Mistral-7B-v0.3", 7'248'023'552},
  };
  for (const auto& [name, total] : published) EXPECT_EQ(total_parameters(find_model(name).value()), total) << name;
}

TEST(Parameters, TheTableFollowsTheForwardPass) {
  const ModelSpec spec = find_model("Llama-3.1-8B").value();
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters_of(spec)) names.push_back(parameter.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"model.embed_tokens.weight", "model.layers.{}.input_layernorm.weight",
                                      "model.layers.{}.self_attn.q_proj.weight", "model.layers.{}.self_attn.k_proj.weight",
                                      "model.layers.{}.self_attn.v_proj.weight", "model.layers.{}.self_attn.o_proj.weight",
                                      "model.layers.{}.post_attention_layernorm.weight",
                                      "model.layers.{}.mlp.gate_proj.weight", "model.layers.{}.mlp.up_proj.weight",
                                      "model.layers.{}.mlp.down_proj.weight", "model.norm.weight", "lm_head.weight"}));
  const Parameter key = parameters_of(spec)[3];
  EXPECT_EQ(key.shape, (std::vector<int64_t>{1024, 4096}));
  EXPECT_EQ(key.module, "k_proj");
  EXPECT_EQ(key.instance(31), "model.layers.31.self_attn.k_proj.weight");
  EXPECT_EQ(key.elements(), 1024 * 4096);
}

TEST(Parameters, ATiedHeadIsNotListed) {
  const auto table = parameters_of(find_model("Llama-3.2-1B").value());
  EXPECT_EQ(table.back().name, "model.norm.weight");
}

}  // namespace
}  // namespace snug
