#include "explain/failed_program_advice.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>

#include "explain/remedies.h"
#include "explain/stage_advice.h"
#include "torch/words.h"

namespace snug {

namespace {

using enum Remedy;

void drop(std::vector<Advice>& all, std::initializer_list<Remedy> remedies) {
  std::erase_if(all, [&](const Advice& one) {
    return std::ranges::any_of(remedies, [&](Remedy remedy) { return one.todo == word_of(remedy); });
  });
}

void drop_saying(std::vector<Advice>& all, std::initializer_list<std::string_view> words) {
  std::erase_if(all, [&](const Advice& one) {
    return std::ranges::any_of(words, [&](std::string_view word) { return contains(one.change, word); });
  });
}

void advise_to(std::vector<Advice>& all, const char* change, const char* effect) { all.push_back({change, effect, {}}); }

// The remedy in the program's own words.
void add_worded(std::vector<Advice>& all, Remedy remedy, const char* change, const char* effect = nullptr) {
  all.push_back(advice_of(remedy));
  all.back().change = change;
  if (effect != nullptr) all.back().effect = effect;
}

bool is_about_tensors(Cause cause) {
  return cause == Cause::shortage || cause == Cause::unknown || cause == Cause::overcommit ||
         cause == Cause::impossible_request;
}

// Changes that take the place of all the others for a shortage, or follow those for a limit or another process.
void replace_or_follow(std::vector<Advice>& all, std::vector<Advice> own, Cause cause) {
  if (is_about_tensors(cause)) {
    std::erase_if(all, [](const Advice& one) {
      return one.todo != word_of(end_other_process) && one.todo != word_of(expandable_segments) &&
             one.todo != word_of(right_shape) && !contains(one.change, "Sysmem Fallback");
    });
  } else {
    drop(all, {gradient_checkpointing, smaller_micro_batch, shorter_sequences, fused_loss, flash_attention, bf16_weights,
               quantize_4bit, optimizer_8bit, lora, load_once, smaller_cache});
    drop_saying(all, {"several GPUs", "paged", "inference_mode", "cache_implementation", "use_liger_kernel", "batch of 1",
                      "scaled_dot_product_attention", "fused linear"});
  }
  // Pieces and shapes that the figures only allow for come after what helps anyway.
  const bool behind = cause == Cause::shortage;
  all.insert(behind ? all.begin() : all.end(), own.begin(), own.end());
}

void suit_diffusion(const FailedProgram& program, std::vector<Advice>& all, Filler filler, const StageFound& stage,
                    Cause cause) {
  std::vector<Advice> own;
  const bool loads = stage.stage == TorchStage::load;
  constexpr const char* kOffload = "offload: --medvram or --lowvram, in diffusers enable_model_cpu_offload()";
  constexpr const char* kOffloadEffect = "only the part at work lies on the device; slower";
  if (filler == Filler::attention)
    add_worded(own, flash_attention,
               "attention that keeps no scores: --opt-sdp-attention, --xformers, --use-pytorch-cross-attention");
  if (!program.offloaded) advise_to(own, kOffload, kOffloadEffect);
  if (!loads)
    add_worded(own, shorter_sequences, "a smaller image, fewer frames",
               "activations grow with its pixels; upscale afterwards");
  if (loads) advise_to(own, "16-bit or quantized weights: fp16, fp8, GGUF", "half of fp32's, or less");
  if (!loads) {
    advise_to(own, "tiled VAE: --tiled, in diffusers enable_vae_tiling()", "the picture is decoded piece by piece");
    add_worded(own, smaller_micro_batch, "a batch of 1: fewer images at a time", "images do not share activations");
    advise_to(own, "16-bit or quantized weights: fp16, fp8, GGUF", "half of fp32's, or less");
    if (filler != Filler::attention)
      add_worded(own, flash_attention,
                 "attention that keeps no scores: --opt-sdp-attention, --xformers, --use-pytorch-cross-attention");
  }
  if (program.offloaded)
    advise_to(own, "offload more: --lowvram, --novram, enable_sequential_cpu_offload()", kOffloadEffect);
  replace_or_follow(all, std::move(own), cause);
}

void suit_vision(const FailedProgram& program, std::vector<Advice>& all, const StageFound& stage, Cause cause) {
  std::vector<Advice> own;
  const bool evaluates = stage.stage == TorchStage::evaluation;
  if (evaluates || program.inference) {
    add_worded(own, smaller_eval_batch, "a smaller batch of images", "only rows at a time change, not the result");
    advise_to(own, "outputs.cpu() after each batch", "outputs do not gather on the device");
  } else {
    add_worded(own, smaller_micro_batch, "half the batch, twice the accumulation steps");
  }
  add_worded(own, shorter_sequences, "smaller images or patches", "activations grow with their pixels");
  advise_to(own, "mixed precision: torch.autocast", "half of the activations");
  if (!evaluates && !program.inference && !program.checkpointed)
    add_worded(own, gradient_checkpointing, "torch.utils.checkpoint.checkpoint around each block");
  if (stage.stage == TorchStage::optimizer) add_worded(own, optimizer_foreach_off, "AdamW(foreach=False) or fused=True");
  replace_or_follow(all, std::move(own), cause);
}

void suit_graph(const FailedProgram& program, std::vector<Advice>& all, Cause cause) {
  std::vector<Advice> own;
  advise_to(own, "smaller graphs at a time: sampled neighbours (NeighborLoader, dgl.dataloading), or fewer graphs a batch",
            "memory grows with nodes and edges, not with a batch of rows");
  advise_to(own, "a sparse adjacency (SparseTensor, torch.sparse) instead of a dense one or of edges one by one",
            "messages of all edges are never whole");
  add_worded(own, shorter_sequences, "fewer layers, heads or hidden channels",
             "each layer keeps its nodes' and its edges' features");
  if (!program.inference && !program.checkpointed)
    add_worded(own, gradient_checkpointing, "torch.utils.checkpoint.checkpoint around each layer");
  advise_to(own, "the evaluation on the CPU, or layer by layer", "the whole graph fits there");
  replace_or_follow(all, std::move(own), cause);
}

void suit_fairseq(std::vector<Advice>& all, Cause cause) {
  std::vector<Advice> own;
  add_worded(own, smaller_micro_batch, "half of --max-tokens, twice --update-freq");
  add_worded(own, shorter_sequences, "--max-source-positions, --max-target-positions, --skip-invalid-size-inputs-valid-test",
             "the longest row decides");
  advise_to(own, "--fp16 --memory-efficient-fp16", "half of weights and activations");
  add_worded(own, gradient_checkpointing, "--checkpoint-activations");
  replace_or_follow(all, std::move(own), cause);
}

struct MakersWord {
  std::string_view of, said;
};

constexpr auto kAmd = std::to_array<MakersWord>({{"nvidia-smi", "rocm-smi"},
                                                 {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"},
                                                 {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"},
                                                 {"CUDA_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL"},
                                                 {"CUBLAS_WORKSPACE_CONFIG=:4096:2", "HIPBLASLT_WORKSPACE_SIZE=8192"},
                                                 {"a MIG slice, a vGPU", "a partition of the card"},
                                                 {"CUDA graphs", "HIP graphs"},
                                                 {"CUDA context", "HIP context"},
                                                 {"the CUDA driver", "the HIP driver"},
                                                 {"cuBLAS", "hipBLAS"},
                                                 {"cuDNN", "MIOpen"}});
constexpr auto kIntel = std::to_array<MakersWord>({{"nvidia-smi", "xpu-smi"},
                                                   {"CUDA_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"},
                                                   {"torch.cuda.", "torch.xpu."},
                                                   {"a MIG slice, a vGPU", "a slice of the card"},
                                                   {"CUDA context", "context"}});
constexpr auto kApple = std::to_array<MakersWord>({{"torch.cuda.", "torch.mps."}, {"nvidia-smi", "Activity Monitor"}});

void rename(std::string& text, std::span<const MakersWord> words) {
  for (const MakersWord& word : words)
    for (size_t at = text.find(word.of); at != std::string::npos; at = text.find(word.of, at + word.said.size()))
      text.replace(at, word.of.size(), word.said);
}

void rename_for(DeviceMaker maker, Diagnosis& diagnosis, std::vector<Advice>& all) {
  if (maker == DeviceMaker::nvidia) return;
  const std::span<const MakersWord> words = maker == DeviceMaker::amd     ? std::span<const MakersWord>(kAmd)
                                            : maker == DeviceMaker::intel ? std::span<const MakersWord>(kIntel)
                                                                          : std::span<const MakersWord>(kApple);
  if (maker != DeviceMaker::amd) drop_saying(all, {"expandable_segments", "max_split_size_mb"});
  if (maker == DeviceMaker::apple) drop(all, {quantize_4bit, optimizer_8bit, fused_loss});
  for (Advice& one : all) {
    rename(one.change, words);
    rename(one.effect, words);
  }
  rename(diagnosis.answer, words);
  for (std::string& remark : diagnosis.remarks) rename(remark, words);
}

// Cards before Ampere: fp16, and no kernel of flash_attention_2.
void without_bfloat16(std::vector<Advice>& all) {
  drop_saying(all, {"bf16_full_eval"});
  constexpr auto kOlder =
      std::to_array<MakersWord>({{"sdpa, or flash_attention_2", "sdpa"},
                                 {"bf16 weights: torch_dtype: bfloat16", "16-bit weights: torch_dtype: float16"},
                                 {"model.to(torch.bfloat16), or torch.autocast", "torch.autocast with float16"},
                                 {"precision=\"bf16-true\"", "precision=\"16-mixed\""}});
  for (Advice& one : all) rename(one.change, kOlder);
}

// A batch of one row has no half.
void put_batch_last(std::vector<Advice>& all) {
  std::ranges::stable_partition(all, [](const Advice& one) { return one.todo != word_of(smaller_micro_batch); });
}

// Nothing is kept for a backward: what makes a backward smaller gives nothing.
void suit_inference(const FailedProgram& program, std::vector<Advice>& all, const StageFound& stage) {
  if (stage.stage != TorchStage::forward && stage.stage != TorchStage::generate && stage.stage != TorchStage::unknown)
    return;
  drop(all, {gradient_checkpointing, optimizer_8bit, fused_loss, lora, optimizer_foreach_off});
  drop_saying(all, {"use_liger_kernel", "fused linear cross entropy", "freeze what need not", "paged"});
  for (Advice& one : all)
    if (one.todo == word_of(smaller_micro_batch)) {
      one.change = "fewer rows at a time: half the batch";
      one.effect = "rows do not share activations";
    }
  if (!program.unguarded || stage.stage == TorchStage::generate) return;
  const auto rows = std::ranges::find(all, word_of(smaller_micro_batch), &Advice::todo);
  if (rows != all.end())
    all.insert(rows + 1, {"with torch.inference_mode(), if it is not there yet", "nothing is kept for a backward", {}});
  if (!program.told || all.front().todo != word_of(smaller_micro_batch)) return;
  put_batch_last(all);  // a test or a demo takes one input at a time
  if (program.demo)
    all.insert(all.begin(), {"16-bit weights: model.half(); what is not at work on the CPU",
                             "a demo holds all its models at once, often in fp32",
                             {}});
}

void put_first(std::vector<Advice>& all, Remedy remedy) {
  const auto found = std::ranges::find(all, word_of(remedy), &Advice::todo);
  if (found != all.end()) std::rotate(all.begin(), found, found + 1);
}

// A state dict that FSDP gathers is gathered in RAM first of all.
void put_sharded_first(std::vector<Advice>& all) {
  const auto found = std::ranges::find_if(all, [](const Advice& one) { return one.change.starts_with("FSDP: offload"); });
  if (found != all.end()) std::rotate(all.begin(), found, found + 1);
}

// vLLM's and SGLang's own settings for weights that do not fit.
std::vector<Advice> advice_for_served_weights() {
  std::vector<Advice> own;
  add_worded(own, quantize_4bit, "a quantized model: AWQ, GPTQ or FP8 weights", "half, or a quarter, of 16-bit weights");
  advise_to(own, "tensor_parallel_size: 2 (--tp 2), or more GPUs", "less of the weights on each device");
  advise_to(own, "cpu_offload_gb: 8 (--cpu-offload-gb)", "that much of the weights stays in RAM; slower");
  return own;
}

// DeepSpeed steps on its own partitions, in fp32.
void suit_zero(std::vector<Advice>& all) {
  drop(all, {optimizer_foreach_off});
  drop_saying(all, {"ZeRO-1"});
  all.insert(all.begin(), {"zero_optimization: offload_optimizer: {device: cpu}; stage 2 or 3 over more GPUs",
                           "states and fp32 weights lie in RAM, or are split; slower",
                           {}});
}

// A whole set of weights on each rank, or weights that are quantized already, has to be shared out.
void suit_ranks(const FailedProgram& program, std::vector<Advice>& all) {
  if (program.quantized) drop(all, {quantize_4bit, bf16_weights});
  if (!program.quantized && !program.of_ranks) return;
  const auto found = std::ranges::find_if(all, [](const Advice& one) { return one.change.starts_with("several GPUs"); });
  if (found != all.end()) std::rotate(all.begin(), found, found + 1);
}

// What is loaded by a program without a trainer need not be trained at all.
void suit_load(std::vector<Advice>& all) {
  for (Advice& one : all)
    if (one.todo == word_of(quantize_4bit) && contains(one.change, "freeze")) {
      one.change = "8-bit or 4-bit weights (bitsandbytes, torchao), or a smaller model";
      one.effect = "half, or a quarter, of 16-bit weights";
    }
}

}  // namespace

void suit(const FailedProgram& program, const OomMessage& message, Filler filler, const StageFound& stage,
          Diagnosis& diagnosis, std::vector<Advice>& all) {
  const bool pytorch = message.source < OomSource::vllm && message.source != OomSource::bitsandbytes;
  const bool of_tensors = pytorch && diagnosis.cause != Cause::driver && diagnosis.cause != Cause::fragmentation;
  const bool works = stage.stage == TorchStage::unknown || stage.stage == TorchStage::forward ||
                     stage.stage == TorchStage::generate || stage.stage == TorchStage::loss;
  const bool serves_weights =
      stage.stage == TorchStage::load || (stage.stage == TorchStage::unknown && program.full_of_weights);
  if (of_tensors && program.serves && serves_weights && is_about_tensors(diagnosis.cause)) {
    replace_or_follow(all, advice_for_served_weights(), diagnosis.cause);
    return rename_for(program.maker, diagnosis, all);
  }
  if (of_tensors && program.serves && works && is_about_tensors(diagnosis.cause)) {
    std::vector<Advice> own;
    add_stage_advice(own, {TorchStage::capture, {}, false, false});
    replace_or_follow(all, std::move(own), diagnosis.cause);
    return rename_for(program.maker, diagnosis, all);
  }
  const bool loads_else = stage.stage == TorchStage::load && program.kind != ProgramKind::diffusion;
  if (of_tensors && loads_else && program.kind != ProgramKind::any) {
    drop(all, {lora, fused_loss, quantize_4bit});
  } else if (of_tensors) {
    switch (program.kind) {
      case ProgramKind::diffusion: suit_diffusion(program, all, filler, stage, diagnosis.cause); break;
      case ProgramKind::vision: suit_vision(program, all, stage, diagnosis.cause); break;
      case ProgramKind::graph: suit_graph(program, all, diagnosis.cause); break;
      case ProgramKind::fairseq: suit_fairseq(all, diagnosis.cause); break;
      case ProgramKind::any: break;
    }
  }
  if (program.inference && pytorch && program.kind == ProgramKind::any) suit_inference(program, all, stage);
  if (stage.stage == TorchStage::load) suit_load(all);
  if (stage.stage == TorchStage::load && program.moved) drop(all, {load_once});  // there is no second copy
  if (stage.stage == TorchStage::load && of_tensors && is_about_tensors(diagnosis.cause)) suit_ranks(program, all);
  if (stage.stage == TorchStage::load && program.restored && of_tensors && is_about_tensors(diagnosis.cause))
    put_first(all, load_once);
  if (program.zero && of_tensors && is_about_tensors(diagnosis.cause)) suit_zero(all);
  if (stage.stage == TorchStage::save && program.fsdp) put_sharded_first(all);
  if (program.checkpointed) drop(all, {gradient_checkpointing});
  if (program.batch_of_one && of_tensors) put_batch_last(all);
  if (program.unix || program.maker != DeviceMaker::nvidia) {
    drop_saying(all, {"Windows:", "Sysmem Fallback"});
    std::erase_if(diagnosis.remarks, [](const std::string& remark) { return contains(remark, "on Windows the page file"); });
  }
  if (program.no_bfloat16) without_bfloat16(all);
  rename_for(program.maker, diagnosis, all);
}

}  // namespace snug
