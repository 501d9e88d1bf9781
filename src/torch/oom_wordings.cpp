#include "torch/oom_wordings.h"

#include <array>
#include <vector>

#include "torch/words.h"

namespace snug {

namespace {

struct Wording {
  std::string_view phrase;
  OomSource source;
  Surety surety = Surety::certain;
};

using enum OomSource;
constexpr Surety kHint = Surety::hint;

constexpr auto kWordings = std::to_array<Wording>({
    {"CUDA out of memory occurred when warming up", vllm},
    {"CUDA out of memory on host", host},
    {"CUDA out of memory", torch_cuda},
    {"cuda out of memory", torch_cuda},
    {"HIP out of memory", torch_hip},
    {"XPU out of memory", torch_xpu},
    {"can NOT allocate memory block with size larger than", torch_xpu},
    {"MPS backend out of memory", torch_mps},
    {"would exceed allowed memory", torch_async},
    {"NPU out of memory", torch_cuda},
    {"Tried to allocate", torch_cuda},
    {"THCudaCheck FAIL", thc},
    {"cuda runtime error (2)", thc},
    {"error == cudaSuccess. 2 vs 0", caffe2},
    {"error == cudaSuccess (2 vs. 0) out of memory", caffe2},
    {"CUDA runtime error: out of memory", cuda},
    {"CUDA error: out of memory", cuda},
    {"CUDA Error: out of memory", cuda},
    {"std::bad_alloc: out_of_memory: CUDA error", cuda},
    {"std::bad_alloc: CUDA error", cuda},
    {"std::bad_alloc: cudaErrorMemoryAllocation", cuda},
    {"std::bad_alloc: hipErrorOutOfMemory", cuda},
    {"Cuda Error in allocate: 2 (out of memory)", cuda},
    {"Failed to allocate memory for requested buffer of size", cuda},
    {"HIP_ERROR_OutOfMemory", cuda},
    {"CUDA driver error: out of memory", cuda},
    {"CUDA failure 2: out of memory", cuda},
    {"Cuda Runtime (out of memory)", cuda},
    {"Requested amount of GPU memory", cuda},
    {"Out of GPU memory trying to allocate", cuda},
    {"PT_DEVMEM Allocation failed", torch_cuda},
    {"CUDA driver error: 2", cuda},
    {"HIP error: out of memory", cuda},
    {"CUDA_ERROR_OUT_OF_MEMORY", cuda},
    {"cudaErrorMemoryAllocation", cuda},
    {"failed with error 2 out of memory", cuda},
    {"CUDA failed with error out of memory", cuda},
    {"hipErrorOutOfMemory", cuda},
    {"UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", torch_xpu},
    {"UR_RESULT_ERROR_OUT_OF_RESOURCES", torch_xpu},
    {"PI_ERROR_OUT_OF_RESOURCES", torch_xpu},
    {"CUBLAS_STATUS_ALLOC_FAILED", cublas},
    {"CUBLAS_STATUS_NOT_INITIALIZED", cublas},
    {"HIPBLAS_STATUS_ALLOC_FAILED", cublas},
    {"CUFFT_ALLOC_FAILED", cublas},
    {"CURAND_STATUS_ALLOCATION_FAILED", cublas},
    {"CUSOLVER_STATUS_ALLOC_FAILED", cublas},
    {"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", cublas},
    {"CUDNN_STATUS_ALLOC_FAILED", cudnn},
    {"CUDNN_STATUS_NOT_INITIALIZED", cudnn},
    {"CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", cudnn},
    {"MIOPEN_STATUS_ALLOC_FAILED", cudnn},
    {"Unable to find a valid cuDNN algorithm", cudnn, kHint},
    {"unable to find a valid cuDNN algorithm", cudnn, kHint},
    {"unable to find an engine to execute this computation", cudnn, kHint},
    {"Cuda failure 'out of memory'", nccl},
    {"Cuda failure 2 'out of memory'", nccl},
    {"Failed to CUDA calloc", nccl},
    {"Failed to CUDA malloc", nccl},
    {"Failed to CUDA host alloc", nccl},
    {"Failed to CUDA host malloc", nccl},
    {"Error out of memory at line", bitsandbytes},
    {"Make sure you have enough GPU RAM to fit the quantized model", device_map},
    {"No available memory for the cache blocks", vllm},
    {"reserved for KV Cache is -", vllm},
    {"Free memory on device", vllm},
    {"larger than the available KV cache memory", vllm},
    {"larger than the maximum number of tokens that can be stored in KV cache", vllm},
    {"Engine core initialization failed due to insufficient memory", vllm},
    {"Not enough memory. Please try to increase --mem-fraction-static", sglang},
    {"Not enough memory; please try to increase --mem-fraction-static", sglang},
    {"runs out of memory. Please set a smaller number for", sglang},
    {"Prefill out of memory. Try to lower your batch size", sglang},
    {"Decode out of memory. Try to lower your batch size", sglang},
    {"cudaMalloc failed: out of memory", ggml},
    {"hipMalloc failed: out of memory", ggml},
    {"exceeds device memory allocation limit", ggml},
    {"ErrorOutOfDeviceMemory", ggml},
    {"VK_ERROR_OUT_OF_DEVICE_MEMORY", ggml},
    {"failed to allocate compute pp buffers", ggml, kHint},
    {"failed to allocate compute buffers", ggml, kHint},
    {"unable to allocate backend buffer", ggml, kHint},
    {"unable to allocate CUDA", ggml, kHint},
    {"unable to allocate ROCm", ggml, kHint},
    {"unable to allocate Vulkan", ggml, kHint},
    {"failed to allocate buffer for kv cache", ggml, kHint},
    {"RESOURCE_EXHAUSTED: Out of memory", jax},
    {"RESOURCE_EXHAUSTED: Failed to allocate", jax},
    {"Resource exhausted: Out of memory", jax},
    {"RESOURCE_EXHAUSTED: Error allocating device buffer", jax},
    {"Ran out of memory in memory space", jax},
    {"Error loading program: Attempting to reserve", jax},
    {"OOM when allocating tensor", tensorflow},
    {"ran out of memory trying to allocate", tensorflow},
    {"Out of memory error on GPU", paddle},
    {"kIOGPUCommandBufferCallbackErrorOutOfMemory", torch_mps},
    {"Invalid buffer size:", torch_mps},
    {"greater than the maximum allowed buffer size", torch_mps},
    {"not enough GPU video memory available", cuda},
    {"crashed after using all available RAM", killed},
    {"tried to allocate more memory than is available. It has restarted", killed},
    {"excessive memory usage causing the Operating System to kill the worker", killed, kHint},
    {"subprocesses has abruptly died during map operation", killed, kHint},
    {"exceeded 95% memory budget", killed},
    {"zsh: killed", killed, kHint},
    {"已杀死", killed, kHint},
    {"DefaultCPUAllocator: can't allocate memory", cpu_allocator},
    {"DefaultCPUAllocator: not enough memory", cpu_allocator},
    {"DefaultCPUAllocator: can’t allocate memory", cpu_allocator},
    {"Torch: not enough memory: you tried to allocate", cpu_allocator},
    {"posix_memalign(&data, gAlignment, nbytes) == 0. 12 vs 0", cpu_allocator},
    {"Unable to allocate", numpy},
    {"OutOfMemoryError: Task was killed", killed},
    {"killed due to memory pressure (OOM)", killed},
    {"which exceeds the memory usage threshold", killed},
    {"Exceeded job memory limit", killed},
    {"xceeded step memory limit", killed},
    {"OutOfMemoryError: Allocation on device", torch_async},
    {"!!! Allocation on device", torch_async},
    {"Message:** Allocation on device", torch_async},
    {"OutOfMemoryError", torch_cuda, kHint},
    {"Cannot allocate memory", host},
    {"paging file is too small", host},
    {"model requires more system memory", host},
    {"os error 1455", host},
    {"WinError 1455", host},
    {"Memory allocation still failed", host},
    {"Fail to alloc memory of", host},
    {"std::bad_alloc", host},
    {"MemoryError", host, kHint},
    {"out of shared memory", shared_memory},
    {"unable to write to file </torch_", shared_memory},
    {"is killed by signal: Bus error", shared_memory},
    {"insufficient shared memory", shared_memory},
    {"is killed by signal: Killed", killed},
    {"is killed by signal: Terminated", killed, kHint},
    {"Out of memory: Kill", killed},
    {"Memory cgroup out of memory", killed},
    {"oom-kill:constraint", killed},
    {"invoked oom-killer", killed},
    {"oom-kill event", killed},
    {"oom_kill event", killed},
    {"The node was low on resource: memory", killed},
    {": Out Of Memory", killed},
    {"OOMKilled", killed},
    {"OOM Killed", killed},
    {"died with <Signals.SIGKILL: 9>", killed, kHint},
    {"Signal 9 (SIGKILL)", killed, kHint},
    {"signal SIGKILL", killed, kHint},
    {"The kernel appears to have died", killed, kHint},
    {"The Kernel crashed while executing code", killed, kHint},
    {"signal 9: SIGKILL", killed, kHint},
    {"exit code: -9", killed, kHint},
    {"exitcode : -9", killed, kHint},
    {"exitcode: -9", killed, kHint},
    {"exitcode=-9", killed, kHint},
    {"exit code -9", killed, kHint},
    {"return code -9", killed, kHint},
    {"return code = -9", killed, kHint},
    {"returncode=-9", killed, kHint},
    {"exit code 137", killed, kHint},
    {"exit code: 137", killed, kHint},
    {"Exit Code: 137", killed, kHint},
    {"exit status 137", killed, kHint},
    {"status code 137", killed, kHint},
    {"exited with status 137", killed, kHint},
    {"exited with code 137", killed, kHint},
    {"returned 137", killed, kHint},
});

// "Killed" as a shell prints it: alone, in a thread's bold letters perhaps, behind a progress bar, or "line 3:  12345 Killed
// python train.py".
std::optional<WordingFound> shell_kill(std::string_view line, size_t after) {
  const size_t at = line.find("Killed");
  if (at == std::string_view::npos || at + 6 <= after) return std::nullopt;
  const std::string_view before = line.substr(0, at);
  const std::string_view behind = line.substr(at + 6);
  const size_t last = before.find_last_not_of(' '), sign = before.find_last_not_of(" *`");
  const bool behind_bar = sign != std::string_view::npos && before.substr(0, sign + 1).ends_with("it/s]");
  const bool alone = (sign == std::string_view::npos || before[sign] == '\n' || behind_bar) &&
                     behind.find_first_not_of(" *`\n") == std::string_view::npos;
  const bool by_shell = last != std::string_view::npos && is_digit(before[last]) && behind.starts_with("  ") &&
                        (contains(before, "line ") || contains(behind, "python") || contains(behind, "torchrun"));
  if (!alone && !by_shell) return std::nullopt;
  return WordingFound{at, at + 6, killed, Surety::hint};
}

// THC prints every error of CUDA so; that of memory has number 2.
bool is_another(std::string_view text, const Wording& wording) {
  if (wording.source != thc) return false;
  constexpr std::string_view kNumber = "error=";
  const std::string_view line = text.substr(0, text.find('\n'));
  const size_t at = line.find(kNumber);
  return at != std::string_view::npos && digits_of(line.substr(at + kNumber.size())) != "2";
}

// Wordings by their first byte: most bytes of a log begin none, so that a line is gone through once.
using FirstBytes = std::array<std::vector<const Wording*>, 256>;

const FirstBytes& by_first_byte() {
  static const FirstBytes table = [] {
    FirstBytes made;
    for (const Wording& wording : kWordings) made[static_cast<unsigned char>(wording.phrase[0])].push_back(&wording);
    return made;
  }();
  return table;
}

// Bytes that a wording covers at the front of `text`; 0 if it does not stand there. "137" does not stand in "1370".
size_t wording_length(std::string_view text, const Wording& wording) {
  const size_t length = phrase_length(text, wording.phrase);
  const bool goes_on = length > 0 && length < text.size() && is_digit(wording.phrase.back()) && is_digit(text[length]);
  return goes_on ? 0 : length;
}

}  // namespace

std::optional<WordingFound> find_wording(std::string_view line, size_t after) {
  const FirstBytes& table = by_first_byte();
  std::optional<WordingFound> hint;
  for (size_t at = 0; at < line.size(); ++at) {
    for (const Wording* wording : table[static_cast<unsigned char>(line[at])]) {
      const char second = at + 1 < line.size() ? line[at + 1] : '\0';
      if (second != wording->phrase[1] && second != '\n') continue;
      if (hint && wording->surety == kHint) continue;
      const size_t length = wording_length(line.substr(at), *wording);
      if (length == 0 || at + length <= after || is_another(line.substr(at), *wording)) continue;
      const WordingFound found{at, at + length, wording->source, wording->surety};
      if (found.surety == Surety::certain) return found;
      hint = found;
    }
  }
  return hint ? hint : shell_kill(line, after);
}

}  // namespace snug
