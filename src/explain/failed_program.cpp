#include "explain/failed_program.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "torch/words.h"

namespace snug {

namespace {

using enum ProgramKind;

struct KindSign {
  ProgramKind kind;
  std::string_view part;  // of a file's path, with slashes, in lower case
};

constexpr auto kKindSigns = std::to_array<KindSign>({
    {graph, "torch_geometric/"},
    {graph, "torch_scatter/"},
    {graph, "torch_sparse/"},
    {graph, "/dgl/"},
    {graph, "/cogdl/"},
    {graph, "graphstorm"},
    {fairseq, "fairseq/"},
    {fairseq, "fairseq_cli/"},
    {diffusion, "stable-diffusion"},
    {diffusion, "stable_diffusion"},
    {diffusion, "comfyui"},
    {diffusion, "/comfy/"},
    {diffusion, "fooocus"},
    {diffusion, "invokeai"},
    {diffusion, "/diffusers/"},
    {diffusion, "k_diffusion/"},
    {diffusion, "k-diffusion/"},
    {diffusion, "diffusionmodules/"},
    {diffusion, "wan2gp"},
    {diffusion, "sd_hijack"},
    {vision, "ultralytics/"},
    {vision, "yolo"},
    {vision, "detectron"},
    {vision, "mmdet/"},
    {vision, "mmseg/"},
    {vision, "mmcv/"},
    {vision, "mmengine/"},
    {vision, "nnunet"},
    {vision, "torchvision/"},
    {vision, "/timm/"},
    {vision, "monai/"},
});

// Of lines without a file.
constexpr auto kTextSigns = std::to_array<KindSign>({
    {fairseq, "fairseq.trainer"},
    {fairseq, "metaseq.trainer"},
    {fairseq, "ran out of memory with exception"},
    {fairseq, "ran out of memory on gpu #"},
    {fairseq, "warning: ran out of memory"},
    {graph, "edge_index"},
    {graph, "node_feat"},
    {graph, "num_nodes"},
    {graph, "ogbn-"},
    {graph, "raw_adj"},
    {diffusion, "stable diffusion"},
    {diffusion, "stable-diffusion"},
    {diffusion, "comfyui"},
    {diffusion, "ksampler"},
    {diffusion, "prompt executed in"},
    {diffusion, "ran out of memory on your gpu"},
    {diffusion, "vae decoding"},
    {diffusion, "diffusionpipeline"},
    {diffusion, "diffusers"},
    {diffusion, "black-forest-labs"},
    {diffusion, "_t2v"},
    {diffusion, "-t2v"},
    {diffusion, "_i2v"},
    {diffusion, "-i2v"},
    {diffusion, "text to video"},
    {diffusion, "image to video"},
    {diffusion, "sample_video"},
    {diffusion, "--video-size"},
    {diffusion, "--video-length"},
    {diffusion, "生成视频"},
    {diffusion, "hunyuanvideo"},
    {vision, "kohya"},  // a trainer of models that make pictures
    {vision, "sd-scripts"},
    {vision, "box_loss"},
    {vision, "d2.utils"},
    {vision, "mmengine"},
    {vision, "sliding_window_inference"},
});

std::string lowered(std::string_view text) {
  std::string low(text);
  std::ranges::transform(low, low.begin(),
                         [](char c) { return c == '\\' ? '/' : static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c); });
  return low;
}

bool trains(TorchStage stage) {
  return stage == TorchStage::loss || stage == TorchStage::backward || stage == TorchStage::optimizer ||
         stage == TorchStage::evaluation || stage == TorchStage::save;
}

// A language model's trainer may hold a network for pictures, which is then not what fills the device.
bool trains_language(const Traceback& traceback) {
  return std::ranges::any_of(traceback.frames, [](const Frame& frame) {
    const std::string file = lowered(frame.file);
    return contains(file, "transformers/trainer") || contains(file, "/trl/") || contains(file, "llamafactory") ||
           contains(file, "/swift/") || contains(file, "axolotl") || contains(file, "unsloth");
  });
}

ProgramKind kind_of(const Traceback& traceback) {
  for (auto frame = traceback.frames.rbegin(); frame != traceback.frames.rend(); ++frame) {
    const std::string file = lowered(frame->file), code = lowered(frame->code);
    for (const KindSign& sign : kKindSigns)
      if (contains(file, sign.part)) return sign.kind;
    for (const KindSign& sign : kTextSigns)
      if (sign.kind == graph && contains(code, sign.part)) return graph;
  }
  return any;
}

// By the frames, the innermost first, then by the rest of the text.
ProgramKind kind_of(const OomMessage& message, const Traceback* traceback, std::string_view near) {
  if (traceback != nullptr) {
    if (trains_language(*traceback)) return any;
    if (const ProgramKind kind = kind_of(*traceback); kind != any) return kind;
  }
  const std::string low = lowered(near);
  for (const KindSign& sign : kTextSigns)
    if (contains(low, sign.part)) return sign.kind;
  // ComfyUI alone sets cudaMallocAsync unasked.
  return message.source == OomSource::torch_async && traceback == nullptr ? diffusion : any;
}

bool any_frame(const Traceback* traceback, std::string_view function) {
  return traceback != nullptr &&
         std::ranges::any_of(traceback->frames, [&](const Frame& frame) { return contains(frame.function, function); });
}

// Whether a call of torch.no_grad's kind holds the frames, and no step of a training does within it.
bool is_inference(const StageFound& stage, const Traceback* traceback) {
  if (traceback == nullptr || trains(stage.stage) || any_frame(traceback, "closure")) return false;
  const auto held = std::ranges::find_if(traceback->frames, [](const Frame& frame) {
    return contains(frame.function, "decorate_context") || contains(frame.code, "no_grad()") ||
           contains(frame.code, "inference_mode()");
  });
  if (held == traceback->frames.end()) return false;
  return std::none_of(held, traceback->frames.end(), [](const Frame& frame) {
    return contains(frame.function, "train") || contains(frame.function, "compute_loss") ||
           contains(lowered(frame.file), "torch/optim");
  });
}

// What answers people and reads, speaks or draws for them trains nothing.
bool is_of_server_or_pipeline(const Frame& frame) {
  constexpr std::array<std::string_view, 12> kPackages = {"/gradio/",    "/streamlit/",
                                                          "/flask/",     "/uvicorn/",
                                                          "/fastapi/",   "sentence_transformers/sentencetransformer.py",
                                                          "/whisper/",   "/whisperx/",
                                                          "/starlette/", "transformers/pipelines/",
                                                          "/easyocr/",   "sentence_transformers/cross_encoder/"};
  const std::string file = lowered(frame.file);
  return std::ranges::any_of(kPackages, [&](std::string_view package) { return contains(file, package); });
}

// "/home/me/run_inference.py", "batch_infer": one of the words between underscores says that nothing is trained.
bool says_inference(std::string_view name) {
  constexpr std::array<std::string_view, 17> kWords = {
      "infer",   "inference", "demo",  "predict", "prediction", "predictor", "transcribe", "synthesize", "chat",
      "upscale", "inpaint",   "webui", "app",     "server",     "tts",       "detect",     "generate"};
  std::string low = lowered(name);
  std::ranges::replace(low, '-', '_');
  for (size_t begin = 0; begin <= low.size();) {
    const size_t end = std::min(low.find('_', begin), low.size());
    if (std::ranges::find(kWords, std::string_view(low).substr(begin, end - begin)) != kWords.end()) return true;
    begin = end + 1;
  }
  return false;
}

std::string_view stem_of(std::string_view file) {
  const size_t slash = file.find_last_of("/\\");
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return file.substr(0, file.rfind('.'));
}

bool is_known_for_inference(const StageFound& stage, const Traceback* traceback) {
  if (traceback == nullptr || trains(stage.stage)) return false;
  const bool trained = std::ranges::any_of(traceback->frames, [](const Frame& frame) {
    return contains(lowered(frame.function), "train") || contains(stem_of(lowered(frame.file)), "train") ||
           contains(frame.function, "compute_loss") || contains(lowered(frame.file), "torch/optim");
  });
  return !trained && std::ranges::any_of(traceback->frames, [](const Frame& frame) {
    const std::string file = lowered(frame.file);
    if (is_of_server_or_pipeline(frame)) return true;
    if (contains(file, "-packages/") || is_pytorchs(file))
      return says_inference(frame.function.substr(frame.function.rfind('.') + 1)) && !is_pytorchs(file);
    const std::string_view stem = stem_of(file);
    return stem == "test" || stem == "eval" || says_inference(stem) || says_inference(frame.function);
  });
}

bool steps_by_deepspeed(const StageFound& stage, const Traceback* traceback) {
  return stage.stage == TorchStage::optimizer && traceback != nullptr &&
         std::ranges::any_of(traceback->frames,
                             [](const Frame& frame) { return contains(frame.file, "deepspeed/runtime/"); });
}

bool reads_to_device(const Traceback* traceback) {
  return any_frame(traceback, "_cuda_deserialize") || any_frame(traceback, "default_restore_location") ||
         any_frame(traceback, "_load_optimizer_and_scheduler") ||
         (traceback != nullptr && std::ranges::any_of(traceback->frames, [](const Frame& frame) {
            return contains(frame.function, "load_state_dict") && contains(lowered(frame.file), "torch/optim");
          }));
}

bool is_checkpointed(const StageFound& stage, const Traceback* traceback) {
  return stage.recompute || (traceback != nullptr && std::ranges::any_of(traceback->frames, [](const Frame& frame) {
                               return contains(lowered(frame.file), "torch/utils/checkpoint.py") ||
                                      contains(frame.code, "_gradient_checkpointing_func");
                             }));
}

// Cards before Ampere have no arithmetic of bfloat16. They are named, or known by what they have: no newer card has as much.
bool has_no_bfloat16(const OomMessage& message, std::string_view near) {
  constexpr std::array<std::string_view, 12> kNames = {"Tesla T4", "Tesla V100", "V100-SXM", "V100-PCI",
                                                       "Tesla P",  "Tesla K80",  "Tesla M",  "GTX 10",
                                                       "GTX 16",   "TITAN X",    "TITAN V",  "RTX 20"};
  if (std::ranges::any_of(kNames, [&](std::string_view name) { return contains(near, name); })) return true;
  if (message.source != OomSource::torch_cuda || !message.capacity_bytes) return false;
  struct Range {
    double least, most;  // GiB
  };
  constexpr std::array<Range, 7> kRanges = {{{14.55, 14.77},    // T4
                                             {15.74, 15.79},    // V100 of 16 GB
                                             {31.71, 31.76},    // V100 of 32 GB
                                             {15.885, 15.905},  // P100
                                             {11.16, 11.18},    // K80, 1080 Ti
                                             {10.91, 10.93},    // 1080 Ti
                                             {10.75, 10.77}}};  // 2080 Ti
  const double gib = static_cast<double>(*message.capacity_bytes) / 1073741824.0;
  return std::ranges::any_of(kRanges, [&](const Range& range) { return gib >= range.least && gib <= range.most; });
}

DeviceMaker maker_of(const OomMessage& message) {
  if (message.source == OomSource::torch_hip) return DeviceMaker::amd;
  if (message.source == OomSource::torch_xpu) return DeviceMaker::intel;
  if (message.source == OomSource::torch_mps) return DeviceMaker::apple;
  const bool amd = std::ranges::any_of(std::initializer_list<std::string_view>{"HIP", "hipError", "hipMalloc", "MIOPEN"},
                                       [&](std::string_view word) { return contains(message.text, word); });
  return amd ? DeviceMaker::amd : DeviceMaker::nvidia;
}

// What only vLLM's and SGLang's logs and commands hold.
bool is_servers_text(std::string_view low) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"vllm serve", "vllm.entrypoints", "-packages/vllm/", "(enginecore",
                                              "rayworkerwrapper", "vllmworker", "worker_base.py:", "sglang.launch_server",
                                              "-packages/sglang/", "/sglang/srt/", "capturing cudagraphs", "\"vllm/v1/",
                                              "\"vllm/worker/"},
      [&](std::string_view word) { return contains(low, word); });
}

