#include "explain/failed_program.h"

#include "explain/support_explain.h"

namespace snug::explain_tests {

namespace {

constexpr std::string_view kFilledCard =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 23.68 GiB of "
    "which 0.38 GiB is free. Including non-PyTorch memory, this process has 23.29 GiB memory in use. Of the allocated "
    "memory "
    "22.46 GiB is allocated by PyTorch, and 244.12 MiB is reserved by PyTorch but unallocated.\n";

std::string full_in(std::string_view file, std::string_view function, std::string_view code = "x") {
  return "Traceback (most recent call last):\n  File \"" + std::string(file) + "\", line 4, in " + std::string(function) +
         "\n    " + std::string(code) + "\n" + std::string(kFilledCard);
}

std::string of_capacity(std::string_view capacity, std::string_view allocated) {
  return "RuntimeError: CUDA out of memory. Tried to allocate 300.00 MiB (GPU 0; " + std::string(capacity) +
         " GiB total capacity; " + std::string(allocated) + " GiB already allocated; 12.00 MiB free; " +
         std::string(allocated) + " GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try\n";
}

}  // namespace

TEST(FailedProgram, AnotherKindThanALanguageModelIsNotToldOfFourBits) {
  for (const std::string_view file :
       {"/x/site-packages/torch_geometric/nn/conv/gat_conv.py", "/x/site-packages/dgl/nn/pytorch/conv/gatconv.py",
        "/x/site-packages/ultralytics/nn/tasks.py", "/x/site-packages/detectron2/modeling/backbone/fpn.py",
        "/x/site-packages/diffusers/models/unets/unet_2d_condition.py", "C:\\ComfyUI\\comfy\\samplers.py",
        "/x/site-packages/fairseq/models/transformer.py"}) {
    const Explanation e = answer_to(full_in(file, "forward"));
    EXPECT_EQ(e.diagnosis.cause, Cause::shortage) << file;
    EXPECT_FALSE(e.advice.empty()) << file;
    for (const char* words : {"load_in_4bit", "QLoRA", "liger", "max_length", "per_device", "LoRA"})
      EXPECT_FALSE(says(e, words)) << file << ": " << words;
  }
}

TEST(FailedProgram, EachKindHasItsOwnFirstChange) {
  EXPECT_NE(first_of(answer_to(full_in("/x/site-packages/torch_geometric/nn/conv/gcn_conv.py", "message"))).find("sampled"),
            std::string::npos);
  EXPECT_NE(first_of(answer_to(full_in("/x/site-packages/mmdet/models/fpn.py", "forward"))).find("half the batch"),
            std::string::npos);
  EXPECT_NE(first_of(answer_to(full_in("/x/site-packages/diffusers/models/vae.py", "decode"))).find("offload"),
            std::string::npos);
  EXPECT_NE(
      first_of(answer_to("| WARNING: ran out of memory with exception: " + of_capacity("10.92", "10.10"))).find("--max-"),
      std::string::npos);
}

TEST(FailedProgram, ADiffusionModelThatIsTrainedHasBatches) {
  const Explanation e = answer_to(full_in("/x/site-packages/diffusers/models/unet.py", "forward") +
                                  full_in("/x/site-packages/torch/autograd/graph.py", "_engine_run_backward"));
  EXPECT_NE(first_of(e).find("offload"), std::string::npos);  // the first message is of a forward alone
  const Explanation trained = answer_to(
      "Traceback (most recent call last):\n  File \"/me/train_network.py\", line 9, in train\n    pred = unet(x)\n"
      "  File \"/x/site-packages/diffusers/models/unet.py\", line 4, in forward\n    x\n" +
      std::string(kFilledCard));
  EXPECT_NE(first_of(trained).find("half the batch"), std::string::npos);
}

TEST(FailedProgram, ALanguageTrainersVisionTowerIsNoVisionProgram) {
  const Explanation e = answer_to(
      "Traceback (most recent call last):\n  File \"/x/site-packages/transformers/trainer.py\", line 9, in training_step\n  "
      "  x\n"
      "  File \"/x/site-packages/timm/models/vit.py\", line 4, in forward\n    x\n" +
      std::string(kFilledCard));
  EXPECT_TRUE(says(e, "load_in_4bit"));
}

TEST(FailedProgram, WhereNothingIsKeptForABackwardNoneIsMadeSmaller) {
  const Explanation e = answer_to(
      "Traceback (most recent call last):\n  File \"/x/site-packages/torch/utils/_contextlib.py\", line 9, in "
      "decorate_context\n    return func(*args, **kwargs)\n  File \"/me/embed.py\", line 4, in encode\n    h = model(x)\n"
      "  File \"/x/site-packages/torch/nn/modules/module.py\", line 4, in _call_impl\n    x\n" +
      std::string(kFilledCard));
  EXPECT_EQ(e.stage.stage, TorchStage::forward);
  EXPECT_FALSE(says(e, "checkpoint"));
  EXPECT_NE(first_of(e).find("fewer rows at a time"), std::string::npos);
}

TEST(FailedProgram, CheckpointingThatIsOnIsNotAdvised) {
  const Explanation e = answer_to(
      "Traceback (most recent call last):\n  File \"/x/site-packages/transformers/trainer.py\", line 9, in training_step\n  "
      "  x\n"
      "  File \"/x/site-packages/torch/autograd/graph.py\", line 9, in _engine_run_backward\n    x\n"
      "  File \"/x/site-packages/torch/utils/checkpoint.py\", line 4, in backward\n    torch.autograd.backward(o, a)\n"
      "  File \"/x/site-packages/torch/autograd/graph.py\", line 9, in _engine_run_backward\n    x\n" +
      std::string(kFilledCard));
  EXPECT_EQ(e.stage.stage, TorchStage::backward);
  EXPECT_FALSE(says(e, "gradient_checkpointing"));
}

TEST(FailedProgram, CardsBeforeAmpereAreNotToldOfBfloat16) {
  for (const std::string_view capacity : {"14.76", "14.58", "15.78", "31.75", "15.90", "11.17", "10.92"}) {
    const Explanation e =
        answer_to(of_capacity(capacity, capacity == "31.75" ? "30.90" : std::string(capacity).substr(0, 2) + ".00"));
    EXPECT_FALSE(says(e, "bf16") || says(e, "bfloat16")) << capacity;
    EXPECT_TRUE(says(e, "float16")) << capacity;
    EXPECT_FALSE(says(e, "flash_attention_2")) << capacity;
  }
  EXPECT_TRUE(says(answer_to(of_capacity("23.68", "22.90")), "bfloat16"));
  EXPECT_FALSE(says(answer_to("device 0: Tesla V100-SXM2-32GB\n" + of_capacity("23.68", "22.90")), "bfloat16"));
}

TEST(FailedProgram, RocmHasItsOwnNames) {
  const Explanation e = answer_to(
      "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 15.98 GiB of "
      "which "
      "1.20 GiB is free. Of the allocated memory 1.10 GiB is allocated by PyTorch, and 100.50 MiB is reserved by PyTorch "
      "but "
      "unallocated.\n");
  EXPECT_EQ(e.diagnosis.cause, Cause::other_process);
  EXPECT_TRUE(says(e, "rocm-smi"));
  EXPECT_TRUE(says(e, "HIP_VISIBLE_DEVICES"));
  const Explanation driver =
      answer_to("RuntimeError: HIP error: out of memory\nHIP kernel errors might be reported later\n");
  for (const Explanation& one : {e, driver})
    for (const Advice& advice : one.advice) {
      EXPECT_EQ(advice.change.find("nvidia"), std::string::npos) << advice.change;
      EXPECT_EQ(advice.change.find("CUDA_"), std::string::npos) << advice.change;
    }
}

TEST(FailedProgram, AppleHasNoKernelsOfBitsandbytes) {
  const Explanation e = answer_to(
      "RuntimeError: MPS backend out of memory (MPS allocated: 17.60 GB, other allocations: 3.95 MB, max allowed: 18.13 "
      "GB). "
      "Tried to allocate 1024.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit\n");
  EXPECT_EQ(e.diagnosis.cause, Cause::memory_limit);
  EXPECT_EQ(first_of(e), "a smaller batch, input or model");
  EXPECT_EQ(place_of(e, "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0"), 1);
  EXPECT_FALSE(says(e, "load_in_4bit") || says(e, "bnb") || says(e, "liger"));
}

TEST(FailedProgram, WherePathsAreLinuxsNoPageFileIsAdvised) {
  const std::string refused =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 60.00 MiB. GPU 0 has a total capacity of 11.00 GiB of "
      "which "
      "4.48 GiB is free. Of the allocated memory 5.19 GiB is allocated by PyTorch, and 23.84 MiB is reserved by PyTorch but "
      "unallocated.\n";
  EXPECT_NE(first_of(answer_to(refused)).find("page file"), std::string::npos);
  EXPECT_FALSE(says(answer_to("Traceback (most recent call last):\n  File \"/me/a.py\", line 4, in f\n    x\n" + refused),
                    "page file"));
}

TEST(FailedProgram, ALoopOfOnesOwnHalvesItsBatchFirst) {
  const Explanation e =
      answer_to("Traceback (most recent call last):\n  File \"/me/train.py\", line 4, in main\n    loss.backward()\n" +
                std::string(kFilledCard));
  EXPECT_EQ(e.stage.stage, TorchStage::backward);
  EXPECT_LT(place_of(e, "half the batch"), place_of(e, "checkpoint"));
}

TEST(FailedProgram, ANetworkForPicturesThatIsLoadedHasNoBatchYet) {
  const Explanation e = answer_to(full_in("/x/site-packages/torchvision/models/resnet.py", "load_state_dict"));
  EXPECT_EQ(e.stage.stage, TorchStage::load);
  EXPECT_FALSE(says(e, "batch") || says(e, "QLoRA"));
}

TEST(FailedProgram, WeightsThatAreMovedLieInHostMemoryAlready) {
  const Explanation moved = answer_to(full_in("/x/site-packages/torch/nn/modules/module.py", "_apply", "module._apply(fn)"));
  EXPECT_EQ(moved.stage.stage, TorchStage::load);
  EXPECT_FALSE(says(moved, "map_location"));
  EXPECT_TRUE(says(answer_to(full_in("/x/site-packages/torch/serialization.py", "load")), "map_location"));
}

TEST(FailedProgram, AStateDictThatFsdpGathersIsGatheredInHostMemory) {
  const Explanation e = answer_to(full_in("/x/site-packages/torch/distributed/fsdp/_state_dict_utils.py", "state_dict"));
  EXPECT_EQ(e.stage.stage, TorchStage::save);
  EXPECT_TRUE(first_of(e).starts_with("FSDP: offload_to_cpu"));
  EXPECT_FALSE(first_of(answer_to(full_in("/me/save.py", "save_checkpoint"))).starts_with("FSDP"));
}

TEST(FailedProgram, AnIntelCardMayRefuseAnyLargeBlock) {
  EXPECT_TRUE(
      first_of(answer_to("XPU out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 15.11 GiB.\n"))
          .starts_with("UR_L0_ENABLE_RELAXED"));
}

TEST(FailedProgram, ApplesLimitIsNamedWithoutTheRequestToo) {
  const Explanation e = answer_to(
      "MPS backend out of memory (MPS allocated: 39.50 GiB, other allocations: 141.24 GiB, max allowed: 182.78 GiB).\n");
  EXPECT_EQ(e.diagnosis.cause, Cause::memory_limit);
  EXPECT_TRUE(says(e, "PYTORCH_MPS_HIGH_WATERMARK_RATIO"));
}

TEST(FailedProgram, WhatServesOrPredictsKeepsNothingForABackward) {
  for (const std::string_view file :
       {"/me/run_inference.py", "/me/app.py", "/me/demo.py", "/me/test.py", "/x/site-packages/gradio/blocks.py",
        "/x/site-packages/transformers/pipelines/base.py"}) {
    const Explanation e = answer_to(full_in(file, "forward_once", "h = layer(h)"));
    EXPECT_FALSE(says(e, "gradient_checkpointing")) << file;
    EXPECT_FALSE(says(e, "adamw")) << file;
    EXPECT_TRUE(says(e, "inference_mode")) << file;
  }
  for (const std::string_view file : {"/me/train_app.py", "/me/test_trainer.py"})
    EXPECT_FALSE(says(answer_to(full_in(file, "train", "h = layer(h)")), "inference_mode")) << file;
}

TEST(FailedProgram, AServersWeightsAreQuantizedOrShared) {
  const Explanation e = answer_to(full_in("/x/site-packages/vllm/model_executor/model_loader/base_loader.py", "load_model"));
  EXPECT_NE(first_of(e).find("AWQ"), std::string::npos);
  EXPECT_TRUE(says(e, "tensor_parallel_size"));
  EXPECT_FALSE(says(e, "LoRA"));
}

TEST(FailedProgram, ACheckpointThatIsReadToTheDeviceIsReadToTheHost) {
  const Explanation e = answer_to(full_in("/x/site-packages/torch/serialization.py", "_cuda_deserialize"));
  EXPECT_NE(first_of(e).find("map_location"), std::string::npos);
  const Explanation resumed = answer_to(full_in("/x/site-packages/torch/optim/optimizer.py", "load_state_dict"));
  EXPECT_NE(first_of(resumed).find("map_location"), std::string::npos);
}

TEST(FailedProgram, DeepSpeedsOptimizerIsMovedToTheHost) {
  const Explanation e = answer_to(full_in("/x/site-packages/deepspeed/runtime/zero/stage_1_and_2.py", "step"));
  EXPECT_NE(first_of(e).find("offload_optimizer"), std::string::npos);
  EXPECT_FALSE(says(e, "foreach"));
}

TEST(FailedProgram, AServerIsKnownByItsLogAndItsCommand) {
  for (const char* line : {"vllm serve Qwen/Qwen3 --tensor-parallel-size 4\n", "python3 -m sglang.launch_server --tp 2\n",
                           "INFO [worker_base.py:620] Error executing method\n"}) {
    const Explanation e = answer_to(line + std::string(kFilledCard));
    EXPECT_NE(first_of(e).find("lower gpu_memory_utilization"), std::string::npos) << line;
  }
  const Explanation trained = answer_to("vllm serve Qwen/Qwen3\n" + full_in("/x/transformers/trainer.py", "training_step"));
  EXPECT_EQ(first_of(trained).find("gpu_memory_utilization"), std::string::npos);
}

TEST(FailedProgram, WeightsThatAreMovedOneByOneHaveNoSecondCopy) {
  const Explanation e =
      answer_to(full_in("/x/accelerate/utils/modeling.py", "set_module_tensor_to_device", "value.to(device)"));
  EXPECT_FALSE(says(e, "low_cpu_mem_usage"));
}

TEST(FailedProgram, WeightsThatEachRankMovesAreSharedOut) {
  const auto moved = [](const std::string& rank, std::string_view file) {
    return answer_to(rank + "Traceback (most recent call last):\n" + rank +
                     "  File \"/x/torch/nn/modules/module.py\", line 9, in _apply\n" + rank +
                     "    param_applied = fn(param)\n" + rank + "  File \"" + std::string(file) + "\", line 4, in to\n" +
                     rank + "    super().to(device)\n" + rank + std::string(kFilledCard));
  };
  EXPECT_NE(first_of(moved("[rank1]: ", "/x/model.py")).find("several GPUs"), std::string::npos);
  EXPECT_EQ(first_of(moved("", "/x/model.py")).find("several GPUs"), std::string::npos);
  const Explanation quantized = moved("", "/x/bitsandbytes/nn/modules.py");
  EXPECT_NE(first_of(quantized).find("several GPUs"), std::string::npos);
  EXPECT_FALSE(says(quantized, "4-bit"));
}

TEST(FailedProgram, AServerWhoseTensorsFillTheCardHoldsTooManyWeights) {
  const std::string full =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 462.00 MiB. GPU 0 has a total capacity of 79.44 GiB of "
      "which 145.19 MiB is free. Including non-PyTorch memory, this process has 79.29 GiB memory in use. Of the allocated "
      "memory 78.78 GiB is allocated by PyTorch, and 13.27 MiB is reserved by PyTorch but unallocated.\n";
  EXPECT_NE(first_of(answer_to("(EngineCore_DP0 pid=8769) " + full)).find("AWQ"), std::string::npos);
  std::string captured = full;
  captured.insert(captured.find("and 13.27"), "with 19.40 MiB allocated in private pools (e.g., CUDA Graphs), ");
  EXPECT_NE(first_of(answer_to("(EngineCore_DP0 pid=8769) " + captured)).find("gpu_memory_utilization"), std::string::npos);
}

TEST(FailedProgram, ABatchOfOneHasNoHalf) {
  for (const char* line : {"my batch size is only 1. but still\n", "python train3d.py --bs 1 --net x\n", "batch_size = 1\n",
                           "  Instantaneous batch size per device = 1\n", "I have set the samples_per_gpu = 1\n"})
    EXPECT_EQ(first_of(answer_to(line + std::string(kFilledCard))), "gradient_checkpointing: true") << line;
  for (const char* line : {"batch size is 16\n", "--bs 128\n", "batch_size=1.5\n"})
    EXPECT_NE(first_of(answer_to(line + std::string(kFilledCard))).find("halve"), std::string::npos) << line;
}

TEST(FailedProgram, WhatTestsOrShowsTakesOneInputAtATime) {
  for (const char* line : {"I tried to run inference, and got\n", "`python test.py --trained_model=a.pth` fails\n"})
    EXPECT_NE(first_of(answer_to(line + std::string(kFilledCard))).find("inference_mode"), std::string::npos) << line;
  for (const char* line : {"oom while running gradio\n", "python run_gradio_demo.py\n"})
    EXPECT_NE(first_of(answer_to(line + std::string(kFilledCard))).find("model.half()"), std::string::npos) << line;
  for (const char* line : {"training works, `python test.py` too\n", "python train.py, as in demo.py\n"})
    EXPECT_NE(first_of(answer_to(line + std::string(kFilledCard))).find("halve"), std::string::npos) << line;
}

TEST(FailedProgram, WeightsThatAreToldToBeQuantizedAreSharedOut) {
  const Explanation e = answer_to("from_pretrained(name, device_map=\"auto\", load_in_8bit=True)\n" +
                                  full_in("/x/transformers/modeling_utils.py", "_load_state_dict_into_meta_model", "f()"));
  EXPECT_NE(first_of(e).find("several GPUs"), std::string::npos);
}

TEST(FailedProgram, WhatMakesFilmsIsKnownByItsWords) {
  for (const char* line : {"failed to run wan_t2v_inference.sh\n", "torchrun sample_video.py --video-size 128 128\n"})
    EXPECT_NE(first_of(answer_to(line + std::string(kFilledCard))).find("offload"), std::string::npos) << line;
  EXPECT_NE(first_of(answer_to("text2vec\n" + std::string(kFilledCard))).find("halve"), std::string::npos);
}

}  // namespace snug::explain_tests
