#include "explain/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "explain/cures.h"
#include "explain/failed_program_advice.h"
#include "explain/host_advice.h"
#include "explain/serving.h"
#include "explain/size_text.h"
#include "explain/stack_part.h"
#include "explain/trainer_words.h"
#include "torch/words.h"

namespace snug {

namespace {

// "FAILED tests/test_sft.py::TestSFT::test_train[tiny] - torch.OutOfMemoryError: …": pytest's summary names the test.
std::optional<Frame> failed_test(std::string_view text, size_t at) {
  const size_t begin = text.rfind('\n', at) == std::string_view::npos ? 0 : text.rfind('\n', at) + 1;
  std::string_view line = text.substr(begin, at - begin);
  constexpr std::string_view kFailed = "FAILED ";
  if (!line.starts_with(kFailed)) return std::nullopt;
  line = line.substr(kFailed.size(), std::min(line.find(" - "), line.size()) - std::min(kFailed.size(), line.find(" - ")));
  const size_t colons = line.find("::");
  if (colons == std::string_view::npos) return std::nullopt;
  return Frame{std::string(line.substr(0, colons)), 0, std::string(line.substr(colons + 2, 512)), {}};
}

// The list "At:" that pybind11 prints behind a message tells what Python was doing inside the backward.
const Traceback* list_behind(const std::vector<Traceback>& all, std::string_view text, size_t at) {
  constexpr size_t kNear = 8 << 10;
  for (const Traceback& traceback : all)
    if (traceback.begin > at && traceback.begin - at < kNear && text.substr(traceback.begin).starts_with("At:"))
      return &traceback;
  return nullptr;
}

// Some messages are printed in one place alone.
TorchStage stage_of_source(const OomMessage& message) {
  if (is_of_server(message.source)) return stage_of_server(message);
  if (message.source == OomSource::device_map) return TorchStage::load;
  if (message.source == OomSource::shared_memory || is_death_of_worker(message)) return TorchStage::data;
  return TorchStage::unknown;
}

// Of a message that somebody put above the whole log, the log's own.
const Traceback* traceback_of_repeated(const std::vector<Traceback>& all, std::string_view text, size_t at) {
  constexpr size_t kFront = 48;  // "CUDA out of memory. Tried to allocate 648.00 MiB"
  const std::string_view front = text.substr(at, kFront);
  if (front.size() < kFront || contains(front, "\n")) return nullptr;
  for (size_t next = text.find(front, at + kFront); next != std::string_view::npos; next = text.find(front, next + kFront))
    if (const Traceback* traceback = traceback_of(all, text, next)) return traceback;
  return nullptr;
}

// Of a message that begins the text, the traceback behind it: a title above what was thrown, or another rank's that was
// cut short. Not one that ends with an exception of its own.
const Traceback* traceback_behind(const std::vector<Traceback>& all, std::string_view text, const OomMessage& message,
                                  size_t at) {
  constexpr size_t kNear = 2 << 10;
  if (all.empty() || all.front().begin < at) return nullptr;
  const Traceback& next = all.front();
  if (next.begin - at > kNear) return nullptr;
  const std::string_view told = text.substr(next.begin, next.end - next.begin);
  const size_t line =
      told.find_last_not_of('\n') == std::string_view::npos ? 0 : told.rfind('\n', told.find_last_not_of('\n'));
  const std::string_view last = line == std::string_view::npos ? told : told.substr(line);
  const bool same = contains(last, "out of memory");
  return (contains(last, "Error: ") || !message.has_figures()) && !same ? nullptr : &next;
}

// "- **Node Type:** UNETLoader": ComfyUI's report names the node that failed.
StageFound stage_of_node(std::string_view text) {
  constexpr std::string_view kNode = "Node Type:** ";
  const size_t at = text.find(kNode);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + kNode.size(), 128);
  const std::string_view node = rest.substr(0, rest.find_first_of(" \n"));
  const bool loads = contains(node, "Loader");
  if (!loads && !contains(node, "Sampler") && !contains(node, "VAEDecode")) return {};
  return {loads ? TorchStage::load : TorchStage::forward, fmt::format("ComfyUI's node {}", node), false, false};
}

// A server's log around a message that somebody put above it: graphs were being captured.
StageFound stage_of_server_log(std::string_view text) {
  for (const std::string_view line :
       {"Capturing cudagraphs", "Capturing the model for CUDA graphs", "Capture cuda graph begin"})
    if (contains(text, line) && !contains(text, "Graph capturing finished") && !contains(text, "Capture cuda graph end"))
      return {TorchStage::capture, fmt::format("\"{}\"", line), false, false};
  return {};
}

template <class T>
std::optional<Frame> copy_of(const T* frame) {
  return frame == nullptr ? std::nullopt : std::optional<Frame>(*frame);
}

// Finds stage and frames; tells whose loop it is, and what kind of program.
Trainer find_place(Explanation& e, FailedProgram& program) {
  const std::string_view text = e.log.around;
  const auto all = read_tracebacks(text);
  const Traceback* traceback = traceback_of(all, text, e.log.at);
  if (traceback == nullptr) traceback = traceback_of_repeated(all, text, e.log.at);
  const Traceback* list = list_behind(all, text, e.log.at);
  e.stage = stage_of(traceback, text.substr(0, e.log.at));
  if (traceback == nullptr && e.stage.stage == TorchStage::unknown) {
    traceback = traceback_behind(all, text, e.log.cause(), e.log.at);
    if (traceback != nullptr) e.stage = stage_of(traceback, {});
  }
  if (e.stage.stage == TorchStage::unknown) e.stage = stage_of_node(text);
  if (traceback == nullptr && e.stage.stage == TorchStage::unknown) e.stage = stage_of_server_log(text);
  if (list != nullptr && list != traceback && e.stage.stage == TorchStage::backward) e.stage.recompute = true;
  if (traceback != nullptr) {
    e.own = copy_of(traceback->own());
    e.caller = copy_of(traceback->caller());
  }
  // Of a process that was killed only its launcher's frames are shown.
  if (e.log.cause().source == OomSource::killed && !e.own) {
    e.caller.reset();
    if (e.stage.stage == TorchStage::unknown) e.stage = stage_of(nullptr, text.substr(0, e.log.at));
  }
  if (e.stage.stage == TorchStage::unknown) e.stage.stage = stage_of_source(e.log.cause());
  if (e.stage.by.empty() && e.stage.stage != TorchStage::unknown) e.stage.by = "the message itself";
  if (!e.own && list != nullptr) e.own = copy_of(list->own());
  if (!e.own) e.own = failed_test(text, e.log.at);
  if (traceback != nullptr) e.filler = filler_of(part_of({traceback->frames, {}, {}, e.stage.stage}), e.stage.stage);
  program = failed_program_of(e.log.cause(), e.stage, traceback, text);
  return trainer_of(traceback);
}

// What meets the shortage that the frames tell of goes before what helps at such a stage in general.
void put_first(Filler filler, bool checkpointed, std::vector<Advice>& advice) {
  if (filler == Filler::none) return;
  const Remedy first = remedies_of(filler, {.checkpointed = checkpointed}).front();
  const auto known = std::ranges::find(advice, word_of(first), &Advice::todo);
  if (known == advice.end()) return;
  std::rotate(advice.begin(), known, known + 1);
}

// A loop of the user's own has its batch in one place, and blocks to be checkpointed in many.
void put_batch_first(std::vector<Advice>& advice) {
  const auto blocks = std::ranges::find(advice, word_of(Remedy::gradient_checkpointing), &Advice::todo);
  const auto batch =
      std::find_if(blocks, advice.end(), [](const Advice& one) { return one.todo == word_of(Remedy::smaller_micro_batch); });
  if (batch != advice.end()) std::rotate(blocks, batch, batch + 1);
}

}  // namespace

