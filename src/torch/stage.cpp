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

std::optional<StageFound> by_names(const std::vector<Frame>& frames) {
  // Lightning runs forward and backward inside of the optimizer's step.
  const bool closure = std::ranges::any_of(frames, [](const Frame& frame) { return contains(frame.function, "closure"); });
  for (const StageSign& sign : stage_signs()) {
    if (closure && sign.stage == optimizer) continue;
    const auto found = std::ranges::find_if(frames, [&](const Frame& frame) { return matches(sign, frame); });
    if (found == frames.end()) continue;
    const std::string_view name = found->function;
    return StageFound{sign.stage, fmt::format("{} ({})", name.empty() ? std::string_view("a line") : name, place(*found)),
                      false, false};
  }
  return std::nullopt;
}

std::optional<StageFound> by_code(const std::vector<Frame>& frames) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    for (const StageCode& sign : stage_codes())
      if (!frame->code.empty() && contains(frame->code, sign.code))
        return StageFound{sign.stage, fmt::format("`{}` ({})", frame->code.substr(0, 80), place(*frame)), false, false};
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

// The last lines in front of the message, where no frame was given: nearest first.
StageFound by_lines(std::string_view before) {
  constexpr int kMostLines = 24;
  for (int lines = 0; lines < kMostLines && !before.empty(); ++lines) {
    const size_t begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    const std::string_view line = before.substr(begin);
    for (const StageCode& sign : stage_codes())
      if (line.size() < 4096 && contains(line, sign.code)) {
        const size_t first = std::min(line.find_first_not_of(' '), line.size());
        return {sign.stage, fmt::format("`{}`", line.substr(first, 80)), false, false};
      }
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
    const auto named = by_names(traceback->frames);
    const auto coded = by_code(traceback->frames);
    // A forward may hold a line that tells more: `logits.float()`; other stages are told by their names.
    if (named && (named->stage != forward || !coded || coded->stage != loss)) {
      found = *named;
    } else if (coded) {
      found = *coded;
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
