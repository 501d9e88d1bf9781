#include "explain/host_advice.h"

#include "explain/support_explain.h"

namespace snug::explain_tests {

TEST(HostAdvice, OnWindowsThePageFileComesFirst) {
  for (const char* text :
       {"OSError: [WinError 1455] The paging file is too small for this operation to complete.\n",
        "RuntimeError: [enforce fail at ..\\c10\\core\\impl\\alloc_cpu.cpp:72] data. DefaultCPUAllocator: not "
        "enough memory: you tried to allocate 26214400 bytes.\n"})
    EXPECT_EQ(place_of(answer_to(text), "a larger page file"), 0) << text;
  EXPECT_FALSE(
      says(answer_to("RuntimeError: [enforce fail at alloc_cpu.cpp:73] . DefaultCPUAllocator: can't allocate memory: "
                     "you tried to allocate 26214400 bytes.\n"),
           "page file"));
}

TEST(HostAdvice, OneArrayThatIsTooLargeIsLookedAtFirst) {
  const Explanation large = answer_to(
      "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 58.0 GiB for an array with shape (176351, 176460) and "
      "data "
      "type uint16\n");
  EXPECT_EQ(place_of(large, "the shape of this array"), 0);
  EXPECT_EQ(large.advice[0].todo, "right_shape");
  EXPECT_FALSE(says(large, "low_cpu_mem_usage"));
  const char* hundreds = "MemoryError: Unable to allocate 876. GiB for an array with shape (60000, 2500, 784)\n";
  EXPECT_EQ(place_of(answer_to(hundreds), "the shape of this array"), 0);
  const Explanation small = answer_to("MemoryError: Unable to allocate 94.9 MiB for an array with shape (2160, 3840, 3)\n");
  EXPECT_EQ(place_of(small, "more RAM or swap"), 0);
}

TEST(HostAdvice, OfTheKernelsOwnWordsNobodyIsSentToLookForThem) {
  const std::string sum =
      "Out of memory: Killed process 25315 (python3) total-vm:53312244kB, anon-rss:31451456kB, file-rss:0kB\n";
  const Explanation e = answer_to("python3 invoked oom-killer: gfp_mask=0x140cca, order=0\n" + sum);
  EXPECT_FALSE(says(e, "dmesg"));
  EXPECT_EQ(e.log.cause().process_bytes, 31451456 * int64_t{1024});
  EXPECT_EQ(e.log.count, 1);
  EXPECT_EQ(answer_to("Killed\n" + sum).log.cause().line, 2);
  EXPECT_EQ(place_of(answer_to("train.sh: line 10:    93 Killed                  python train.py\n"), "dmesg"), 0);
}

TEST(HostAdvice, AWorkerThatWasKilledAsksForFewerWorkers) {
  EXPECT_EQ(place_of(answer_to("RuntimeError: DataLoader worker (pid 1817) is killed by signal: Killed. \n"), "num_workers"),
            0);
}

TEST(HostAdvice, AProcessThatPreparesDataAndDiesIsOneWorkerOfMany) {
  const auto answer = answer_to(
      "RuntimeError: One of the subprocesses has abruptly died during map operation."
      "To debug the error, disable multiprocessing.\n");
  EXPECT_EQ(answer.diagnosis.cause, Cause::host_memory);
  EXPECT_EQ(answer.stage.stage, TorchStage::data);
  EXPECT_EQ(place_of(answer, "num_workers"), 0);
}

TEST(HostAdvice, AKillIsKnownByTheWordsOfShellsAndNotebooks) {
  for (const char* text :
       {"zsh: killed     python train.py\n", "已杀死\n",
        "Your notebook tried to allocate more memory than is available. It has restarted.\n",
        "This could be caused by a segmentation fault while calling the function or by an excessive memory "
        "usage causing the Operating System to kill the worker.\n"})
    EXPECT_EQ(answer_to(text).diagnosis.cause, Cause::host_memory) << text;
  EXPECT_EQ(answer_to("RuntimeError: unable to write to file </torch_12_34>\n").stage.stage, TorchStage::data);
}

TEST(HostAdvice, ABadAllocOfTheDeviceIsNoLackOfHostMemory) {
  EXPECT_EQ(answer_to("MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /rmm/cuda_memory_resource.hpp\n")
                .diagnosis.cause,
            Cause::driver);
  for (const char* text : {"description \"std::bad_alloc: hipErrorOutOfMemory: out of memory\" thrown in the test body.\n",
                           "what():  std::bad_alloc: cudaErrorMemoryAllocation: out of memory\n",
                           "../rtSafe/safeRuntime.cpp (25) - Cuda Error in allocate: 2 (out of memory)\n"})
    EXPECT_EQ(answer_to(text).diagnosis.cause, Cause::driver) << text;
  EXPECT_EQ(answer_to("ResourceExhaustedError: Fail to alloc memory of 564023296 size, error code is 12.\n").diagnosis.cause,
            Cause::host_memory);
  EXPECT_EQ(place_of(answer_to("RuntimeError: Unable to find a valid cuDNN algorithm to run convolution\n"), "batch_size"),
            0);
}

TEST(HostAdvice, OllamasRefusalIsOfTheModel) {
  const Explanation e = answer_to("Error: model requires more system memory (5.6 GiB) than is available (3.1 GiB)\n");
  EXPECT_EQ(e.diagnosis.cause, Cause::host_memory);
  EXPECT_NE(first_of(e).find("smaller model"), std::string::npos);
}

}  // namespace snug::explain_tests
