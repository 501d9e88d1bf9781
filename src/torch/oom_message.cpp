#include "torch/oom_message.h"

#include <algorithm>
#include <array>

#include "torch/oom_figures.h"
#include "torch/oom_wordings.h"
#include "torch/words.h"

namespace snug {

namespace {

constexpr size_t kLongestMessage = size_t{8} << 10;
constexpr int kMostMessageLines = 160;

// Lines that begin something else, so that they are not the next line of a wrapped sentence.
bool begins_another(std::string_view line) {
  constexpr std::array<std::string_view, 12> kStarts = {
      "Traceback", "File \"", "At:",  "During handling", "frame #",    "Exception",
      "----",      "====",    "~~~~", "During ",         "The above ", "wandb:"};
  return line.empty() || std::ranges::any_of(kStarts, [&](std::string_view start) { return line.starts_with(start); });
}

// True if the sentence has come to its end, so that later lines are not its own.
bool is_whole(OomSource source, std::string_view text) {
  const auto has = [&](std::string_view phrase) {
    for (size_t at = text.find(phrase.substr(0, 3)); at != std::string_view::npos;
         at = text.find(phrase.substr(0, 3), at + 1))
      if (phrase_length(text.substr(at), phrase) > 0) return true;
    return false;
  };
  switch (source) {
    case OomSource::torch_async: return has("memory fraction)") && text.ends_with("iB");
    case OomSource::vllm: return !has("Free memory on device") || has("used by other processes");
    case OomSource::ggml: return std::ranges::count(text, '\n') >= 3;  // what it was for stands in the next lines
    case OomSource::torch_mps: return has("on private pool") || has("on shared pool");
    case OomSource::torch_cuda:
    case OomSource::torch_hip:
    case OomSource::torch_xpu: break;
    case OomSource::cpu_allocator: return has("bytes");
    case OomSource::jax: return has("bytes") || has("hbm capacity");
    case OomSource::paddle: return has("memory is only");
    case OomSource::numpy: return has("iB for");
    default: return true;
  }
  if (has("by PyTorch but unallocated")) return true;
  const size_t open = text.find("PU ");  // "(GPU 0; … reserved in total by PyTorch)"
  if (open == 0 || open == std::string_view::npos || (open >= 2 && text[open - 2] != '(')) return false;
  return text.find(')', open) != std::string_view::npos;
}

// Some sentences begin before the words by which they are known: "Allocation on device 0 …", "unable to mmap 280 bytes …".
size_t sentence_begin(std::string_view text, size_t at, OomSource source) {
  const std::string_view first = source == OomSource::torch_async ? "Allocation on"
                                 : source == OomSource::host      ? "unable to mmap"
                                 : source == OomSource::ggml      ? "allocating "
                                 : source == OomSource::vllm      ? "Error: "
                                                                  : "";
  if (first.empty()) return at;
  const size_t from = at - std::min(at, source == OomSource::torch_async ? size_t{64} : size_t{512});
  const std::string_view before = text.substr(from, at - from);
  const size_t start = before.rfind(first);
  if (source == OomSource::vllm && start != std::string_view::npos && !contains(before.substr(start), "\n"))
    return from + start + first.size();
  return start != std::string_view::npos && !contains(before.substr(start), "\n") ? from + start : at;
}

// Of PyTorch's caching allocators, which share their sentence.
bool is_caching(OomSource source) {
  return source == OomSource::torch_cuda || source == OomSource::torch_hip || source == OomSource::torch_xpu;
}

// Whether PyTorch's sentence goes on behind its first words: prose that holds them ends with its line.
bool goes_on(OomSource source, std::string_view text) {
  if (!is_caching(source)) return true;
  constexpr std::string_view kRequest = "ried to allocate";
  const std::string_view front = text.substr(0, 160);
  for (size_t at = front.find('r'); at < 96; at = front.find('r', at + 1))
    if (phrase_length(front.substr(at), kRequest) > 0) return true;
  return false;
}

// The byte behind the sentence that begins at `at`: to the end of its line, and of the lines that it was wrapped into.
size_t sentence_end(std::string_view text, size_t at, OomSource source) {
  const std::string_view rest = text.substr(at, kLongestMessage);
  size_t end = std::min(rest.find('\n'), rest.size());
  const int most = !goes_on(source, rest) ? 1 : is_host(source) ? 3 : kMostMessageLines;
  for (int lines = 1; lines < most && end + 1 < rest.size() && !is_whole(source, rest.substr(0, end)); ++lines) {
    const size_t begin = end + 1;
    const size_t next = std::min(rest.find('\n', begin), rest.size());
    const std::string_view line = rest.substr(begin, next - begin);
    const size_t lead = std::min(line.find_first_not_of(' '), line.size());
    if (begins_another(line.substr(lead)) || contains(line, "Error: ") || contains(line, "out of memory.")) break;
    end = next;
  }
  return at + end;
}

bool says(std::string_view text, std::string_view word) { return contains(text, word); }

// By the wording, and by the exception's name in front of it. The advice behind the figures may stand on lines of its own.
std::string era_of(OomSource source, std::string_view exception, std::string_view text) {
  if (source == OomSource::thc) return "up to 1.0";
  if (!is_caching(source) || says(text, "(NPU ") || says(text, "(MLU ")) return {};  // makers of others kept the older words
  const bool old_name = exception.ends_with("torch.cuda.OutOfMemoryError: ");
  const bool new_name = exception.ends_with("torch.OutOfMemoryError: ");
  if (says(text, "PYTORCH_ALLOC_CONF")) return "2.9 or later";
  if (says(text, "docs.pytorch.org")) return "2.8 or later";
  if (says(text, "capacty")) return "2.1";
  if (says(text, "capacity of")) return old_name ? "2.2-2.4" : new_name ? "2.5-2.8" : "2.2-2.8";
  if (source == OomSource::torch_xpu) return {};  // Intel's extension kept the older words
  if (says(text, "If reserved memory is >>"))
    return old_name ? "1.13-2.0" : exception.ends_with("RuntimeError: ") ? "1.10-1.12" : "1.10-2.0";
  if (says(text, "reserved in total")) return old_name ? "1.13-2.0" : "1.4-1.9";
  if (says(text, "cached)")) return "1.0-1.3";
  return {};
}

// The sentence and what of its advice was wrapped into the next lines.
std::string_view with_advice(std::string_view text, size_t begin, size_t end) {
  constexpr size_t kAdvice = 600;
  const std::string_view more = text.substr(end, kAdvice);
  return text.substr(begin, end - begin + std::min(more.find("out of memory."), more.size()));
}

// The sentence without the indent that all the lines have which it was wrapped into: they may break in the midst of a
// number.
std::string without_indent(std::string_view text) {
  std::string sentence(text);
  size_t indent = std::string::npos;
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    indent = std::min(indent, std::min(text.find_first_not_of(' ', at + 1), text.size()) - at - 1);
  for (size_t at = sentence.find('\n'); indent > 0 && at != std::string::npos; at = sentence.find('\n', at + 1))
    sentence.erase(at + 1, indent);
  return sentence;
}

}  // namespace

std::string_view name_of(OomSource source) {
  switch (source) {
    case OomSource::torch_cuda: return "pytorch-cuda";
    case OomSource::torch_hip: return "pytorch-rocm";
    case OomSource::torch_xpu: return "pytorch-xpu";
    case OomSource::torch_mps: return "pytorch-mps";
    case OomSource::torch_async: return "pytorch-cudaMallocAsync";
    case OomSource::thc: return "pytorch-thc";
    case OomSource::caffe2: return "caffe2";
    case OomSource::cuda: return "cuda-driver";
    case OomSource::cublas: return "cublas";
    case OomSource::cudnn: return "cudnn";
    case OomSource::nccl: return "nccl";
    case OomSource::bitsandbytes: return "bitsandbytes";
    case OomSource::vllm: return "vllm";
    case OomSource::sglang: return "sglang";
    case OomSource::ggml: return "ggml";
    case OomSource::device_map: return "device-map";
    case OomSource::jax: return "jax";
    case OomSource::tensorflow: return "tensorflow";
    case OomSource::paddle: return "paddle";
    case OomSource::cpu_allocator: return "pytorch-cpu";
    case OomSource::numpy: return "numpy";
    case OomSource::host: return "host";
    case OomSource::shared_memory: return "shared-memory";
    case OomSource::killed: return "killed";
  }
  return "unknown";
}

bool is_host(OomSource source) { return source >= OomSource::cpu_allocator; }

OomMessage read_oom_message(std::string_view text, size_t at, OomSource source, size_t& end) {
  OomMessage message;
  message.source = source;
  end = std::max(sentence_end(text, at, source), at);
  const size_t begin = sentence_begin(text, at, source);
  const std::string sentence = without_indent(text.substr(begin, end - begin));
  read_figures(message, sentence);
  message.era = era_of(source, text.substr(0, begin), with_advice(text, begin, end));
  bool blank = false;
  for (const char c : sentence) {
    const bool is_space = c == '\n' || c == ' ';
    if (!is_space || !blank) message.text += is_space ? ' ' : c;
    blank = is_space;
  }
  while (message.text.ends_with(' ')) message.text.pop_back();
  return message;
}

}  // namespace snug