std::optional<Explanation> explain_log(OomLog log) {
  if (!log.first) return std::nullopt;
  Explanation e;
  e.log = std::move(log);
  e.diagnosis = diagnose(e.log);
  FailedProgram program;
  Trainer trainer = find_place(e, program);
  if (program.kind != ProgramKind::any && trainer == Trainer::transformers) trainer = Trainer::own_loop;
  e.advice = advise(e.log.cause(), e.diagnosis, e.stage);
  if (e.diagnosis.cause == Cause::shortage) put_first(e.filler, program.checkpointed, e.advice);
  if (trainer != Trainer::transformers) put_batch_first(e.advice);
  put_in_words_of(trainer, e.advice);
  suit(program, e.log.cause(), e.filler, e.stage, e.diagnosis, e.advice);
  e.summary = read_memory_summary(e.log.around);
  return e;
}

Diagnosis diagnose(const MemorySummary& s) {
  Diagnosis d;
  const auto text = [](const std::optional<int64_t>& bytes) { return bytes ? size_text(*bytes) : std::string("unknown"); };
  const std::string device = s.device >= 0 ? fmt::format("GPU {}", s.device) : std::string("the GPU");
  d.answer = fmt::format("{}: at most {} in tensors, {} reserved", device, text(s.allocated.peak), text(s.reserved.peak));
  if (s.ooms && *s.ooms > 0) d.answer += fmt::format("; it ran out {} time{}", *s.ooms, *s.ooms == 1 ? "" : "s");
  if (s.allocated.now && s.reserved.now) {
    d.unused_bytes = std::max<int64_t>(*s.reserved.now - *s.allocated.now, 0);
    d.arithmetic.push_back(fmt::format("now {} reserved - {} in tensors = {} unused", text(s.reserved.now),
                                       text(s.allocated.now), size_text(*d.unused_bytes)));
  }
  if (s.allocated.peak && s.reserved.peak)
    d.arithmetic.push_back(fmt::format("peak {} reserved, {} in tensors", text(s.reserved.peak), text(s.allocated.peak)));
  if (s.non_releasable.now)
    d.arithmetic.push_back(fmt::format("{} of the unused are pieces that cannot be returned (peak {})",
                                       text(s.non_releasable.now), text(s.non_releasable.peak)));
  if (s.requested.now && s.allocated.now && *s.allocated.now >= *s.requested.now)
    d.arithmetic.push_back(fmt::format("rounding of sizes costs {}", size_text(*s.allocated.now - *s.requested.now)));
  if (s.retries && *s.retries > 0)
    d.remarks.push_back(
        fmt::format("the cache was emptied {} time{} to go on: the device was at its limit, and steps were slow", *s.retries,
                    *s.retries == 1 ? "" : "s"));
  return d;
}

}  // namespace snug
