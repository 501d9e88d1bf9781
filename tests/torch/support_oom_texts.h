#pragma once
// A message of each generation and library, as its source prints it, with the figures that a reader finds in it.

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "torch/oom_message.h"

namespace snug::torch_tests {

inline int64_t bytes_of(double value, int64_t unit) { return std::llround(value * static_cast<double>(unit)); }
inline int64_t kib(double value) { return bytes_of(value, int64_t{1} << 10); }
inline int64_t mib(double value) { return bytes_of(value, int64_t{1} << 20); }
inline int64_t gib(double value) { return bytes_of(value, int64_t{1} << 30); }

struct EraText {
  std::string_view name;
  OomSource source;
  std::string_view era;
  std::string_view cause;
  std::string_view text;
};

inline constexpr std::string_view kTail21 =
    " If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.  See documentation "
    "for "
    "Memory Management and PYTORCH_CUDA_ALLOC_CONF";

using enum OomSource;
inline constexpr auto kEraTexts = std::to_array<EraText>({
    {"thc", thc, "up to 1.0", "unknown",
     "THCudaCheck FAIL file=/pytorch/aten/src/THC/generic/THCStorage.cu line=58 error=2 : out of memory\n"
     "RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58\n"},
    {"caffe2", caffe2, "", "unknown",
     "RuntimeError: [enforce fail at context_gpu.cu:415] error == cudaSuccess. 2 vs 0. Error at: "
     "/caffe2/caffe2/core/context_gpu.cu:415: out of memory Error from operator: \ninput: \"gpu_0/conv\"\n"},
    {"cached", torch_cuda, "1.0-1.3", "impossible_request",
     "RuntimeError: CUDA out of memory. Tried to allocate 16.00 GiB (GPU 0; 11.93 GiB total capacity; 4.00 GiB already "
     "allocated; "
     "7.33 GiB free; 179.00 KiB cached)\n"},
    {"malloc at", torch_cuda, "1.4-1.9", "shortage",
     "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 4.00 GiB total capacity; 2.91 GiB already "
     "allocated; "
     "19.21 MiB free; 2.92 GiB reserved in total by PyTorch) (malloc at ..\\c10\\cuda\\CUDACachingAllocator.cpp:289)\n"
     "(no backtrace available)\n"},
    {"fraction of 1.8", torch_cuda, "1.4-1.9", "memory_limit",
     "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 2; 15.78 GiB total capacity; 3.50 GiB already "
     "allocated; "
     "11.00 GiB free; 3.94 GiB allowed; 3.60 GiB reserved in total by PyTorch)\n"},
    {"max_split_size", torch_cuda, "1.13-2.0", "fragmentation",
     "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 7; 23.69 GiB total capacity; 17.10 "
     "GiB "
     "already allocated; 612.69 MiB free; 21.80 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory "
     "try "
     "setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and "
     "PYTORCH_CUDA_ALLOC_CONF\n"},
    {"capacty", torch_cuda, "2.1", "other_process",
     "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacty of 14.58 GiB "
     "of which "
     "635.56 MiB is free. Process 26469 has 1.96 GiB memory in use. Process 26470 has 12.00 GiB memory in use. Of the "
     "allocated "
     "memory 1.23 GiB is allocated by PyTorch, and 51.00 MiB is reserved by PyTorch but unallocated. If reserved but "
     "unallocated "
     "memory is large try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and "
     "PYTORCH_CUDA_ALLOC_CONF\n"},
    {"capacity", torch_cuda, "2.5-2.8", "shortage",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB. GPU 0 has a total capacity of 23.68 GiB of "
     "which 2.38 "
     "GiB is free. Including non-PyTorch memory, this process has 21.29 GiB memory in use. Of the allocated memory 20.16 "
     "GiB is "
     "allocated by PyTorch, with 46.00 MiB allocated in private pools (e.g., CUDA Graphs), and 544.12 MiB is reserved by "
     "PyTorch "
     "but unallocated. If reserved but unallocated memory is large try setting "
     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to "
     "avoid fragmentation.  See documentation for Memory Management  "
     "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)\n"},
    {"newest", torch_cuda, "2.9 or later", "memory_limit",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 23.68 GiB of "
     "which "
     "18.38 GiB is free. 4.74 GiB allowed; Of the allocated memory 4.16 GiB is allocated by PyTorch, and 144.12 MiB is "
     "reserved by "
     "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
     "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
     "(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)\n"},
    {"Windows", torch_cuda, "2.5-2.8", "overcommit",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total capacity of 8.00 GiB of "
     "which 0 "
     "bytes is free. Process 1234 has 17179869184.00 GiB memory in use. Of the allocated memory 13.24 GiB is allocated by "
     "PyTorch, "
     "and 203.79 MiB is reserved by PyTorch but unallocated.\n"},
    {"HIP", torch_hip, "2.5-2.8", "shortage",
     "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 1 has a total capacity of 15.98 GiB of "
     "which 0 "
     "bytes is free. Of the allocated memory 15.21 GiB is allocated by PyTorch, and 1.13 MiB is reserved by PyTorch but "
     "unallocated. If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True "
     "to "
     "avoid fragmentation.\n"},
    {"XPU", torch_xpu, "2.5-2.8", "shortage",
     "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 11.93 GiB of "
     "which "
     "705.62 MiB is free. Of the allocated memory 10.43 GiB is allocated by PyTorch, and 94.57 MiB is reserved by PyTorch "
     "but "
     "unallocated. Please use `empty_cache` to release all unoccupied cached memory.\n"},
    {"MPS", torch_mps, "", "memory_limit",
     "RuntimeError: MPS backend out of memory (MPS allocated: 8.41 GB, other allocations: 612.00 MB, max allowed: 9.07 GB). "
     "Tried to "
     "allocate 256.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory "
     "allocations "
     "(may cause system failure).\n"},
    {"cudaMallocAsync", torch_async, "", "overcommit",
     "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\n"
     "Currently allocated     : 22.43 GiB\nRequested               : 4.07 GiB\nDevice limit            : 16.00 GiB\n"
     "Free (according to CUDA): 0 bytes\nPyTorch limit (set by user-supplied memory fraction)\n"
     "                        : 17179869184.00 GiB\n"},
    {"preemptive", torch_cuda, "", "memory_limit",
     "torch.OutOfMemoryError: CUDA out of memory. Allocation was preemptively rejected because it would exceed "
     "per_process_memory_fraction limit. Requested size: 64.00 MiB\n"},
    {"beyond all", torch_cuda, "", "impossible_request",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.\n"},
    {"driver", cuda, "", "driver",
     "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call, "
     "so the "
     "stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"},
    {"cuBLAS", cublas, "", "driver",
     "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n"},
    {"cuDNN", cudnn, "", "driver", "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED\n"},
    {"NCCL", nccl, "", "driver",
     "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled cuda error\nLast error:\n"
     "Failed to CUDA calloc async 608 bytes\n"},
    {"bitsandbytes", bitsandbytes, "", "driver", "Error out of memory at line 380 in file /src/csrc/pythonInterface.c\n"},
    {"device map", device_map, "", "shortage",
     "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the "
     "quantized model. "
     "If you want to dispatch the model on the CPU or the disk\n"},
    {"vLLM at its start", vllm, "", "other_process",
     "ValueError: Free memory on device cuda:0 (2.6/121.63 GiB) on startup is less than desired GPU memory utilization "
     "(0.9, 109.47 "
     "GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"},
    {"vLLM's cache", vllm, "", "shortage",
     "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the "
     "engine.\n"},
    {"vLLM's sampler", vllm, "", "shortage",
     "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests. Please try lowering "
     "`max_num_seqs` "
     "or `gpu_memory_utilization` when initializing the engine.\n"},
    {"JAX", jax, "", "unknown",
     "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.\n"},
    {"CPU allocator", cpu_allocator, "", "host_memory",
     "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
     "allocate "
     "1125899906842624 bytes. Error code 12 (Cannot allocate memory)\n"},
    {"CPU allocator on Windows", cpu_allocator, "", "host_memory",
     "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: not enough memory: you tried to allocate "
     "3221225472 bytes.\n"},
    {"NumPy", numpy, "", "host_memory",
     "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 32.0 TiB for an array with shape (1048576, 4194304) and "
     "data "
     "type float64\n"},
    {"page file", host, "", "host_memory",
     "OSError: The paging file is too small for this operation to complete. (os error 1455)\n"},
    {"kernel", killed, "", "host_memory",
     "[12345.678] Out of memory: Killed process 4242 (python) total-vm:98765432kB, anon-rss:31234567kB, file-rss:123kB, "
     "shmem-rss:0kB, UID:1000\n"},
    {"memory cgroup", killed, "", "host_memory",
     "Memory cgroup out of memory: Killed process 17 (python3) total-vm:1234567kB, anon-rss:1048576kB\n"},
    {"shell", killed, "", "host_memory", "Loading checkpoint shards:  33%|###   | 1/3\nKilled\n"},
    {"torchrun", killed, "", "host_memory",
     "E1114 03:12:34 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 0 (pid: 77) of "
     "binary: "
     "/usr/bin/python\n"},
    {"container", killed, "", "host_memory", "main exited with code 137\n"},
    {"Slurm", killed, "", "host_memory",
     "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=42.batch. Some of your processes may have been killed by "
     "the cgroup "
     "out-of-memory handler.\n"},
    {"shared memory", shared_memory, "", "host_memory",
     "RuntimeError: DataLoader worker (pid 4) is killed by signal: Bus error. It is possible that dataloader's workers are "
     "out of "
     "shared memory. Please try to raise your shared memory limit.\n"},
});

}  // namespace snug::torch_tests
