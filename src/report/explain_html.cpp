#include "report/explain_html.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_map>

#include "base/base64.h"
#include "base/error.h"
#include "explain/phases.h"
#include "report/explain_parts.h"
#include "report/explain_report.h"
#include "torch/lifetimes.h"

namespace snug {

extern const std::string_view kExplainText, kExplainStyle, kExplainScript;  // of web/explain and web/common

namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kReserved = 0x80000000;                 // Record::kind of reserved memory …
constexpr uint32_t kExpandable = 1, kSmall = 2;            // … with what it is
constexpr size_t kMostPhases = 20'000, kMostOoms = 1'000;  // drawn
constexpr size_t kMostStacks = 20'000, kMostFrames = 24;   // told with their frames; frames of each, from the innermost
constexpr size_t kBatch = size_t{3} << 13, kBatchesAPiece = 16;  // records; a multiple of three needs no padding in base64

// A life as web/explain/data.js reads it: little-endian, 32 bytes.
struct Record {
  uint32_t first = 0, asked = 0, end = 0;  // positions: events played
  uint32_t kind = 0;                       // of a block: its place in `stacks`
  double address = 0, bytes = 0;           // whole numbers
};
static_assert(sizeof(Record) == 32 && std::numeric_limits<double>::is_iec559);

uint32_t narrow(size_t position) {
  if (position > std::numeric_limits<uint32_t>::max()) throw Error("the trace has more events than a page can hold");
  return static_cast<uint32_t>(position);
}

// Records as base64, in script elements of some 16 MB: engines bound the length of a text.
class RecordWriter {
 public:
  explicit RecordWriter(const PageSink& sink) : sink_(sink) { batch_.reserve(kBatch); }

  void add(const Record& record) {
    batch_.push_back(record);
    ++count_;
    if (batch_.size() == kBatch) flush();
  }

  void finish() {
    if (!batch_.empty()) flush();
    if (batches_ % kBatchesAPiece != 0) sink_("</script>\n");
  }

  size_t count() const { return count_; }

 private:
  void flush() {
    text_.clear();
    append_base64(text_, std::as_bytes(std::span(batch_)));
    if (batches_ % kBatchesAPiece == 0) sink_(R"(<script type="text/plain" class="records">)");
    sink_(text_);
    if (++batches_ % kBatchesAPiece == 0) sink_("</script>\n");
    batch_.clear();
  }

  const PageSink& sink_;
  std::vector<Record> batch_;
  std::string text_;
  size_t count_ = 0, batches_ = 0;
};

// The stacks that records name, in the order in which they come.
class StackNumbers {
 public:
  uint32_t number_of(StackId stack, bool older) {
    const auto [place, is_new] = numbers_.try_emplace(uint64_t{stack} * 2 + (older ? 1 : 0), narrow(stacks_.size()));
    if (is_new) stacks_.emplace_back(stack, older);
    return place->second;
  }

  const std::vector<std::pair<StackId, bool>>& list() const { return stacks_; }

