#include "explain/serving.h"

#include <fmt/format.h>

#include <algorithm>

#include "explain/size_text.h"
#include "torch/words.h"

namespace snug {

namespace {

void serve_with(std::vector<Advice>& all, std::string change, const char* effect) {
  all.push_back({.change = std::move(change), .effect = effect, .most_bytes = {}});
}

void explain_vllm_start(Diagnosis& d, const OomMessage& m) {
  const int64_t others = std::max<int64_t>(*m.capacity_bytes - *m.free_bytes, 0);
  d.cause = Cause::other_process;
  d.others_bytes = others;
  d.missing_bytes = std::max<int64_t>(*m.tried_bytes - *m.free_bytes, 0);
  d.answer = fmt::format("other processes hold {} of the GPU, so that vLLM cannot have the {} it was told to take",
                         size_text(others), size_text(*m.tried_bytes));
  d.arithmetic.push_back(fmt::format("{} in all - {} free = {} held by others", size_text(*m.capacity_bytes),
                                     size_text(*m.free_bytes), size_text(others)));
  d.arithmetic.push_back(fmt::format("{} wanted > {} free", size_text(*m.tried_bytes), size_text(*m.free_bytes)));
}

void explain_vllm(Diagnosis& d, const OomMessage& m) {
  if (m.free_bytes && m.capacity_bytes && m.tried_bytes) return explain_vllm_start(d, m);
  d.cause = Cause::shortage;
  d.answer = contains(m.text, "warming up") ? "vLLM's warm-up found too little device memory beside its cache"
                                            : "vLLM found too little device memory for its key-value cache";
  if (m.wanted_tokens && m.possible_tokens) {
    d.answer = fmt::format("vLLM's key-value cache has room for {} tokens, and one sequence may have {}", *m.possible_tokens,
                           *m.wanted_tokens);
    d.arithmetic.push_back(fmt::format("{} tokens wanted > {} that fit", *m.wanted_tokens, *m.possible_tokens));
  }
  if (m.tried_bytes && m.allowed_bytes) {
    d.missing_bytes = std::max<int64_t>(*m.tried_bytes - *m.allowed_bytes, 0);
    d.arithmetic.push_back(fmt::format("the longest sequence needs {} > {} left for the cache", size_text(*m.tried_bytes),
                                       size_text(*m.allowed_bytes)));
  }
}

bool is_of_weights(const OomMessage& m) {
  return contains(m.text, "alloc_tensor_range") || contains(m.text, "loading model") || contains(m.text, "backend buffer");
}

bool is_of_compute(const OomMessage& m) { return contains(m.text, "gallocr") || contains(m.text, "compute"); }

void explain_ggml(Diagnosis& d, const OomMessage& m) {
  d.answer = m.tried_bytes ? fmt::format("llama.cpp found no room for a buffer of {}{}", size_text(*m.tried_bytes),
                                         m.device ? fmt::format(" on GPU {}", *m.device) : std::string())
                           : std::string("llama.cpp found no room for a buffer on the device");
  // Weights may be as large as that, what is computed with them not.
  constexpr int64_t kLarge = int64_t{96} << 30;
  const bool large = m.tried_bytes && *m.tried_bytes >= kLarge && is_of_compute(m);
  d.cause = large ? Cause::impossible_request : Cause::shortage;
  if (contains(m.text, "allocation limit")) {
    d.cause = Cause::memory_limit;
    d.answer = "the driver grants no buffer of this size, as Vulkan's mostly do above 4 GiB";
    return;
  }
  d.remarks.emplace_back("missing: what is free on the device; the lines before tell what was put there");
}

void cure_vllm(std::vector<Advice>& all, const OomMessage& m) {
  if (contains(m.text, "warming up")) {
    serve_with(all, "a smaller max_num_seqs", "fewer rows while it warms up");
    serve_with(all, "a lower gpu_memory_utilization: 0.8", "less for the cache, more for activations beside it");
    serve_with(all, "enforce_eager: true", "no memory for CUDA graphs; slower steps");
    return;
  }
  serve_with(all, "a larger gpu_memory_utilization: 0.95, if nothing else is on the device",
             "what vLLM may take in all; what weights and activations leave of it is the cache");
  serve_with(all,
             m.possible_tokens ? fmt::format("max_model_len: {} or less", *m.possible_tokens) : "a smaller max_model_len",
             "one sequence of that length has to fit the cache");
  serve_with(all, "kv_cache_dtype: fp8", "half of the cache for each token");
  serve_with(all, "a smaller max_num_seqs, max_num_batched_tokens", "fewer rows while it measures its activations");
  serve_with(all, "enforce_eager: true", "no memory for CUDA graphs; slower steps");
  serve_with(all, "tensor_parallel_size: 2, or a quantized model", "less of the weights on each device");
}

void cure_sglang(std::vector<Advice>& all, const OomMessage& m) {
  if (contains(m.text, "max-running-requests")) {
    serve_with(all, "a smaller --max-running-requests", "fewer requests hold slots at a time; the others wait");
    serve_with(all, "a larger --mem-fraction-static", "a larger pool for the cache, if activations leave room");
  } else if (contains(m.text, "batch size")) {
    serve_with(all, "a smaller --chunked-prefill-size, or --max-running-requests", "fewer tokens at a time");
    serve_with(all, "a smaller --mem-fraction-static", "a smaller pool leaves more for activations");
  } else {
    serve_with(all, "a larger --mem-fraction-static: 0.9, if nothing else is on the device",
               "what weights and the cache may take; the weights alone need more than it is");
    serve_with(all, "--tp 2, or a quantized model", "less of the weights on each device");
  }
  serve_with(all, "a smaller --context-length", "less cache for each request");
}

void cure_ggml(std::vector<Advice>& all, const OomMessage& m) {
  const bool compute = is_of_compute(m) && !is_of_weights(m);
  if (compute)
    serve_with(all, "a smaller micro-batch: -ub 128 (--ubatch-size); -fa on",
               "the compute buffer grows with it, and with the context without -fa");
  if (!compute)
    serve_with(all, "fewer layers on the device: a smaller -ngl (--n-gpu-layers)", "the others run on the CPU; slower");
  serve_with(all, "a smaller context: -c 8192", "cache and compute buffer grow with it");
  serve_with(all, "-ctk q8_0 -ctv q8_0", "half of the key-value cache");
  if (compute)
    serve_with(all, "fewer layers on the device: a smaller -ngl (--n-gpu-layers)", "the others run on the CPU; slower");
  serve_with(all, "a smaller quantization of the model, such as Q4_K_M", "fewer bytes for each weight");
}

}  // namespace

bool is_of_server(OomSource source) {
  return source == OomSource::vllm || source == OomSource::sglang || source == OomSource::ggml;
}

void explain_server(Diagnosis& d, const OomMessage& m) {
  if (m.source == OomSource::vllm) return explain_vllm(d, m);
  if (m.source == OomSource::ggml) return explain_ggml(d, m);
  d.cause = Cause::memory_limit;
  d.answer = contains(m.text, "fraction") ? "what SGLang may take of the device (--mem-fraction-static) is too little"
                                          : "SGLang's pool for requests is used up";
}

void cure_server(std::vector<Advice>& all, const OomMessage& m) {
  if (m.source == OomSource::vllm) return cure_vllm(all, m);
  if (m.source == OomSource::sglang) return cure_sglang(all, m);
  cure_ggml(all, m);
}

TorchStage stage_of_server(const OomMessage& m) {
  if (m.source == OomSource::vllm) return TorchStage::capture;
  if (m.source == OomSource::sglang) return contains(m.text, "fraction") ? TorchStage::capture : TorchStage::generate;
  return is_of_weights(m) ? TorchStage::load : TorchStage::unknown;
}

}  // namespace snug
