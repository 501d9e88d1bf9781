#include "explain/serving.h"

#include "explain/support_explain.h"

namespace snug::explain_tests {

TEST(Serving, VllmIsToldWithItsOwnFigures) {
  const Explanation e = answer_to(
      "ERROR core.py:708] ValueError: To serve at least one request with the models's max seq len (32768), (3.50 GiB KV "
      "cache is "
      "needed, which is larger than the available KV cache memory (1.87 GiB). Based on the available memory, the estimated "
      "maximum model length is 17504. Try increasing `gpu_memory_utilization` or decreasing `max_model_len`.\n");
  EXPECT_EQ(e.diagnosis.cause, Cause::shortage);
  EXPECT_EQ(e.stage.stage, TorchStage::capture);
  EXPECT_EQ(e.diagnosis.answer, "vLLM's key-value cache has room for 17504 tokens, and one sequence may have 32768");
  ASSERT_EQ(e.diagnosis.arithmetic.size(), 2u);
  EXPECT_NE(e.diagnosis.arithmetic[1].find("3.50 GiB > 1.87 GiB"), std::string::npos);
  EXPECT_EQ(place_of(e, "a larger gpu_memory_utilization"), 0);
  EXPECT_EQ(place_of(e, "max_model_len: 17504 or less"), 1);
}

TEST(Serving, TheOlderWordingOfVllmHasTokensAlone) {
  const Explanation e = answer_to(
      "ValueError: The model's max seq len (8192) is larger than the maximum number of tokens that can be stored in KV "
      "cache "
      "(5040). Try increasing `gpu_memory_utilization`\n");
  EXPECT_EQ(e.log.cause().wanted_tokens, 8192);
  EXPECT_EQ(e.log.cause().possible_tokens, 5040);
  EXPECT_TRUE(says(e, "max_model_len: 5040 or less"));
}

TEST(Serving, NoBlocksForTheCacheAskForALargerShare) {
  const Explanation e = answer_to("ValueError: No available memory for the cache blocks. Try increasing it\n");
  EXPECT_EQ(place_of(e, "a larger gpu_memory_utilization"), 0);
  EXPECT_EQ(place_of(e, "max_model_len"), 1);
}

TEST(Serving, SglangsPoolsHaveTheirSettings) {
  const Explanation start =
      answer_to("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: 0.3\n");
  EXPECT_EQ(start.diagnosis.cause, Cause::memory_limit);
  EXPECT_EQ(start.stage.stage, TorchStage::capture);
  EXPECT_EQ(place_of(start, "a larger --mem-fraction-static"), 0);
  const Explanation serving = answer_to(
      "RuntimeError: alloc_req_slots runs out of memory. Please set a smaller number for `--max-running-requests`.\n");
  EXPECT_EQ(serving.stage.stage, TorchStage::generate);
  EXPECT_EQ(place_of(serving, "a smaller --max-running-requests"), 0);
}

TEST(Serving, WeightsOfLlamaCppGoToTheCpuByLayers) {
  const Explanation e = answer_to(
      "load_tensors: loading model tensors\nggml_backend_cuda_buffer_type_alloc_buffer: allocating 9000.50 MiB on device 1: "
      "cudaMalloc failed: out of memory\nalloc_tensor_range: failed to allocate CUDA1 buffer of size 9437708288\n"
      "llama_model_load: error loading model: unable to allocate CUDA1 buffer\n");
  EXPECT_EQ(e.diagnosis.cause, Cause::shortage);
  EXPECT_EQ(e.stage.stage, TorchStage::load);
  EXPECT_EQ(e.log.cause().device, 1);
  EXPECT_EQ(e.log.cause().tried_bytes, 9437708288);
  EXPECT_EQ(place_of(e, "-ngl"), 0);
}

TEST(Serving, ABufferToComputeInOfMoreThanACardIsAWrongSize) {
  const std::string behind = "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 1\n";
  const auto of = [&](const char* size) {
    return answer_to("ggml_backend_cuda_buffer_type_alloc_buffer: allocating " + std::string(size) +
                     " MiB on device 0: cudaMalloc failed: out of memory\n" + behind);
  };
  EXPECT_EQ(of("280000.00").diagnosis.cause, Cause::impossible_request);
  EXPECT_EQ(of("2800.00").diagnosis.cause, Cause::shortage);
  EXPECT_EQ(place_of(of("2800.00"), "--ubatch-size"), 0);
}

TEST(Serving, AWarmUpThatFailsAsksForASmallerShare) {
  const Explanation e = answer_to(
      "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering "
      "`max_num_seqs` or `gpu_memory_utilization` when initializing the engine.\n");
  EXPECT_EQ(place_of(e, "a smaller max_num_seqs"), 0);
  EXPECT_EQ(place_of(e, "a lower gpu_memory_utilization"), 1);
}

TEST(Serving, OtherFrameworksTellWhatTheyCounted) {
  const Explanation tpu = answer_to(
      "XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 18.46G of 15.48G hbm. Exceeded hbm "
      "capacity by 2.98G.\n");
  EXPECT_EQ(tpu.diagnosis.cause, Cause::shortage);
  EXPECT_EQ(place_of(tpu, "a smaller batch"), 0);
  const Explanation paddle = answer_to(
      "ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 512.000000MB memory on GPU 0, 9.900000GB "
      "memory "
      "has been allocated and available memory is only 300.000000MB.\n");
  EXPECT_EQ(paddle.diagnosis.cause, Cause::shortage);
  EXPECT_EQ(paddle.log.cause().tried_bytes, 512000000);
  EXPECT_EQ(place_of(paddle, "a smaller batch"), 0);
}

TEST(Serving, AWorkerOfVllmIsToldOfItsOwnSettings) {
  const Explanation e = answer_to(
      "(VllmWorker rank=1 pid=2978) ERROR 03-19 07:27:53 [multiproc_executor.py:375] torch.OutOfMemoryError: CUDA out of "
      "memory. "
      "Tried to allocate 1.70 GiB. GPU 1 has a total capacity of 23.57 GiB of which 605.88 MiB is free. Process 133288 has "
      "22.97 "
      "GiB memory in use. Of the allocated memory 21.21 GiB is allocated by PyTorch, and 185.98 MiB is reserved by PyTorch "
      "but "
      "unallocated.\n");
  EXPECT_EQ(e.diagnosis.cause, Cause::shortage);
  EXPECT_EQ(place_of(e, "a lower gpu_memory_utilization"), 0);
}

TEST(Serving, ABufferAboveTheDriversLimitIsNoLackOfMemory) {
  const Explanation e = answer_to(
      "ggml_vulkan: Requested buffer size exceeds device memory allocation limit: ErrorOutOfDeviceMemory\n"
      "ggml_gallocr_reserve_n: failed to allocate Vulkan0 buffer of size 4757131264\n");
  EXPECT_EQ(e.diagnosis.cause, Cause::memory_limit);
}

}  // namespace snug::explain_tests