 private:
  std::unordered_map<uint64_t, uint32_t> numbers_;
  std::vector<std::pair<StackId, bool>> stacks_;
};

std::string dumped(const Json& json) {
  return without_markup(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

size_t write_records(const Snapshot& snapshot, int device, StackNumbers& stacks, const PageSink& sink) {
  RecordWriter writer(sink);
  const LifeSinks sinks{
      .block =
          [&](const BlockLife& life) {
            writer.add({narrow(life.first), narrow(life.asked), narrow(life.end), stacks.number_of(life.stack, life.older),
                        static_cast<double>(life.address), static_cast<double>(life.bytes)});
          },
      .reserved =
          [&](const ReservedLife& life) {
            const uint32_t kind = kReserved | (life.expandable ? kExpandable : 0) | (life.small ? kSmall : 0);
            writer.add({narrow(life.first), narrow(life.end), narrow(life.end), kind, static_cast<double>(life.address),
                        static_cast<double>(life.bytes)});
          }};
  tell_lives(snapshot, device, sinks);
  writer.finish();
  return writer.count();
}

Json ooms_json(const Snapshot& snapshot, int device) {
  Json list = Json::array();
  for (const size_t i : oom_events(snapshot, device)) {
    if (list.size() == kMostOoms) break;
    const Event& event = snapshot.event(device, i);
    list.push_back({i, event.bytes, event.address});
  }
  return list;
}

// [[name, first event, end]] of those with an event.
Json phases_json(const Snapshot& snapshot, int device) {
  Json list = Json::array();
  for (const Phase& phase : phases_of(snapshot, device)) {
    if (list.size() == kMostPhases) break;
    if (phase.first < phase.end) list.push_back({std::string(snapshot.texts[phase.name]), phase.first, phase.end});
  }
  return list;
}

// [[holding, line and, if it is known, module]].
Json holders_json(const HolderTable& table, const ModuleTree& modules) {
  Json list = Json::array();
  for (const Holder& holder : table.list()) {
    std::string text = text_of(holder);
    if (holder.module != 0) text += " · " + text_of(modules.path(holder.module));
    list.push_back({static_cast<int>(holder.holding), text});
  }
  return list;
}

Json facts_json(const SnapshotExplanation& e) {
  Json list = Json::array();
  for (const auto& [label, text] : facts_of(e)) list.push_back({label, text});
  return list;
}

// "stacks": [[holder, older, frames…]], "frames": texts. Only frames of Python; those of C++ say little and are long.
void write_stacks(const Snapshot& snapshot, const StackNumbers& stacks, HolderTable& table, const PageSink& sink) {
  std::unordered_map<FrameId, size_t> numbers;
  std::vector<FrameId> used;
  std::string line = "\"stacks\":[";
  for (const auto& [stack, older] : stacks.list()) {
    line += fmt::format("{}[{},{}", line.ends_with('[') ? "" : ",\n", table.index_of(stack, older), older ? 1 : 0);
    size_t shown = 0;
    if (stacks.list().size() <= kMostStacks) {
      for (const FrameId id : snapshot.stacks.frames(stack)) {
        if (!is_python_file(snapshot.texts[snapshot.stacks.frame(id).file])) continue;
        if (shown++ == kMostFrames) break;
        const auto [place, is_new] = numbers.try_emplace(id, used.size());
        if (is_new) used.push_back(id);
        line += fmt::format(",{}", place->second);
      }
    }
    sink(line + "]");
    line.clear();
  }
  sink(line + "],\n\"frames\":[");
  for (size_t i = 0; i < used.size(); ++i) {
    const StackFrame& frame = snapshot.stacks.frame(used[i]);
    const std::string text =
        fmt::format("{}:{} in {}", snapshot.texts[frame.file], frame.line, snapshot.texts[frame.function]);
    sink((i == 0 ? "" : ",\n") + dumped(Json(text)));
  }
  sink("],\n");
}

void write_data(const Snapshot& snapshot, const SnapshotExplanation& e, const std::string& file, const StackNumbers& stacks,
                size_t records, const PageSink& sink) {
  StackReader reader(snapshot);
  HolderTable table(reader);
  sink("{");
  write_stacks(snapshot, stacks, table, sink);
  Json holdings = Json::array();
  for (int i = 0; i < kHoldingCount; ++i) holdings.push_back(name_of(static_cast<Holding>(i)));
  const Json rest{{"file", file},
                  {"records", records},
                  {"holdings", holdings},
                  {"holders", holders_json(table, reader.modules())},
                  {"ooms", ooms_json(snapshot, e.device)},
                  {"phases", phases_json(snapshot, e.device)},
                  {"steps", e.growth.begins},
                  {"facts", facts_json(e)},
                  {"explanation", explain_json(e)}};
  sink(dumped(rest).substr(1));
}

}  // namespace

void write_explain_html(const Snapshot& snapshot, const SnapshotExplanation& explanation, const std::string& file,
                        const PageSink& sink) {
  StackNumbers stacks;
  size_t records = 0;
  write_page(kExplainText, sink, [&](std::string_view name) {
    if (name == "style") {
      sink(kExplainStyle);
    } else if (name == "script") {
      sink(kExplainScript);
    } else if (name == "records") {
      records = write_records(snapshot, explanation.device, stacks, sink);
    } else if (name == "data") {
      write_data(snapshot, explanation, file, stacks, records, sink);
    } else {
      throw std::logic_error("the page has no part '" + std::string(name) + "'");
    }
  });
}

}  // namespace snug
