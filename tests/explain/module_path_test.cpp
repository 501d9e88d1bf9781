// Stacks as Python has them: outermost first, module.py's two frames for each call of a module. Files, functions and their
// order are those that PyTorch 2.15, transformers 5.23, peft 0.21 and accelerate 1.15 show.

#include "explain/module_path.h"

#include <gtest/gtest.h>

#include "explain/module_tree.h"

namespace snug {
namespace {

const std::string kPackages = "/env/lib/python3.11/site-packages/";
const std::string kLlama = kPackages + "transformers/models/llama/modeling_llama.py";

Frame at(const std::string& file, int64_t line, const std::string& function = "forward") {
  return {file, line, function, ""};
}

using Frames = std::vector<Frame>;

// `call`: the line that calls a module; then module.py's frames.
Frames calling(const Frame& call) {
  const std::string module = kPackages + "torch/nn/modules/module.py";
  return {call, at(module, 1790, "_wrapped_call_impl"), at(module, 1801, "_call_impl")};
}

Frames operator+(Frames left, const Frames& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

std::string read(const Frames& frames, const std::vector<std::string>& operators = {}) {
  return text_of(module_path(frames, operators));
}

const Frames kOutside = calling(at("/home/me/train.py", 12, "main"));

TEST(ModulePath, a_users_modules_are_told_apart_by_the_lines_that_call_them) {
  const Frames layer = kOutside + calling(at("/home/me/model.py", 253)) + calling(at("/home/me/model.py", 382));
  EXPECT_EQ(read(layer + Frames{at("/home/me/model.py", 520), at("/home/me/ops.py", 6, "softmax")}), "model.py:253 › :382");
  EXPECT_EQ(read(layer + calling(at("/home/me/model.py", 499)) + Frames{at(kPackages + "torch/nn/modules/linear.py", 134)}),
            "model.py:253 › :382 › :499 › Linear");
  EXPECT_EQ(read(kOutside + Frames{at("/home/me/model.py", 250)}), "model.py");
}

TEST(ModulePath, a_module_called_from_a_helper_names_the_helpers_line) {
  EXPECT_EQ(read(kOutside + Frames{at("/home/me/model.py", 20)} + calling(at("/home/me/blocks.py", 7, "run")) +
                 Frames{at(kPackages + "torch/nn/modules/linear.py", 134)}),
            "model.py (blocks.py:7) › Linear");
}

TEST(ModulePath, adapters_and_what_they_wrap) {
  const std::string layer = kPackages + "peft/tuners/lora/layer.py", bnb = kPackages + "peft/tuners/lora/bnb.py";
  const Frames projection = kOutside + calling(at(kLlama, 842)) + calling(at(kLlama, 164));
  EXPECT_EQ(read(projection + calling(at(layer, 1102)) + Frames{at(kPackages + "torch/nn/modules/linear.py", 134)}),
            "modeling_llama.py:842 › :164 › LoRA:1102 › Linear");
  const Frames base = calling(at(bnb, 520)) + Frames{at(kPackages + "bitsandbytes/nn/modules.py", 637)};
  const std::string matmul = kPackages + "bitsandbytes/autograd/_functions.py";
  EXPECT_EQ(read(projection + base + Frames{at(matmul, 396, "matmul_4bit")}),
            "modeling_llama.py:842 › :164 › LoRA:520 › Linear4bit");
  EXPECT_EQ(read(projection + base + Frames{at(matmul, 376, "matmul")}),
            "modeling_llama.py:842 › :164 › LoRA:520 › Linear8bitLt");
  EXPECT_EQ(read(projection + base), "modeling_llama.py:842 › :164 › LoRA:520 › bitsandbytes");
}

TEST(ModulePath, a_kind_that_shares_its_file_is_told_by_its_operator) {
  const auto kind = [](const std::string& file, const std::string& function,
                       const std::vector<std::string>& operators = {}) {
    Frames frames = kOutside + calling(at("/home/me/model.py", 5)) + Frames{at(kPackages + "torch/nn/modules/" + file, 229)};
    if (!function.empty()) frames.push_back(at(kPackages + "torch/nn/functional.py", 2900, function));
    return read(frames, operators);
  };
  EXPECT_EQ(kind("normalization.py", "layer_norm"), "model.py:5 › LayerNorm");
  EXPECT_EQ(kind("normalization.py", "rms_norm"), "model.py:5 › RMSNorm");
  EXPECT_EQ(kind("activation.py", "silu"), "model.py:5 › SiLU");
  EXPECT_EQ(kind("activation.py", "", {"empty", "gelu"}), "model.py:5 › GELU");  // C++ names alone tell
  EXPECT_EQ(kind("activation.py", ""), "model.py:5 › Activation");
  EXPECT_EQ(kind("loss.py", "cross_entropy"), "model.py:5 › CrossEntropyLoss");
  EXPECT_EQ(kind("sparse.py", "embedding"), "model.py:5 › Embedding");
  EXPECT_EQ(kind("linear.py", "", {"addmm", "relu"}), "model.py:5 › Linear");
  EXPECT_EQ(kind("distance.py", ""), "model.py:5 › distance");
}

TEST(ModulePath, wrappers_are_no_modules_and_hide_no_caller) {
  // accelerate's conversion of outputs, DDP, peft's model, and transformers' decorators between the call and the forward.
  const Frames wrapped = kOutside + Frames{at(kPackages + "accelerate/utils/operations.py", 943)} +
                         calling(at(kPackages + "torch/nn/parallel/distributed.py", 1906)) +
                         calling(at(kPackages + "peft/peft_model.py", 1923)) +
                         Frames{at(kPackages + "peft/tuners/tuners_utils.py", 361),
                                at(kPackages + "transformers/utils/generic.py", 938, "wrapper")};
  EXPECT_EQ(read(wrapped + calling(at(kLlama, 456)) + Frames{at(kLlama, 389)}), "modeling_llama.py:456");
  const ModulePath path = module_path(wrapped + Frames{at(kLlama, 456)}, {});
  ASSERT_EQ(path.size(), 1U);
  EXPECT_EQ(path[0].caller_file, "/home/me/train.py");
  EXPECT_EQ(path[0].caller_line, 12);
  // A decorator of the rotary embedding runs between its call and its forward.
  EXPECT_EQ(read(kOutside + calling(at(kLlama, 389)) +
                 Frames{at(kPackages + "transformers/modeling_rope_utils.py", 129, "wrapper"), at(kLlama, 123)}),
            "modeling_llama.py:389");
}

TEST(ModulePath, a_forward_that_no_module_call_leads_to_is_none) {
  EXPECT_EQ(read({at("/home/me/train.py", 3, "main"), at("/home/me/model.py", 8)}), "");
  // An autograd.Function's, and the one of a base class.
  EXPECT_EQ(read(kOutside + Frames{at(kPackages + "torch/autograd/function.py", 590, "apply"), at("/home/me/scan.py", 4)}),
            "");
  EXPECT_EQ(read(kOutside + Frames{at("/home/me/model.py", 8), at("/home/me/base.py", 4)}), "model.py");
  EXPECT_EQ(read({}), "");
}

TEST(ModulePath, names_that_tell_the_class_are_used) {
  const std::string unsloth = kPackages + "unsloth/models/llama.py";
  EXPECT_EQ(read(calling(at("/home/me/train.py", 3, "main")) + calling(at(unsloth, 900, "LlamaModel_fast_forward")) +
                 Frames{at(unsloth, 512, "LlamaDecoderLayer_fast_forward")}),
            "LlamaModel:900 › LlamaDecoderLayer");
  EXPECT_EQ(read(kOutside + Frames{at("/home/me/model.py", 5, "Net.forward")}), "Net");
}

TEST(ModulePath, backslashes_are_slashes) {
  EXPECT_EQ(read({at("C:\\me\\train.py", 3, "main"),
                  at("C:\\env\\Lib\\site-packages\\torch\\nn\\modules\\module.py", 9, "_call_impl"),
                  at("C:\\env\\Lib\\site-packages\\torch\\nn\\modules\\linear.py", 134)}),
            "Linear");
}

TEST(ModulePath, depth_and_names_are_bounded) {
  Frames frames;
  for (int i = 0; i < 500; ++i) frames = frames + calling(at("/home/" + std::string(1000, 'x') + "ä.py", i + 1));
  const ModulePath path = module_path(frames, {});
  EXPECT_EQ(path.size(), 64U);
  EXPECT_LE(path[1].name.size(), 200U);
  EXPECT_TRUE(path[1].name.ends_with("ä.py"));
}

TEST(ModuleTree, sums_hold_what_is_inside_and_the_largest_sibling_is_first) {
  const auto call = [](const std::string& name, int64_t line) { return ModuleCall{name, true, "m.py", "m.py", line}; };
  ModuleTree tree;
  const ModuleId model = tree.add({call("Model", 1)});
  const ModuleId small = tree.add({call("Model", 1), call("Linear", 5)});
  const ModuleId large = tree.add({call("Model", 1), call("Linear", 9)});
  const ModuleId empty = tree.add({call("Model", 1), call("Linear", 7)});
  EXPECT_EQ(tree.add({call("Model", 1), call("Linear", 9)}), large);
  EXPECT_EQ(text_of(tree.path(large)), "Model:9 › Linear");
  std::vector<ModuleSum> own(tree.size());
  const auto give = [&](ModuleId id, int64_t bytes) { own[id] = {0, 0, bytes, 1, bytes}; };
  give(model, 10), give(small, 20), give(large, 30);
  const std::vector<ModuleSum> sums = sums_of(tree, own);
  ASSERT_EQ(sums.size(), 3U);  // not the one that holds nothing
  EXPECT_EQ(sums[0].module, model);
  EXPECT_EQ(sums[0].bytes, 60);
  EXPECT_EQ(sums[0].own_bytes, 10);
  EXPECT_EQ(sums[0].blocks, 3);
  EXPECT_EQ(sums[1].module, large);
  EXPECT_EQ(sums[1].depth, 1);
  EXPECT_EQ(sums[2].module, small);
  EXPECT_NE(empty, small);
}

}  // namespace
}  // namespace snug
