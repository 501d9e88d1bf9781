#include "torch/stage.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace snug::torch_tests {

namespace {

struct Case {
  TorchStage stage;
  std::vector<Frame> frames;
};

const std::string kPackages = "/opt/lib/python3.11/site-packages/";

Frame in(const std::string& file, const std::string& function, const std::string& code = "") {
  return {file.ends_with(".py") && file.find('/') != std::string::npos ? kPackages + file : file, 10, function, code};
}

TorchStage stage(std::vector<Frame> frames) {
  const Traceback traceback{0, 0, std::move(frames)};
  return stage_of(&traceback, "").stage;
}

}  // namespace

TEST(Stage, IsToldByTheStepThatHoldsTheOthers) {
  const Frame train = in("train.py", "main", "trainer.train()");
  const Frame step = in("transformers/trainer.py", "training_step");
  const Frame call = in("torch/nn/modules/module.py", "_call_impl");
  const Frame forward = in("transformers/models/llama/modeling_llama.py", "forward");
  const Frame cross = in("torch/nn/functional.py", "cross_entropy");
  EXPECT_EQ(stage({train, step, call, forward}), TorchStage::forward);
  EXPECT_EQ(stage({train, step, call, forward, cross}), TorchStage::loss);
  EXPECT_EQ(stage({train, step, call, in("modeling_x.py", "forward", "logits = logits.float()")}), TorchStage::loss);
  EXPECT_EQ(stage({train, step, in("accelerate/accelerator.py", "backward"),
                   in("torch/autograd/graph.py", "_engine_run_backward")}),
            TorchStage::backward);
  EXPECT_EQ(stage({train, in("transformers/trainer.py", "evaluate"), in("transformers/trainer.py", "evaluation_loop"), call,
                   forward, cross}),
            TorchStage::evaluation);
  EXPECT_EQ(stage({train, in("transformers/trainer_pt_utils.py", "nested_concat")}), TorchStage::evaluation);
  EXPECT_EQ(stage({train, in("accelerate/optimizer.py", "step"), in("torch/optim/adamw.py", "_init_group")}),
            TorchStage::optimizer);
  EXPECT_EQ(stage({train, in("bitsandbytes/optim/optimizer.py", "init_state")}), TorchStage::optimizer);
  EXPECT_EQ(
      stage({train, in("transformers/trainer.py", "_save_checkpoint"), in("torch/distributed/fsdp/api.py", "state_dict")}),
      TorchStage::save);
  EXPECT_EQ(stage({in("load.py", "<module>"), in("transformers/modeling_utils.py", "from_pretrained"), call}),
            TorchStage::load);
  EXPECT_EQ(stage({in("a.py", "main"), in("torch/nn/modules/module.py", "to"), in("torch/nn/modules/module.py", "_apply")}),
            TorchStage::load);
  EXPECT_EQ(stage({in("a.py", "main"), in("transformers/generation/utils.py", "generate"), call, forward}),
            TorchStage::generate);
  EXPECT_EQ(stage({in("vllm/worker/worker.py", "determine_num_available_blocks"), call, forward}), TorchStage::capture);
  EXPECT_EQ(stage({in("a.py", "main"), in("torch/utils/data/dataloader.py", "__next__")}), TorchStage::data);
  EXPECT_EQ(stage({in("a.py", "main", "x = f(y)")}), TorchStage::unknown);
}

TEST(Stage, IsToldByTheUsersOwnLineWhereNoNameTells) {
  EXPECT_EQ(stage({in("a.py", "main", "loss.backward()")}), TorchStage::backward);
  EXPECT_EQ(stage({in("a.py", "main", "optimizer.step()")}), TorchStage::optimizer);
  EXPECT_EQ(stage({in("a.py", "main", "model = model.to(device)"), in("a.py", "f", "model.to(device)")}), TorchStage::load);
  EXPECT_EQ(stage({in("a.py", "main", "outputs = model(**batch)")}), TorchStage::forward);
}

TEST(Stage, WhatLightningDoesInsideTheOptimizersStepIsNotTheOptimizer) {
  const Frame step = in("torch/optim/adamw.py", "step", "loss = closure()");
  const Frame closure = in("lightning/pytorch/loops/optimization/automatic.py", "closure");
  EXPECT_EQ(stage({step, closure, in("torch/nn/modules/module.py", "_call_impl")}), TorchStage::forward);
  EXPECT_EQ(stage({step, closure, in("torch/_tensor.py", "backward")}), TorchStage::backward);
}

TEST(Stage, ARecomputedForwardIsPartOfTheBackward) {
  const Traceback traceback{0,
                            0,
                            {in("torch/_tensor.py", "backward"), in("torch/utils/checkpoint.py", "recompute_fn"),
                             in("torch/nn/modules/module.py", "_call_impl")}};
  const StageFound found = stage_of(&traceback, "");
  EXPECT_EQ(found.stage, TorchStage::backward);
  EXPECT_TRUE(found.recompute);
}

TEST(Stage, LinesInFrontOfAMessageServeWhereThereAreNoFrames) {
  EXPECT_EQ(stage_of(nullptr, "return Variable._execution_engine.run_backward(\n   ^^^^^\n").stage, TorchStage::backward);
  EXPECT_EQ(stage_of(nullptr, "Loading checkpoint shards:  40%|####      | 2/5\n").stage, TorchStage::load);
  EXPECT_EQ(stage_of(nullptr, "hello\n").stage, TorchStage::unknown);
}

