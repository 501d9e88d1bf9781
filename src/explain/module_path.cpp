#include "explain/module_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "torch/words.h"

namespace snug {

namespace {

constexpr size_t kMostModules = 64, kLongestName = 200;

using Name = std::pair<std::string_view, std::string_view>;

// Operators, as torch/nn/functional.py and at::_ops name them, and the modules that call them.
constexpr auto kByOperator = std::to_array<Name>({
    {"layer_norm", "LayerNorm"},
    {"group_norm", "GroupNorm"},
    {"rms_norm", "RMSNorm"},
    {"instance_norm", "InstanceNorm"},
    {"batch_norm", "BatchNorm"},
    {"local_response_norm", "LocalResponseNorm"},
    {"relu", "ReLU"},
    {"relu6", "ReLU6"},
    {"gelu", "GELU"},
    {"silu", "SiLU"},
    {"mish", "Mish"},
    {"elu", "ELU"},
    {"celu", "CELU"},
    {"selu", "SELU"},
    {"glu", "GLU"},
    {"prelu", "PReLU"},
    {"leaky_relu", "LeakyReLU"},
    {"hardtanh", "Hardtanh"},
    {"hardswish", "Hardswish"},
    {"hardsigmoid", "Hardsigmoid"},
    {"softplus", "Softplus"},
    {"softmax", "Softmax"},
    {"log_softmax", "LogSoftmax"},
    {"sigmoid", "Sigmoid"},
    {"tanh", "Tanh"},
    {"multi_head_attention_forward", "MultiheadAttention"},
    {"embedding", "Embedding"},
    {"embedding_bag", "EmbeddingBag"},
    {"cross_entropy", "CrossEntropyLoss"},
    {"nll_loss", "NLLLoss"},
    {"kl_div", "KLDivLoss"},
    {"mse_loss", "MSELoss"},
    {"l1_loss", "L1Loss"},
    {"smooth_l1_loss", "SmoothL1Loss"},
    {"huber_loss", "HuberLoss"},
    {"binary_cross_entropy", "BCELoss"},
    {"binary_cross_entropy_with_logits", "BCEWithLogitsLoss"},
    {"ctc_loss", "CTCLoss"},
});

// Files of torch/nn/modules that hold one kind, or kinds that are told apart no further.
constexpr auto kByFile = std::to_array<Name>({
    {"linear", "Linear"},
    {"sparse", "Embedding"},
    {"dropout", "Dropout"},
    {"conv", "Conv"},
    {"batchnorm", "BatchNorm"},
    {"instancenorm", "InstanceNorm"},
    {"container", "Sequential"},
    {"flatten", "Flatten"},
    {"pixelshuffle", "PixelShuffle"},
    {"upsampling", "Upsample"},
    {"padding", "Pad"},
    {"pooling", "Pool"},
    {"normalization", "Norm"},
    {"activation", "Activation"},
    {"loss", "Loss"},
    {"rnn", "RNN"},
    {"transformer", "Transformer"},
});

// Adapters of peft, by their folder.
constexpr auto kByTuner = std::to_array<Name>({{"lora", "LoRA"},
                                               {"adalora", "AdaLoRA"},
                                               {"ia3", "IA3"},
                                               {"loha", "LoHa"},
                                               {"lokr", "LoKr"},
                                               {"oft", "OFT"},
                                               {"boft", "BOFT"},
                                               {"vera", "VeRA"}});

// Modules that only pass on what they are given, and what stands between a call and its forward.
constexpr auto kPlumbing = std::to_array<std::string_view>(
    {"-packages/accelerate/", "-packages/deepspeed/runtime/", "peft/peft_model.py", "peft/tuners/tuners_utils.py",
     "transformers/utils/", "transformers/modeling_layers.py", "/lib/python3"});

template <size_t N>
std::optional<std::string_view> look_up(const std::array<Name, N>& names, std::string_view key) {
  const auto found = std::ranges::find(names, key, &Name::first);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

std::string slashed(std::string_view file) {
  std::string path(file);
  std::ranges::replace(path, '\\', '/');
  return path;
}

std::string_view last_part(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Names come from a file that anyone may have written.
std::string shortened(std::string_view name) {
  if (name.size() <= kLongestName) return std::string(name);
  name.remove_prefix(name.size() - kLongestName);
  while (!name.empty() && (static_cast<unsigned char>(name.front()) & 0xC0U) == 0x80U)
    name.remove_prefix(1);  // whole letters
  return std::string(name);
}

// What stands behind `before` in `path`, up to the next '/' or '.'; nothing if it does not stand there.
std::optional<std::string_view> part_behind(std::string_view path, std::string_view before) {
  const size_t at = path.rfind(before);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = path.substr(at + before.size());
  return rest.substr(0, rest.find_first_of("/."));
}

bool is_plumbing(std::string_view path) {
  const bool installed = contains(path, "-packages/");
  return path.starts_with('<') || is_pytorchs(path) || std::ranges::any_of(kPlumbing, [&](std::string_view part) {
           return contains(path, part) && !(part.starts_with("/lib/") && installed);
         });
}

// "LlamaMLP.forward", as qualified names have it, and Unsloth's "LlamaAttention_fast_forward" tell the class.
std::optional<std::string_view> class_of(std::string_view function) {
  if (function.empty()) return std::nullopt;
  if (function.ends_with(".forward")) {
    function.remove_suffix(8);
    const size_t dot = function.rfind('.');
    return dot == std::string_view::npos ? function : function.substr(dot + 1);
  }
  if (std::isupper(static_cast<unsigned char>(function.front())) == 0 || !function.ends_with("_forward"))
    return std::nullopt;
  function.remove_suffix(8);
  if (function.ends_with("_fast")) function.remove_suffix(5);
  return function;
}

bool is_forward(std::string_view function) { return function == "forward" || class_of(function).has_value(); }

class PathReader {
 public:
  PathReader(std::span<const Frame> frames, std::span<const std::string> operators)
      : frames_(frames), operators_(operators) {
    files_.reserve(frames.size());
    for (const Frame& frame : frames) files_.push_back(slashed(frame.file));
  }

  ModulePath read() {
    for (size_t i = 0; i < frames_.size() && path_.size() < kMostModules; ++i) take(i);
    return std::move(path_);
  }

 private:
  void take(size_t i) {
    const std::string_view file = files_[i], function = frames_[i].function;
    if (contains(file, "torch/nn/modules/module.py")) {
      called_ = called_ || function.ends_with("_call_impl");
      return;
    }
    const bool applied = i > 0 && contains(files_[i - 1], "torch/autograd/function.py");  // an autograd.Function's forward
    const bool forward = called_ && !applied && is_forward(function);
    const std::optional<std::string> kind = forward ? kind_of(i) : std::nullopt;
    const bool is_module = forward && (kind || forwards_itself(file));
    if (is_module)
      path_.push_back({shortened(kind.value_or(std::string(last_part(file)))), kind.has_value(), shortened(file),
                       shortened(caller_file_), caller_line_});
    if (is_module) called_ = false;
    if (called_ || (!is_module && is_plumbing(file))) return;  // between a call and its forward stand decorators and hooks
    caller_file_ = file;
    caller_line_ = frames_[i].line;
  }

  // Of transformers/modeling_layers.py the classes' forwards are modules, its __call__ is not.
  static bool forwards_itself(std::string_view file) {
    return contains(file, "transformers/modeling_layers.py") || !is_plumbing(file);
  }

  std::optional<std::string> kind_of(size_t i) const {
    const std::string_view file = files_[i];
    if (const auto named = class_of(frames_[i].function)) return std::string(*named);
    if (const auto tuner = part_behind(file, "peft/tuners/"); tuner && !contains(file, "tuners_utils"))
      return std::string(look_up(kByTuner, *tuner).value_or(*tuner));
    if (contains(file, "bitsandbytes/nn/modules.py")) return quantized_kind(i);
    if (file.ends_with("transformers/activations.py")) return operator_kind(i);
    const auto stem = part_behind(file, "torch/nn/modules/");
    if (!stem) return std::nullopt;
    const bool one_kind = *stem == "linear" || *stem == "dropout" || *stem == "container" || *stem == "conv";
    if (auto kind = one_kind ? std::nullopt : operator_kind(i)) return kind;
    return std::string(look_up(kByFile, *stem).value_or(*stem));
  }

  // By the operator that this frame, or what it calls, reaches first.
  std::optional<std::string> operator_kind(size_t i) const {
    for (size_t k = i + 1; k < frames_.size(); ++k)
      if (contains(files_[k], "torch/nn/functional.py"))
        if (const auto kind = look_up(kByOperator, frames_[k].function)) return std::string(*kind);
    for (const std::string& name : operators_)
      if (const auto kind = look_up(kByOperator, name)) return std::string(*kind);
    return std::nullopt;
  }

  std::string quantized_kind(size_t i) const {
    for (size_t k = i + 1; k < frames_.size(); ++k) {
      if (!contains(files_[k], "bitsandbytes/autograd/")) continue;
      if (frames_[k].function == "matmul_4bit") return "Linear4bit";
      if (frames_[k].function == "matmul") return "Linear8bitLt";
    }
    return "bitsandbytes";
  }

  std::span<const Frame> frames_;
  std::span<const std::string> operators_;
  std::vector<std::string> files_;
  ModulePath path_;
  bool called_ = false;  // a module was called, and its forward has not come yet
  std::string_view caller_file_;
  int64_t caller_line_ = 0;
};

// `module`, and where it calls `next`: a line of its own file, or of a helper's. Its file's name is not said `again`.
std::string calling_text(const ModuleCall& module, const ModuleCall& next, bool again) {
  if (next.caller_line <= 0) return module.name;
  if (next.caller_file == module.file) return fmt::format("{}:{}", again ? "" : module.name, next.caller_line);
  return fmt::format("{} ({}:{})", module.name, last_part(next.caller_file), next.caller_line);
}

}  // namespace

ModulePath module_path(std::span<const Frame> frames, std::span<const std::string> operators) {
  return PathReader(frames, operators).read();
}

std::string text_of(const ModulePath& path) {
  std::string text;
  std::string_view shown;  // the file that `text` ends with
  for (size_t i = 0; i < path.size(); ++i) {
    const ModuleCall& module = path[i];
    const bool again = !module.kind && module.name == shown;
    if (i + 1 == path.size()) return again ? text : text + (i > 0 ? " › " : "") + module.name;
    text += fmt::format("{}{}", i > 0 ? " › " : "", calling_text(module, path[i + 1], again));
    shown = module.kind ? std::string_view() : module.name;
  }
  return text;
}

}  // namespace snug