// vLLM's cache and all else end below that share of the device; only weights do not ask. Graphs are captured after them.
bool is_full_of_weights(const OomMessage& message) {
  return message.allocated_bytes && message.capacity_bytes && message.private_pool_bytes.value_or(0) == 0 &&
         static_cast<double>(*message.allocated_bytes) > 0.97 * static_cast<double>(*message.capacity_bytes);
}

// "batch size is only 1", "--batch_size 1", "Instantaneous batch size per device = 1".
bool tells_batch_of_one(std::string_view low) {
  constexpr std::array<std::string_view, 7> kWords = {"batch size", "batch_size",      "batch-size",  "batchsize",
                                                      " --bs",      "samples_per_gpu", "imgs_per_gpu"};
  for (const std::string_view word : kWords)
    for (size_t at = low.find(word); at != std::string_view::npos; at = low.find(word, at + 1)) {
      std::string_view rest = low.substr(at + word.size(), 24);
      for (const std::string_view filler : {" per device", "_per_gpu", "_per_device", " is", " only", " of", " to"})
        if (rest.starts_with(filler)) rest.remove_prefix(filler.size());
      const size_t value = rest.find_first_not_of(" =:\"");
      if (value == std::string_view::npos || rest[value] != '1') continue;
      const std::string_view behind = rest.substr(value + 1, 2);
      const bool goes_on =
          !behind.empty() && (is_digit(behind[0]) || (behind.size() > 1 && behind[0] == '.' && is_digit(behind[1])));
      if (!goes_on) return true;
    }
  return false;
}