TEST(Stage, IsToldByTheWordsOfANameThatIsNobodysInParticular) {
  const Frame call = in("torch/nn/modules/module.py", "_call_impl");
  EXPECT_EQ(stage({in("a.py", "val_one_epoch"), call}), TorchStage::evaluation);
  EXPECT_EQ(stage({in("a.py", "run_validation"), call, in("torch/nn/functional.py", "cross_entropy")}),
            TorchStage::evaluation);
  EXPECT_EQ(stage({in("a.py", "fsdp_save_ckpt")}), TorchStage::save);
  EXPECT_EQ(stage({in("a.py", "load_model_from_config"), call}), TorchStage::load);
  EXPECT_EQ(stage({in("a.py", "_conv_forward")}), TorchStage::forward);
  EXPECT_EQ(stage({in("a.py", "evaluate_once"), in("torch/_tensor.py", "backward")}), TorchStage::backward);
  EXPECT_EQ(stage({in("a.py", "test_train_with_eval"), call}), TorchStage::evaluation) << "pytest's own names tell too";
  EXPECT_EQ(stage({in("a.py", "load_data"), call}), TorchStage::forward);
  EXPECT_EQ(stage({in("a.py", "validator")}), TorchStage::unknown);
}

TEST(Stage, ABackwardInsideOfAStepIsNoStep) {
  const Frame step = in("pytorch_lightning/strategies/ddp.py", "optimizer_step");
  EXPECT_EQ(stage({step, in("torch/_tensor.py", "backward")}), TorchStage::backward);
  EXPECT_EQ(stage({in("a.py", "backward_and_step"), step}), TorchStage::optimizer);
}

TEST(Stage, OfMakingAnOptimizerIsTheOptimizers) {
  EXPECT_EQ(
      stage({in("deepspeed/__init__.py", "initialize"), in("deepspeed/runtime/engine.py", "_configure_zero_optimizer")}),
      TorchStage::optimizer);
  EXPECT_EQ(stage({in("torch/amp/grad_scaler.py", "_maybe_opt_step")}), TorchStage::optimizer);
}

TEST(Stage, ALongLineIsShownFromItsSignOn) {
  const StageFound found =
      stage_of(nullptr, std::string(200, 'x') + " after state_dict() call " + std::string(200, 'y') + "\n");
  EXPECT_EQ(found.stage, TorchStage::save);
  EXPECT_EQ(found.by.substr(0, 14), "`state_dict() ");
  EXPECT_TRUE(found.by.ends_with("…`"));
}

TEST(Stage, AModelThatIsMovedIsLoaded) {
  EXPECT_EQ(stage({in("train.py", "<module>", "model_func = model_func.cuda()")}), TorchStage::load);
  EXPECT_EQ(stage({in("train.py", "<module>", "self.net_g.to(device)")}), TorchStage::load);
  EXPECT_EQ(stage({in("train.py", "<module>", "images = images.cuda()")}), TorchStage::unknown);
}

TEST(Stage, ACallOfTheModelIsAForwardAndOfItsReaderALoad) {
  EXPECT_EQ(stage({in("recipe.py", "train", "logits = self._model(**batch)")}), TorchStage::forward);
  EXPECT_EQ(stage({in("workflow.py", "run_sft", "model = load_model(tokenizer, model_args)")}), TorchStage::load);
  EXPECT_EQ(stage({in("app.py", "infer", "pipe.to(device)")}), TorchStage::load);
  EXPECT_EQ(stage({in("utils.py", "read", "with safetensors.safe_open(ckpt, framework=\"pt\") as f:")}), TorchStage::load);
}

TEST(Stage, KeysThatAreAppendedAreOfAGeneration) {
  EXPECT_EQ(stage({in("m.py", "forward", "key_states = torch.cat([past_key_value[0], key_states], dim=2)")}),
            TorchStage::generate);
}

TEST(Stage, ABarThatIsFullTellsOfNoLoad) {
  EXPECT_EQ(stage_of(nullptr, "Loading checkpoint shards: 100%|####| 2/2\n").stage, TorchStage::unknown);
}

TEST(Stage, MergingAnAdapterIsPartOfSaving) {
  EXPECT_EQ(stage({in("unsloth/save.py", "_merge_lora", "maximum_element = torch.max(W)")}), TorchStage::save);
  EXPECT_EQ(stage({in("transformers/trainer_pt_utils.py", "torch_pad_and_concatenate")}), TorchStage::evaluation);
  EXPECT_EQ(stage({in("faster_whisper/transcribe.py", "generate_segments")}), TorchStage::generate);
}

TEST(Stage, WeightsThatAreMadeOrMovedAreLoaded) {
  EXPECT_EQ(stage({in("/x/torch/nn/modules/module.py", "convert", "return t.to(")}), TorchStage::load);
  EXPECT_EQ(stage({in("x/vllm/model_executor/models/llama.py", "__init__", "self.mlp = LlamaMLP(")}), TorchStage::load);
  EXPECT_EQ(stage({in("x/accelerate/accelerator.py", "_prepare_one", "return self.prepare_model(obj)")}), TorchStage::load);
}

TEST(Stage, AttentionIsAForwardWhateverItsName) {
  EXPECT_EQ(stage({in("x/attention_processor.py", "Attention.get_attention_scores", "scores = torch.baddbmm(")}),
            TorchStage::forward);
  EXPECT_EQ(stage({in("ray_trainer.py", "_validate", "out = wg.generate_sequences(batch)")}), TorchStage::evaluation);
}

TEST(Stage, ACompiledFunctionIsNoModel) {
  EXPECT_EQ(stage({in("/x/torch/_inductor/utils.py", "run", "out = model(new_inputs)")}), TorchStage::unknown);
}

}  // namespace snug::torch_tests
