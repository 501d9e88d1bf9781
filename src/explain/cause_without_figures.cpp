#include "explain/cause_without_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "explain/serving.h"
#include "explain/size_text.h"
#include "torch/words.h"

namespace snug {

namespace {

void explain_library(Diagnosis& d, const OomMessage& m) {
  const bool unclear = contains(m.text, "NOT_INITIALIZED") || contains(m.text, "nable to find");
  d.cause = Cause::driver;
  switch (m.source) {
    case OomSource::cublas: d.answer = "cuBLAS found no device memory for its handle or workspace"; break;
    case OomSource::cudnn: d.answer = "cuDNN found no device memory for its handle or workspace"; break;
    case OomSource::nccl: d.answer = "NCCL found no device memory for its buffers"; break;
    case OomSource::bitsandbytes: d.answer = "bitsandbytes was refused memory by the CUDA driver"; break;
    default: d.answer = "the CUDA driver itself ran out of device memory";
  }
  if (unclear) d.answer += ", most likely";
  d.remarks.emplace_back("no figures: this memory lies outside of PyTorch's, in what PyTorch and others left over");
  if (unclear) d.remarks.emplace_back("a driver that does not match, or an earlier error of a kernel, says the same");
}

// PyTorch's own refusals that need no figures to be understood; false if the text is none of them.
bool explain_refused_at_once(Diagnosis& d, const OomMessage& m) {
  if (m.text.find("1EB memory") != std::string::npos) {
    d.cause = Cause::impossible_request;
    d.answer = "one tensor of more than 2^60 bytes was asked for: a shape went wrong, most likely below zero";
  } else if (m.text.find("preemptively rejected") != std::string::npos) {
    d.cause = Cause::memory_limit;
    d.answer = fmt::format("the limit set by per_process_memory_fraction is reached{}",
                           m.tried_bytes ? ": " + size_text(*m.tried_bytes) + " more were asked for" : std::string());
  } else if (m.source == OomSource::torch_mps && m.allowed_bytes) {
    d.cause = Cause::memory_limit;
    d.answer =
        fmt::format("PyTorch's limit for the Apple GPU is reached: {} of unified memory", size_text(*m.allowed_bytes));
  } else {
    return false;
  }
  return true;
}

// Of another framework, whose message holds what was asked for alone.
void explain_other_framework(Diagnosis& d, const OomMessage& m) {
  const std::string_view name = m.source == OomSource::jax      ? "JAX (XLA)"
                                : m.source == OomSource::paddle ? "PaddlePaddle"
                                                                : "TensorFlow";
  d.answer = m.tried_bytes ? fmt::format("{} found no room for {} on the device; its message tells no more", name,
                                         size_text(*m.tried_bytes))
                           : fmt::format("{} found no room on the device; its message tells no figures", name);
  // What the compiler counted for a TPU, and what Paddle holds, leave no doubt.
  const bool full = m.free_bytes && m.allocated_bytes && m.tried_bytes && *m.free_bytes < *m.tried_bytes;
  if (contains(m.text, "hbm capacity") || contains(m.text, "That was not possible") ||
      (full && *m.allocated_bytes > *m.free_bytes)) {
    d.cause = Cause::shortage;
    d.answer = fmt::format("{} needs more than the device has", name);
    if (full)
      d.arithmetic.push_back(fmt::format("asked for {}; free {}; {} allocated", size_text(*m.tried_bytes),
                                         size_text(*m.free_bytes), size_text(*m.allocated_bytes)));
  }
  d.remarks.push_back(fmt::format("{}, not PyTorch: what is known here of stages and causes does not hold for it", name));
}

// Which figures a reader would need.
void tell_missing(Diagnosis& d, const OomMessage& m) {
  std::string missing;
  const auto add = [&](bool known, std::string_view name) {
    if (!known) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  };
  add(m.tried_bytes.has_value(), "what was asked for");
  add(m.capacity_bytes.has_value() || m.allowed_bytes.has_value(), "what the device has");
  add(m.free_bytes.has_value(), "what is free");
  add(m.allocated_bytes.has_value(), "what PyTorch holds");
  if (!missing.empty()) d.remarks.push_back(fmt::format("missing: {}; PyTorch's whole message tells", missing));
}

}  // namespace

void tell_shape(Diagnosis& d, int64_t tried) {
  const auto bytes = static_cast<double>(tried);
  d.remarks.push_back(fmt::format("as fp32 logits that is {:.0f} tokens of a vocabulary of 32,000, or {:.0f} of 128,256",
                                  bytes / 4 / 32000, bytes / 4 / 128256));
  d.remarks.push_back(fmt::format("as 16-bit attention scores of 32 heads it is one sequence of {:.0f} tokens squared",
                                  std::sqrt(bytes / 2 / 32)));
}

void explain_host(Diagnosis& d, const OomMessage& m) {
  d.cause = Cause::host_memory;
  switch (m.source) {
    case OomSource::cpu_allocator:
    case OomSource::numpy:
      d.answer = m.tried_bytes ? fmt::format("host memory (RAM) ran out: {} were asked for", size_text(*m.tried_bytes))
                               : std::string("host memory (RAM) ran out");
      break;
    case OomSource::shared_memory:
      d.answer = "shared memory (/dev/shm) ran out, which the loader's workers pass batches through";
      break;
    case OomSource::killed:
      d.answer = m.process_bytes ? fmt::format("host memory (RAM) ran out: the kernel killed a process of {}",
                                               size_text(*m.process_bytes))
                                 : std::string("the process was killed (SIGKILL): host memory (RAM) ran out, most likely");
      break;
    default:
      d.answer = contains(m.text, "</torch_") ? "the system refused one more mapping of shared memory"
                                              : "host memory (RAM or the page file) ran out";
      if (m.tried_bytes) d.answer += fmt::format(": {} were asked for", size_text(*m.tried_bytes));
  }
  d.remarks.emplace_back(m.source == OomSource::killed ? "not a GPU error: Python cannot catch it and prints no traceback"
                                                       : "not a GPU error: the request went to the operating system");
}

void explain_without_figures(Diagnosis& d, const OomMessage& m) {
  switch (m.source) {
    case OomSource::cuda:
    case OomSource::cublas:
    case OomSource::cudnn:
    case OomSource::nccl:
    case OomSource::bitsandbytes: return explain_library(d, m);
    case OomSource::jax:
    case OomSource::paddle:
    case OomSource::tensorflow: return explain_other_framework(d, m);
    case OomSource::vllm:
    case OomSource::sglang:
    case OomSource::ggml: return explain_server(d, m);
    case OomSource::device_map:
      d.cause = Cause::shortage;
      d.answer = "the quantized model is larger than the device: parts were to go to the CPU";
      return;
    default: break;
  }
  constexpr int64_t kLargestDevice = int64_t{288} << 30;
  if (explain_refused_at_once(d, m)) return;
  d.answer = "device memory ran out; the text has too few figures to say why";
  if (m.tried_bytes) d.arithmetic.push_back(fmt::format("asked for {}", size_text(*m.tried_bytes)));
  if (m.capacity_bytes && m.free_bytes)
    d.arithmetic.push_back(fmt::format("free {} of {}", size_text(*m.free_bytes), size_text(*m.capacity_bytes)));
  if (m.tried_bytes && m.capacity_bytes && *m.tried_bytes > *m.capacity_bytes) {
    d.cause = Cause::impossible_request;
    d.answer = fmt::format("one tensor of {} was asked for on a device of {}: impossible", size_text(*m.tried_bytes),
                           size_text(*m.capacity_bytes));
    tell_shape(d, *m.tried_bytes);
  } else if (m.tried_bytes && *m.tried_bytes > kLargestDevice) {
    d.cause = Cause::impossible_request;
    d.answer = fmt::format("one tensor of {} was asked for: no device has as much", size_text(*m.tried_bytes));
    tell_shape(d, *m.tried_bytes);
  } else if (m.tried_bytes && m.free_bytes && *m.free_bytes >= *m.tried_bytes) {
    d.remarks.emplace_back("more is free than was asked for: a limit that was set, or the driver, refused");
  }
  if (d.cause == Cause::unknown) tell_missing(d, m);
}

}  // namespace snug
