#pragma once
// What an out-of-memory message says, whatever wrote it: PyTorch of every generation on CUDA, ROCm, XPU and MPS, its CPU
// allocator, the CUDA libraries, NumPy, JAX, the kernel that killed the process. Every figure may be absent: messages were
// reworded five times and people cut them short. Knows nothing of causes. Texts and eras: the source of
// CUDACachingAllocator.cpp from 0.4 to 2.10 and the threads in which people posted them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

// Who refused.
enum class OomSource {
  torch_cuda,    // PyTorch's caching allocator on CUDA
  torch_hip,     // … on ROCm
  torch_xpu,     // … on Intel GPUs
  torch_mps,     // PyTorch's allocator on Apple GPUs
  torch_async,   // PyTorch's cudaMallocAsync backend
  thc,           // PyTorch up to 0.4 (THCudaCheck)
  caffe2,        // Caffe2 and Detectron
  cuda,          // the driver or the runtime, without figures
  cublas,        // a handle or workspace of cuBLAS
  cudnn,         // … of cuDNN
  nccl,          // buffers of NCCL
  bitsandbytes,  // a paged optimizer or a kernel of bitsandbytes
  vllm,          // vLLM's start: no room for its cache
  sglang,        // SGLang's pools: its share of the device is used up
  ggml,          // llama.cpp and what is built on it
  device_map,    // quantized weights that were to spill to the CPU
  jax,           // XLA
  tensorflow,
  paddle,
  cpu_allocator,  // PyTorch's allocator of host memory
  numpy,
  host,           // another refusal of host memory: mmap, bad_alloc, MemoryError, Windows' page file
  shared_memory,  // /dev/shm of a container
  killed          // the process was killed: SIGKILL, the kernel's oom-killer, a container's limit
};

std::string_view name_of(OomSource source);
bool is_host(OomSource source);  // host memory ran out, not the device's

struct OomProcess {
  int64_t pid = 0;
  std::optional<int64_t> bytes;  // unknown where Windows hides it
};

// Sizes are bytes, as exact as the text: two decimals of its unit.
struct OomMessage {
  OomSource source = OomSource::torch_cuda;
  std::string era;   // "2.2-2.8": releases of PyTorch with this wording; empty if it does not tell
  std::string text;  // the sentence, as far as it was given, on one line
  int64_t line = 0;  // of the file, from 1
  std::optional<int> rank;
  bool by_vllm = false;  // a worker of vLLM printed it
  std::optional<int> device;

  std::optional<int64_t> tried_bytes;         // what was asked of the device: the size of a segment
  std::optional<int64_t> capacity_bytes;      // of the device
  std::optional<int64_t> free_bytes;          // of the device, as the driver says
  std::optional<int64_t> allocated_bytes;     // in tensors
  std::optional<int64_t> reserved_bytes;      // PyTorch's segments: allocated + unallocated
  std::optional<int64_t> unallocated_bytes;   // reserved and in no tensor ("cached" up to 1.3)
  std::optional<int64_t> allowed_bytes;       // by set_per_process_memory_fraction or MPS' high-water mark
  std::optional<int64_t> private_pool_bytes;  // of `allocated`, in pools of CUDA graphs
  std::optional<int64_t> process_bytes;       // this process with what is not PyTorch's
  std::optional<int64_t> other_bytes;         // MPS: other allocations
  std::optional<int64_t> wanted_tokens;       // vLLM: the longest sequence that it was to serve
  std::optional<int64_t> possible_tokens;     // … and the longest that its cache can hold
  std::vector<OomProcess> processes;          // the others; in a container possibly this one
  std::vector<std::string> impossible;        // names of figures that cannot be true and were left out

  bool has_figures() const { return tried_bytes && (capacity_bytes || allowed_bytes) && allocated_bytes; }
};

// Reads the message that begins at byte `at` of clean text (lines without prefixes), where a wording of `source` stands.
// Looks no further than the end of the sentence, at most 8 KiB on. `end` gets the byte behind it.
OomMessage read_oom_message(std::string_view text, size_t at, OomSource source, size_t& end);

}  // namespace snug
