// What memory is for, told by where the stack that asked for it lies.

#include "explain/stack_part.h"

#include <gtest/gtest.h>

namespace snug::testing {

namespace {

// An environment is often called torch; what lies in it is not PyTorch for that.
TEST(StackPart, scores_of_eager_attention_are_seen_in_any_environment) {
  for (const std::string prefix : {"/opt/torch/.venv/", "/home/me/miniconda3/envs/torch/", "/usr/"}) {
    const std::string packages = prefix + "lib/python3.12/site-packages/";
    const std::vector<Frame> frames = {
        {packages + "transformers/models/llama/modeling_llama.py", 268, "forward", {}},
        {packages + "transformers/models/llama/modeling_llama.py", 208, "eager_attention_forward", {}},
        {packages + "torch/nn/functional.py", 2161, "softmax", {}}};
    const std::vector<std::string> operators = {"_softmax"};
    EXPECT_EQ(part_of({.frames = frames, .operators = operators, .node = "", .stage = TorchStage::forward}), Part::scores)
        << prefix;
  }
}

}  // namespace

}  // namespace snug::testing
