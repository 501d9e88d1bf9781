#include "torch/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "torch/stage_signs.h"
#include "torch/words.h"

namespace snug {

namespace {

using enum TorchStage;

// "Module._call_impl" is known by its last part.
std::string_view plain_name(std::string_view function) {
  const size_t dot = function.rfind('.');
  return dot == std::string_view::npos ? function : function.substr(dot + 1);
}

std::string with_slashes(std::string_view file) {
  std::string path(file);
  std::ranges::replace(path, '\\', '/');
  return path;
}

bool matches(const StageSign& sign, const Frame& frame) {
  if (!sign.function.empty() && plain_name(frame.function) != sign.function) return false;
  return sign.file.empty() || contains(with_slashes(frame.file), sign.file);
}

// The path from the package on.
std::string place(const Frame& frame) {
  std::string path = with_slashes(frame.file);
  const size_t packages = path.rfind("-packages/");
  if (packages != std::string::npos) path = path.substr(packages + 10);
  return frame.line > 0 ? fmt::format("{}:{}", path, frame.line) : path;
}

StageFound told_by(TorchStage stage, const Frame& frame) {
  const std::string_view name = frame.function.empty() ? std::string_view("a line") : std::string_view(frame.function);
  return {stage, fmt::format("{} ({})", name, place(frame)), false, false};
}

// True if a backward runs inside of the call that `frame` makes: then it is no step of the optimizer that failed.
bool leads_to_backward(const std::vector<Frame>& frames, std::vector<Frame>::const_iterator frame) {
  return std::any_of(frame + 1, frames.end(),
                     [](const Frame& inner) { return contains(plain_name(inner.function), "backward"); });
}

std::optional<StageFound> by_names(const std::vector<Frame>& frames) {
  // Lightning runs forward and backward inside of the optimizer's step.
  const bool closure = std::ranges::any_of(frames, [](const Frame& frame) { return contains(frame.function, "closure"); });
  for (const StageSign& sign : stage_signs()) {
    if (closure && sign.stage == optimizer) continue;
    const auto found = std::ranges::find_if(frames, [&](const Frame& frame) { return matches(sign, frame); });
    if (found == frames.end() || (sign.stage == optimizer && leads_to_backward(frames, found))) continue;
    return told_by(sign.stage, *found);
  }
  return std::nullopt;
}

// The words of "_val_one_epoch", in lower case.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : name) {
    if (c == '_') {
      if (!word.empty()) words.push_back(std::move(word));
      word.clear();
    } else {
      word += static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

// What a function that is nobody's in particular does, by the words of its name: "val_one_epoch", "fsdp_save_ckpt",
// "load_model_from_config".
TorchStage by_words(std::string_view name) {
  const std::vector<std::string> words = words_of(plain_name(name));
  if (words.size() < 2) return unknown;
  const auto any = [](std::string_view word, std::initializer_list<std::string_view> of) {
    return std::ranges::find(of, word) != of.end();
  };
  const bool weights = std::ranges::any_of(words, [&](const std::string& word) {
    return any(
        word, {"model", "checkpoint", "checkpoints", "ckpt", "weights", "pretrained", "adapter", "lora", "state", "merged"});
  });
  const bool saves = std::ranges::find(words, "save") != words.end(),
             loads = std::ranges::find(words, "load") != words.end();
  if (weights && saves != loads) return saves ? save : load;
  const auto tries = [&](std::string_view word) {
    return any(word, {"val", "valid", "validate", "validation", "eval", "evaluate", "evaluation"});
  };
  if (tries(words.front()) || tries(words.back()) || (words.front() == "run" && tries(words[1]))) return evaluation;
  const bool attends = std::ranges::any_of(words, [&](const std::string& word) { return any(word, {"attention", "attn"}); });
  return words.back() == "forward" || attends ? forward : unknown;
}

std::optional<StageFound> by_words(const std::vector<Frame>& frames) {
  for (const Frame& frame : frames) {
    if (is_pytorchs(frame.file)) continue;
    const TorchStage stage = by_words(frame.function);
    if (stage != unknown && stage != forward) return told_by(stage, frame);
  }
  const auto found = std::ranges::find_if(frames, [](const Frame& frame) { return by_words(frame.function) == forward; });
  return found == frames.end() ? std::nullopt : std::optional(told_by(forward, *found));
}

// "model_func = model_func.cuda()": something that is named a model or a net is moved.
bool moves_model(std::string_view code) {
  for (const std::string_view call : {".cuda(", ".to("}) {
    const size_t at = code.find(call);
    if (at == std::string_view::npos) continue;
    size_t begin = at;
    while (begin > 0 && (is_digit(code[begin - 1]) || code[begin - 1] == '_' || (code[begin - 1] | 0x20) >= 'a')) --begin;
    const std::vector<std::string> words = words_of(code.substr(begin, at - begin));
    if (std::ranges::any_of(words, [](const std::string& word) {
          return word == "model" || word == "net" || word == "pipe" || word == "pipeline" || word == "unet";
        }))
      return true;
  }
  return false;
}

std::optional<StageFound> by_code(const std::vector<Frame>& frames) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const auto told = [&](TorchStage stage) {
      return StageFound{stage, fmt::format("`{}` ({})", shortened(frame->code, 80), place(*frame)), false, false};
    };
    if (frame->code.empty() || contains(frame->file, "_inductor/")) continue;  // its "model" is any compiled function
    for (const StageCode& sign : stage_codes())
      if (contains(frame->code, sign.code)) return told(sign.stage);
    if (moves_model(frame->code)) return told(load);
  }
  return std::nullopt;
}

// True if modules are called from within a backward: checkpointing repeats their forward.
bool repeats_forward(const Traceback* traceback) {
  if (traceback == nullptr) return false;
  bool inside = false;
  for (const Frame& frame : traceback->frames) {
    const std::string_view name = plain_name(frame.function);
    if (inside && (name == "_call_impl" || name == "unpack_hook" || contains(name, "recompute"))) return true;
    inside = inside || contains(name, "backward");
  }
  return false;
}

bool any_frame(const Traceback* traceback, std::string_view part) {
  return traceback != nullptr && std::ranges::any_of(traceback->frames, [&](const Frame& frame) {
           return contains(frame.function, part) || contains(frame.code, part);
         });
}

// A model that is copied, where nothing tells what for.
std::optional<StageFound> by_copying(const std::vector<Frame>& frames) {
  const auto found = std::ranges::find_if(frames, [](const Frame& frame) {
    return plain_name(frame.function) == "deepcopy" && with_slashes(frame.file).ends_with("/copy.py");
  });
  return found == frames.end() ? std::nullopt : std::optional(told_by(load, *found));
}

// The last lines in front of the message, where no frame was given: nearest first.
StageFound by_lines(std::string_view before) {
  constexpr int kMostLines = 24;
  for (int lines = 0; lines < kMostLines && !before.empty(); ++lines) {
    const size_t begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    const std::string_view line = before.substr(begin);
    for (const StageCode& sign : stage_codes())
      if (line.size() < 4096 && contains(line, sign.code)) {
        size_t first = std::min(line.find_first_not_of(' '), line.size());
        if (line.size() - first > 80) first = line.find(sign.code);
        return {sign.stage, fmt::format("`{}`", shortened(line.substr(first), 80)), false, false};
      }
    if (contains(line, "Loading checkpoint shards: 100%")) return {};  // what came behind it ran out
    if (contains(line, "Loading checkpoint shards")) return {load, "\"Loading checkpoint shards\"", false, false};
    before = before.substr(0, begin == 0 ? 0 : begin - 1);
  }
  return {};
}

}  // namespace

