#include "explain/stack_part.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>

#include "torch/traceback.h"
#include "torch/words.h"

namespace snug {

namespace {

using OneOf = std::initializer_list<std::string_view>;

bool contains_any(std::string_view text, OneOf words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return contains(text, word); });
}

std::string lower(std::string_view text) {
  std::string low(text);
  std::ranges::transform(low, low.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return low;
}

bool any_file(const NamesOfStack& names, OneOf files) {
  return std::ranges::any_of(names.frames, [&](const Frame& frame) { return contains_any(frame.file, files); });
}

bool any_function(const NamesOfStack& names, OneOf functions) {
  return std::ranges::any_of(names.frames, [&](const Frame& frame) { return contains_any(frame.function, functions); });
}

// The innermost function outside of PyTorch.
const Frame* asking(const NamesOfStack& names) {
  const auto frame =
      std::find_if(names.frames.rbegin(), names.frames.rend(), [](const Frame& one) { return !is_pytorchs(one.file); });
  return frame == names.frames.rend() ? nullptr : &*frame;
}

// A product, its mask, its softmax and its dropout; flash and memory-efficient kernels make none of these.
bool makes_scores(const NamesOfStack& names) {
  if (contains_any(names.node, {"SoftmaxBackward", "ScaledDotProduct"})) return contains(names.node, "SoftmaxBackward0");
  const Frame* frame = asking(names);
  if (frame == nullptr) return false;
  const std::string function = lower(frame->function);
  if (!contains_any(function, {"attention", "attn", "attend"}) || contains_any(function, {"flash", "sdpa", "flex"}))
    return false;
  if (any_function(names, {"scaled_dot_product", "linear"})) return false;
  if (names.operators.empty()) return true;
  return contains_any(names.operators.front(),
                      {"softmax", "bmm", "matmul", "masked_fill", "dropout", "where", "mul", "div", "add", "to"});
}

// state_dict() and what wraps it; load_state_dict() is another matter.
bool takes_state(const NamesOfStack& names) {
  return std::ranges::any_of(names.frames, [](const Frame& frame) {
    return contains(frame.function, "state_dict") && !contains(frame.function, "load");
  });
}

// transformers' heads: a product that the outermost class of a model asks for by itself, while all others are asked for by
// modules within modules. A block that is computed again is the outermost, too.
bool is_of_head(const NamesOfStack& names) {
  const auto in_model = std::ranges::count_if(
      names.frames, [](const Frame& frame) { return contains(frame.file, "/modeling_") && frame.function == "forward"; });
  return in_model == 1 && names.node.empty() && any_file(names, {"torch/nn/modules/linear.py"}) &&
         !any_file(names, {"torch/utils/checkpoint.py"});
}

bool makes_logits(const NamesOfStack& names) {
  if (contains_any(names.node, {"LogSoftmaxBackward", "NllLoss", "CrossEntropy", "LogsumexpBackward"})) return true;
  return names.stage == TorchStage::loss || is_of_head(names) ||
         any_function(names, {"cross_entropy", "log_softmax", "selective_log_softmax"});
}

}  // namespace

Part part_of(const NamesOfStack& names) {
  if (any_file(names, {"torch/nn/parallel/distributed.py"}) && !any_function(names, {"forward"})) return Part::buckets;
  if (any_file(names, {"torch/distributed/fsdp/", "torch/distributed/_composable/fsdp", "fairscale/"}) &&
      any_function(names,
                   {"gather", "unshard", "_alloc_padded_unsharded", "init_all_gather_outputs", "alloc_all_gather_outputs"}))
    return Part::gathered;
  if (any_file(names, {"deepspeed/runtime/zero/"}) && any_function(names, {"all_gather", "_allgather"}))
    return Part::gathered;
  if (any_file(names, {"transformers/cache_utils.py"}) ||
      any_function(names, {"update_cache", "_update_cache", "key_value_cache", "kv_cache"}))
    return Part::cache;
  if (any_function(names, {"nested_concat", "torch_pad_and_concatenate", "nested_gather", "gather_for_metrics",
                           "pad_across_processes"}))
    return Part::collected;
  if (any_function(names, {"_init_group", "init_state", "get_state_buffer"})) return Part::states;
  if (any_function(names, {"merge_and_unload", "_unload_and_optionally_merge", "get_delta_weight",
                           "dequantize_module_weight", "clone_tensors_to_save"}) ||
      takes_state(names))
    return Part::copied;
  if (makes_logits(names)) return Part::logits;
  return makes_scores(names) ? Part::scores : Part::whole;
}

}  // namespace snug