bool has_any(std::string_view low, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return contains(low, word); });
}

// What somebody ran who trains nothing, in his words or as a command.
bool tells_inference(std::string_view low) {
  if (has_any(low, {"training", "train.py", "to train", "finetun", "fine-tun", "fine tun", "backward"})) return false;
  return has_any(low, {"python test.py", "run inference", "running inference", "run the test code", "run the demo",
                       "running gradio", "gradio_", "_demo.py", "demo.py", "infer.py", "inference.py", "predict.py"});
}

bool is_servers(const Traceback* traceback) {
  return traceback != nullptr && std::ranges::any_of(traceback->frames, [](const Frame& frame) {
           return contains(frame.file, "-packages/vllm/") || contains(frame.file, "-packages/sglang/");
         });
}

bool any_file(const Traceback* traceback, std::string_view part) {
  return traceback != nullptr &&
         std::ranges::any_of(traceback->frames, [&](const Frame& frame) { return contains(lowered(frame.file), part); });
}

// Whether weights are moved to the device one by one: by Module.to, or by a reader that holds one at a time.
bool moves_weights(const Traceback* traceback) {
  return traceback != nullptr && std::ranges::any_of(traceback->frames, [](const Frame& frame) {
           const bool moves = frame.function == "_apply" || frame.function == "to" || frame.function == "convert" ||
                              frame.function.ends_with(".to") || frame.function.ends_with("._apply");
           return (moves && contains(lowered(frame.file), "torch/nn/modules/module.py")) ||
                  frame.function == "set_module_tensor_to_device" || frame.function == "_load_state_dict_into_meta_model" ||
                  frame.function == "_prepare_one";
         });
}