std::string_view name_of(TorchStage stage) {
  switch (stage) {
    case unknown: return "unknown";
    case load: return "load";
    case data: return "data";
    case forward: return "forward";
    case loss: return "loss";
    case backward: return "backward";
    case optimizer: return "optimizer";
    case evaluation: return "evaluation";
    case generate: return "generate";
    case save: return "save";
    case capture: return "capture";
  }
  return "unknown";
}

StageFound stage_of(const Traceback* traceback, std::string_view before) {
  StageFound found;
  if (traceback != nullptr) {
    auto named = by_names(traceback->frames);
    const auto coded = by_code(traceback->frames);
    const auto worded = by_words(traceback->frames);
    // A forward within an evaluation, or while weights are read or written, is told by the outer name.
    if (named && worded && worded->stage != forward) {
      const bool within = named->stage == forward || named->stage == data;
      if (within || (named->stage == loss && worded->stage == evaluation)) named = worded;
    }
    // A forward may hold a line that tells more: `logits.float()`, keys that are appended; other stages are told by their
    // names.
    const bool tells_more = coded && (coded->stage == loss || coded->stage == generate);
    if (named && (named->stage != forward || !tells_more)) {
      found = *named;
    } else if (coded) {
      found = *coded;
    } else if (worded) {
      found = *worded;
    } else {
      found = by_copying(traceback->frames).value_or(StageFound{});
    }
  } else {
    found = by_lines(before);
  }
  found.recompute = found.stage == backward && repeats_forward(traceback);
  found.logits = found.stage == loss || any_frame(traceback, "logits") || any_frame(traceback, "nested_concat") ||
                 any_frame(traceback, "nested_gather") || any_frame(traceback, "lm_head") ||
                 any_frame(traceback, "cross_entropy");
  return found;
}

}  // namespace snug
