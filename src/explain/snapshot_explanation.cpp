#include "explain/snapshot_explanation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "explain/cures.h"
#include "explain/size_text.h"
#include "explain/verdict_text.h"
#include "torch/allocator_rules.h"
#include "torch/words.h"

namespace snug {

namespace {

int devices_of(const Snapshot& snapshot) {
  auto count = static_cast<int64_t>(snapshot.traces.size());
  for (const Segment& segment : snapshot.segments) count = std::max(count, segment.device + 1);
  constexpr int64_t kMost = 1024;
  return static_cast<int>(std::min(count, kMost));
}

int64_t reserved_of(const Snapshot& snapshot, int device) {
  int64_t bytes = 0;
  for (const Segment& segment : snapshot.segments)
    if (segment.device == device) bytes += segment.bytes;
  return bytes;
}

int device_to_explain(const Snapshot& snapshot) {
  const int devices = devices_of(snapshot);
  int best = -1;
  int64_t most = -1;
  for (int device = 0; device < devices; ++device) {
    if (!oom_events(snapshot, device).empty()) return device;
    const int64_t bytes = reserved_of(snapshot, device) + static_cast<int64_t>(snapshot.event_count(device));
    if (bytes > most) best = device, most = bytes;
  }
  if (most > 0) return best;
  if (!snapshot.settings.native)
    throw Error("the snapshot holds no segments and no events: backend:cudaMallocAsync keeps none", "",
                "take backend:cudaMallocAsync out of PYTORCH_ALLOC_CONF");
  throw Error("the snapshot holds no segments and no events", "",
              "call torch.cuda.memory._record_memory_history() before the model is loaded");
}

// Free bytes that only a private pool may use: of CUDA graphs, of torch.cuda.MemPool.
int64_t free_in_private_pools(const Snapshot& snapshot, const Replay& replay) {
  int64_t bytes = 0;
  for (const Segment& segment : snapshot.segments) {
    if (segment.pool == PoolId{} || segment.device != replay.device()) continue;
    const auto there = replay.segments().find(segment.address);
    if (there != replay.segments().end()) bytes += there->second.bytes - there->second.active_bytes;
  }
  return bytes;
}

// Why a request failed although a piece that is large enough was free.
void tell_pools(SnapshotExplanation& e, const Snapshot& snapshot) {
  if (e.moment != Moment::out_of_memory) return;
  if (e.largest_free_bytes >= *e.asked_bytes)
    e.diagnosis.remarks.push_back(fmt::format("the free piece of {} is large enough, but belongs to another stream or pool",
                                              size_text(e.largest_free_bytes)));
  if (snapshot.context(snapshot.event(e.device, e.event)).pool != PoolId{})
    e.diagnosis.remarks.emplace_back(
        "the request came from a private pool; while a CUDA graph is captured nothing cached is given back to make room");
}

void tell_surroundings(SnapshotExplanation& e, const Snapshot& snapshot, const Replay& replay) {
  constexpr int64_t kLeastShare = 50;
  const int64_t kept = free_in_private_pools(snapshot, replay);
  if (kept > 0 && kept >= e.totals.reserved_bytes / kLeastShare)
    e.diagnosis.remarks.push_back(
        fmt::format("{} are free in private pools (CUDA graphs, MemPool), which nothing else may use", size_text(kept)));
  if (snapshot.settings.memory_fraction < 1)
    e.diagnosis.remarks.push_back(
        fmt::format("per_process_memory_fraction allows {:.4g} of the device", snapshot.settings.memory_fraction));
  for (const std::string& key : snapshot.settings.unknown)
    e.diagnosis.remarks.push_back(fmt::format("the allocator's setting {} is not known here: block sizes may differ", key));
}

// The message that PyTorch would have written from these figures; the device's capacity is not in a snapshot.
OomMessage message_of(const SnapshotExplanation& e) {
  OomMessage message;
  message.device = e.device;
  message.tried_bytes = e.asked_bytes;
  message.free_bytes = e.free_bytes;
  message.allocated_bytes = e.totals.allocated_bytes;
  message.reserved_bytes = e.totals.reserved_bytes;
  message.unallocated_bytes = e.totals.unused_bytes();
  return message;
}

std::string sum_line(const SnapshotExplanation& e) {
  return fmt::format("{} reserved = {} in tensors + {} rounding + {} free inside it", size_text(e.totals.reserved_bytes),
                     size_text(e.totals.requested_bytes), size_text(e.totals.rounding_bytes()),
                     size_text(e.totals.unused_bytes()));
}

bool any_file(const Snapshot& snapshot, std::string_view part) {
  for (FrameId id = 0; id < snapshot.stacks.frame_count(); ++id)
    if (contains(snapshot.texts[snapshot.stacks.frame(id).file], part)) return true;
  return false;
}

bool any_function(const Snapshot& snapshot, StackId stack, std::string_view part) {
  return std::ranges::any_of(snapshot.stacks.frames(stack),
                             [&](FrameId id) { return contains(snapshot.texts[snapshot.stacks.frame(id).function], part); });
}

void diagnose_oom(SnapshotExplanation& e, const Snapshot& snapshot, const Replay& replay, StackReader& reader,
                  const Expected* expected) {
  Diagnosis& d = e.diagnosis;
  e.verdict = judge({.moment = {snapshot, replay, reader, e.event, *e.asked_bytes},
                     .stage = e.stage.stage,
                     .free_bytes = e.free_bytes,
                     .course = e.course,
                     .growth = e.growth,
                     .expected = expected,
                     .own_loop = !any_file(snapshot, "transformers/trainer.py"),
                     .in_ddp = any_file(snapshot, "torch/nn/parallel/distributed.py"),
                     .merges = any_function(snapshot, snapshot.event(e.device, e.event).stack, "merge")});
  d.cause = e.verdict.cause;
  d.or_cause = e.verdict.or_cause;
  d.answer = answer_of(e.verdict, e.device, *e.asked_bytes);
  d.unused_bytes = e.totals.unused_bytes();
  if (e.free_bytes) d.missing_bytes = std::max<int64_t>(*e.asked_bytes - *e.free_bytes, 0);
  d.arithmetic.push_back(sum_line(e));
  if (e.free_bytes)
    d.arithmetic.push_back(fmt::format("asked for {}; the device had {} free, the largest free piece inside is {}",
                                       size_text(*e.asked_bytes), size_text(*e.free_bytes),
                                       size_text(e.largest_free_bytes)));
  for (std::string& line : counterfactual_lines(e.verdict)) d.arithmetic.push_back(std::move(line));
  if (e.verdict.filler == Filler::weights && e.free_bytes)
    d.remarks.push_back(
        fmt::format("how large the card is, a snapshot does not tell: if it is larger than {}, other processes "
                    "hold the rest; see `nvidia-smi`",
                    size_text(e.verdict.limit_bytes)));
}

// Of the loop in which most grows; if nothing does, of the outermost that computes.
void find_growth(SnapshotExplanation& e, const Snapshot& snapshot, StackReader& reader) {
  e.loops = loops_at(snapshot, e.device, e.event, reader.paths());
  std::erase_if(e.loops, [](const Loop& loop) { return !loop.computes; });
  if (e.loops.empty()) e.loops.push_back({.begins = annotated_steps(snapshot, e.device)});
  for (const Loop& loop : e.loops) {
    Growth growth = growth_of(snapshot, e.device, loop.begins, reader);
    growth.over = loop.left;
    if (&loop == &e.loops.front() || growth.bytes() > e.growth.bytes()) e.growth = std::move(growth);
  }
  if (e.moment == Moment::out_of_memory) e.course = course_of(snapshot, e.device, e.loops.front().begins, e.event);
}

void tell_peak(SnapshotExplanation& e) {
  e.diagnosis.answer =
      e.events > 0
          ? fmt::format("GPU {} did not run out; at most {} were in tensors", e.device, size_text(e.totals.active_bytes))
          : fmt::format("GPU {} holds {} in tensors; without a history nothing tells whether it ran out", e.device,
                        size_text(e.totals.active_bytes));
  if (e.events == 0)
    e.diagnosis.remarks.emplace_back(
        "the file has no history: call torch.cuda.memory._record_memory_history() before the model is loaded");
  e.diagnosis.arithmetic.push_back(sum_line(e));
  e.diagnosis.unused_bytes = e.totals.unused_bytes();
}

void find_moment(SnapshotExplanation& e, const Snapshot& snapshot) {
  const std::vector<size_t> ooms = oom_events(snapshot, e.device);
  e.ooms = static_cast<int64_t>(ooms.size());
  e.events = snapshot.event_count(e.device);
  if (ooms.empty()) {
    e.event = peak_of(snapshot, e.device).position;
    return;
  }
  e.moment = Moment::out_of_memory;
  e.event = ooms.front();
  const Event& oom = snapshot.event(e.device, e.event);
  e.asked_bytes = oom.bytes;
  e.free_bytes = oom.address;
}

// The stack of the failed allocation; at a peak, of the one that reached it.
StackId stack_at(const SnapshotExplanation& e, const Snapshot& snapshot) {
  if (e.events == 0) return 0;
  if (e.moment == Moment::out_of_memory) return snapshot.event(e.device, e.event).stack;
  return e.event > 0 ? snapshot.event(e.device, e.event - 1).stack : 0;
}

bool calls_modules_before(const SnapshotExplanation& e, const Snapshot& snapshot, CallPaths& paths) {
  for (size_t i = 0; i < e.event; ++i)
    if (const Event& event = snapshot.event(e.device, i);
        event.action == Action::alloc && paths.of(event.stack).calls_module())
      return true;
  return false;
}

void find_place(SnapshotExplanation& e, const Snapshot& snapshot, StackReader& reader, const StackReading& reading) {
  e.stage = reading.stage;
  if (e.stage.stage == TorchStage::unknown && e.has_frames && reading.own) {
    const bool called = calls_modules_before(e, snapshot, reader.paths());
    e.stage = {called ? TorchStage::forward : TorchStage::load,
               called ? "modules were called before, and no backward runs" : "no module was called before", false, false};
  }
  e.own = reading.own;
  e.caller = reading.caller;
}

void tell_growth(SnapshotExplanation& e) {
  if (e.growth.list.empty()) return;
  const Growing& first = e.growth.list.front();
  const std::string where = first.place ? fmt::format(" at {}:{}", first.place->file, first.place->line) : "";
  e.diagnosis.remarks.push_back(fmt::format("memory grows by {} a step{}", size_text(first.bytes_a_step), where));
  if (e.moment == Moment::out_of_memory) return;
  e.advice.insert(
      e.advice.begin(),
      {fmt::format("give back what is kept{}", where),
       "a loss or output kept in a list keeps its whole graph: append x.item() or x.detach().cpu()", first.bytes});
}

// The model's own outputs lie at most one module deep; what is kept from deeper, or from each layer, a hook keeps.
bool is_from_inside(const Growing& growing, StackReader& reader) {
  return growing.blocks_a_step > 1 || reader.modules().path(reader.read(growing.stack).module).size() > 2;
}

Settings settings_at(const SnapshotExplanation& e, const Snapshot& snapshot, StackReader& reader) {
  const StackId stack = snapshot.event(e.device, e.event).stack;
  const Growing* growing = e.growth.list.empty() ? nullptr : &e.growth.list.front();
  return {.checkpointed = any_file(snapshot, "torch/utils/checkpoint.py"),
          .hooked = growing != nullptr && is_from_inside(*growing, reader),
          .evaluated = reader.read(stack).part == Part::collected ||
                       (growing != nullptr && any_function(snapshot, growing->stack, "evaluation_loop")),
          .cast = reader.read(stack).holding == Holding::other || any_function(snapshot, stack, "half") ||
                  any_function(snapshot, stack, "bfloat16") || any_function(snapshot, stack, "float") ||
                  any_function(snapshot, stack, "load_state_dict"),
          .merged = any_function(snapshot, stack, "merge")};
}

// What meets the verdict first, then what helps at such a stage in general.
void find_advice(SnapshotExplanation& e, const Snapshot& snapshot, StackReader& reader) {
  std::vector<Advice> general = advise(message_of(e), e.diagnosis, e.stage);
  if (e.diagnosis.cause == Cause::shortage) {
    Cures cures = cures_of(e.verdict, e.growth, settings_at(e, snapshot, reader));
    if (!cures.remark.empty()) e.diagnosis.remarks.push_back(cures.remark);
    e.advice = std::move(cures.list);
  }
  for (Advice& one : general) {
    if (one.todo == word_of(Remedy::expandable_segments)) one.most_bytes.reset();  // it gives no tensor's memory, but room
    const bool known =
        !one.todo.empty() && std::ranges::any_of(e.advice, [&](const Advice& other) { return other.todo == one.todo; });
    if (!known) e.advice.push_back(std::move(one));
  }
}

}  // namespace

SnapshotExplanation explain_snapshot(const Snapshot& snapshot, const Expected* expected) {
  SnapshotExplanation e;
  e.device = device_to_explain(snapshot);
  find_moment(e, snapshot);
  Replay replay(snapshot, e.device);
  replay.advance_to(e.event);
  e.totals = replay.totals();
  e.largest_free_bytes = replay.largest_free_bytes();
  StackReader reader(snapshot);
  e.has_frames = snapshot.stacks.size() > 1;
  e.holders = holders_of(replay, reader);
  find_growth(e, snapshot, reader);
  find_place(e, snapshot, reader, reader.read(stack_at(e, snapshot)));
  if (e.moment == Moment::out_of_memory) {
    diagnose_oom(e, snapshot, replay, reader, expected);
    find_advice(e, snapshot, reader);
  } else {
    tell_peak(e);
  }
  tell_growth(e);
  tell_pools(e, snapshot);
  tell_surroundings(e, snapshot, replay);
  if (!e.has_frames)
    e.diagnosis.remarks.emplace_back("no frames were recorded: _record_memory_history(stacks=\"all\") tells who allocates");
  return e;
}

}  // namespace snug