bool shows_unix(const Traceback* traceback) {
  return traceback != nullptr &&
         std::ranges::any_of(traceback->frames, [](const Frame& frame) { return frame.file.starts_with('/'); });
}

}  // namespace

FailedProgram failed_program_of(const OomMessage& message, const StageFound& stage, const Traceback* traceback,
                                std::string_view text) {
  constexpr size_t kNear = size_t{16} << 10;
  const size_t at = std::min(text.find(message.text.substr(0, 24)), text.size());
  const std::string_view near = text.substr(at - std::min(at, kNear), 2 * kNear);
  FailedProgram program;
  program.kind = kind_of(message, traceback, near);
  const bool trained = trains(stage.stage) || any_frame(traceback, "train");
  if (program.kind == diffusion && trained) program.kind = vision;  // batches of pictures
  program.maker = maker_of(message);
  const bool guarded = is_inference(stage, traceback);
  program.checkpointed = is_checkpointed(stage, traceback);
  program.no_bfloat16 = has_no_bfloat16(message, near);
  program.unix = shows_unix(traceback);
  program.moved = moves_weights(traceback);
  program.zero = steps_by_deepspeed(stage, traceback);
  program.restored = reads_to_device(traceback);
  program.of_ranks = program.moved && message.rank.has_value();
  const std::string low = lowered(near);
  const bool alone = traceback == nullptr || (!trained && !trains_language(*traceback));
  program.told = alone && !trains(stage.stage) && tells_inference(low);
  program.demo = program.told && has_any(low, {"demo", "gradio"});
  program.inference = guarded || program.told || is_known_for_inference(stage, traceback);
  program.unguarded = program.inference && !guarded;
  program.serves = message.by_vllm || is_servers(traceback) || (alone && is_servers_text(low));
  program.full_of_weights = program.serves && is_full_of_weights(message);
  program.quantized = any_file(traceback, "bitsandbytes/nn/") || has_any(low, {"load_in_8bit=true", "load_in_4bit=true"});
  program.batch_of_one = tells_batch_of_one(low);
  program.fsdp = contains(low, "/fsdp/") || contains(low, "fsdp_wrapped") || contains(low, "fullyshardeddataparallel");
  program.offloaded = contains(low, "--lowvram") || contains(low, "--medvram") || contains(low, "low_vram");
  return program;
}

}  // namespace snug
