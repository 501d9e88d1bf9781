#include "torch/snapshot.h"

#include "base/error.h"
#include "torch/allocator_config.h"
#include "torch/snapshot_builder.h"

namespace snug {
namespace {

const char* const kNoSnapshot = "give the file that torch.cuda.memory._dump_snapshot wrote";

// At the end of the file: what has no offset is said of the whole.
Snapshot finished(SnapshotBuilder& builder, PickleValue root, const std::string& where) {
  try {
    return builder.finish(root);
  } catch (const Error& error) {
    throw Error(error.problem(), where, error.mend());
  }
}

}  // namespace

Snapshot read_snapshot(const std::filesystem::path& path) {
  SnapshotBuilder builder;
  const PickleValue root = read_pickle(path, builder);
  return finished(builder, root, path.string());
}

Snapshot read_snapshot(std::span<const std::byte> pickle, const std::string& where) {
  SnapshotBuilder builder;
  const PickleValue root = read_pickle(pickle, where, builder);
  return finished(builder, root, where);
}

Snapshot SnapshotBuilder::finish(PickleValue root) {
  const PickleValue segments = root.is(PickleKind::list) ? root : entry(root, "segments");  // a bare list: memory_snapshot()
  if (!segments.is(PickleKind::list)) throw Error("the pickle holds no memory snapshot (no \"segments\")", "", kNoSnapshot);
  snapshot_.segments = this->segments(segments);
  if (root.is(PickleKind::dict)) {
    snapshot_.traces = traces(entry(root, "device_traces"));
    snapshot_.annotations = annotations(entry(root, "external_annotations"));
    snapshot_.settings = settings(entry(root, "allocator_settings"));
    snapshot_.host_segments = host_segments(entry(root, "host_segments"));
    snapshot_.host_traces = traces(entry(root, "host_traces"));
  }
  return std::move(snapshot_);
}

PickleValue SnapshotBuilder::entry(PickleValue dict, std::string_view key) const {
  const Folded form = folded(dict);
  if (!dict.is(PickleKind::dict) || form.form() != Form::plain) return {};
  const std::vector<PickleValue>& pairs = plain_[form.index()];
  for (size_t i = pairs.size(); i > 0; i -= 2)  // the last of two equal keys counts
    if (pairs[i - 2].is(PickleKind::text) && snapshot_.texts[text_of(pairs[i - 2])] == key) return pairs[i - 1];
  return {};
}

// The numbers of a list's records.
std::vector<uint32_t> SnapshotBuilder::records(PickleValue list, Form form, const char* what) const {
  const auto wrong = [&] { return Error(std::string("a list of ") + what + " holds something else", "", kNoSnapshot); };
  std::vector<uint32_t> numbers;
  const Folded folded_list = folded(list);
  if (list.is(PickleKind::none)) return numbers;
  if (!list.is(PickleKind::list)) throw wrong();
  if (folded_list.form() == Form::empty) return numbers;
  if (folded_list.form() == Form::range) {
    const Range range = ranges_[folded_list.index()];
    if (range.form != form) throw wrong();
    for (uint32_t i = 0; i < range.count; ++i) numbers.push_back(range.first + i);
    return numbers;
  }
  if (folded_list.form() != Form::plain) throw wrong();
  for (const PickleValue item : plain_[folded_list.index()]) {
    const Folded record = folded(item);
    if (!item.is(PickleKind::dict) || record.form() != form) throw wrong();
    numbers.push_back(record.index());
  }
  return numbers;
}

std::vector<PickleValue> SnapshotBuilder::values(PickleValue list) const {
  const Folded form = folded(list);
  if (!list.is(PickleKind::list) || form.form() != Form::plain) return {};
  return plain_[form.index()];
}

std::vector<Segment> SnapshotBuilder::segments(PickleValue list) const {
  std::vector<Segment> segments;
  size_t blocks = 0;
  for (const uint32_t number : records(list, Form::segment, "segments")) {
    segments.push_back(segments_[number]);
    Segment& segment = segments.back();
    int64_t address = segment.address;
    for (const uint32_t block : records(segment_blocks_[number], Form::block, "blocks")) {
      if (++blocks > blocks_.size()) throw Error("two segments share a block", "", kNoSnapshot);
      segment.blocks.push_back(blocks_[block]);
      if (segment.blocks.back().address < 0) segment.blocks.back().address = address;  // PyTorch 2.0 does not say
      address += segment.blocks.back().bytes;
    }
  }
  return segments;
}

EventRange SnapshotBuilder::trace(PickleValue list) {
  const Folded form = folded(list);
  if (form.form() == Form::range && ranges_[form.index()].form == Form::event)
    return {ranges_[form.index()].first, ranges_[form.index()].count};
  const EventRange copy{snapshot_.events.size(), 0};
  const std::vector<uint32_t> numbers = records(list, Form::event, "events");  // named more than once, or out of order
  for (const uint32_t number : numbers) snapshot_.events.push_back(snapshot_.events[number]);
  return {copy.first, numbers.size()};
}

// A list of traces, or one trace.
std::vector<EventRange> SnapshotBuilder::traces(PickleValue lists) {
  std::vector<EventRange> traces;
  if (folded(lists).form() == Form::range) return {trace(lists)};
  if (!lists.is(PickleKind::none) && !lists.is(PickleKind::list)) throw Error("device_traces is no list", "", kNoSnapshot);
  size_t copied = 0;
  for (const PickleValue list : values(lists)) {
    traces.push_back(trace(list));
    copied += traces.back().count;
    if (copied > snapshot_.events.size()) throw Error("traces share their events", "", kNoSnapshot);
  }
  return traces;
}

std::vector<Annotation> SnapshotBuilder::annotations(PickleValue list) const {
  std::vector<Annotation> annotations;
  for (const PickleValue item : values(list)) {
    const std::string_view stage = snapshot_.texts[text_of(entry(item, "stage"))];
    if (stage != "START" && stage != "END") continue;
    annotations.push_back({stage == "START", text_of(entry(item, "name")), number(entry(item, "device"), 0),
                           number(entry(item, "time_us"), 0)});
  }
  return annotations;
}

std::vector<HostSegment> SnapshotBuilder::host_segments(PickleValue list) const {
  std::vector<HostSegment> segments;
  for (const PickleValue item : values(list)) {
    const PickleValue size = entry(item, "size");
    segments.push_back({number(entry(item, "address"), 0),
                        number(size.is(PickleKind::none) ? entry(item, "total_size") : size, 0),
                        number(entry(item, "active"), 0) != 0});
  }
  return segments;
}

RecordedSettings SnapshotBuilder::settings(PickleValue dict) const {
  RecordedSettings settings;
  if (!dict.is(PickleKind::dict)) return settings;
  settings.known = true;
  const PickleValue text = entry(dict, "PYTORCH_CUDA_ALLOC_CONF");
  settings.text = text_of(text.is(PickleKind::none) ? entry(dict, "PYTORCH_ALLOC_CONF") : text);
  AllocatorConfig config = read_allocator_config(snapshot_.texts[settings.text]);
  settings.max_split_bytes = number(entry(dict, "max_split_size"), config.max_split_bytes.value_or(-1));
  settings.max_non_split_rounding_bytes = config.max_non_split_rounding_bytes.value_or(0);
  settings.large_segment_bytes = config.large_segment_bytes.value_or(0);
  settings.memory_fraction = config.memory_fraction.value_or(1);
  const PickleValue threshold = entry(dict, "garbage_collection_threshold");
  settings.garbage_collection_threshold =
      threshold.is(PickleKind::real) ? reals_[threshold.index()] : config.garbage_collection_threshold.value_or(0);
  settings.expandable_segments = number(entry(dict, "expandable_segments"), config.expandable_segments.value_or(false)) != 0;
  const PickleValue divisions = entry(dict, "roundup_power2_divisions");
  const std::array<int64_t, 16> otherwise = config.roundup_divisions.value_or(std::array<int64_t, 16>{});
  for (size_t i = 0; i < settings.roundup_divisions.size(); ++i)
    settings.roundup_divisions[i] = number(entry(divisions, std::to_string(size_t{1} << i)), otherwise[i]);
  settings.native = config.native;
  settings.unknown = std::move(config.unknown);
  return settings;
}

}  // namespace snug
