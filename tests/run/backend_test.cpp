// Two backends in one process: the built-in one, and plain fp64 loops that are opened beside it. A tiny model trained on
// either loses the same.

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/config.h"
#include "plan/plan.h"
#include "run/executor.h"
#include "run/synthetic_run.h"

namespace snug {
namespace {

const kernels::Backend& fp64() {
  static const kernels::Backend& backend = kernels::open_backend(SNUG_FP64_BACKEND);
  return backend;
}

constexpr const char* kTiny = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 32,
  "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 128,
  "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true})";

std::vector<double> losses(const ModelSpec& model, const Recipe& recipe, const kernels::Backend& backend) {
  Target target = this_cpu(2);
  target.products = Arithmetic::fp32;
  const Plan plan = make_plan(model, recipe, target);
  Executor executor(plan.program, plan.layout, {}, backend);
  fill_at_random(executor, model);
  RandomBatches batches(executor, model);
  std::vector<double> found;
  for (int64_t step = 1; step <= 10; ++step) {
    run_random_step(executor, batches, step);
    found.push_back(executor.scalar(Scalar::loss_sum));
  }
  return found;
}

TEST(Backends, a_tiny_model_loses_the_same_on_a_second_backend) {
  const ModelSpec model = parse_config(kTiny, "config.json");
  Recipe full;
  full.batch = 2, full.seq_len = 24, full.accumulation = 2;
  Recipe lora = full;
  lora.method = Method::lora;
  lora.lora.dropout = 0.1;
  lora.gradient_checkpointing = true;
  for (const Recipe& recipe : {full, lora}) {
    const std::vector<double> ours = losses(model, recipe, kernels::built_in_backend()),
                              truth = losses(model, recipe, fp64());
    EXPECT_GT(ours.front(), 4.0);  // near log 128
    for (size_t step = 0; step < ours.size(); ++step) EXPECT_NEAR(ours[step], truth[step], 1e-5) << "step " << step + 1;
  }
}

// Before memory is committed.
TEST(Backends, what_a_backend_cannot_do_is_refused_by_name) {
  const ModelSpec model = parse_config(kTiny, "config.json");
  Recipe recipe;
  recipe.batch = 1, recipe.seq_len = 8;
  recipe.optim = Optimizer::adamw_bf16;
  try {
    losses(model, recipe, fp64());
    FAIL() << "16-bit states are not the fp64 backend's";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fewer than 32 bits cannot run on fp64 loops"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace snug
