#include "torch/snapshot_builder.h"

#include <array>

#include "base/error.h"
#include "base/hash.h"
#include "base/quote.h"

namespace snug {
namespace {

constexpr uint32_t kMostRecords = uint32_t{1} << 26U;
constexpr size_t kMostPlain = size_t{1} << 24U;  // values that are not folded
constexpr int64_t kMostSnapshotBytes = int64_t{1} << 50U;

const char* const kFewer = "record fewer events: torch.cuda.memory._record_memory_history(max_entries=…)";

Action action_of(std::string_view name) {
  static constexpr std::array<std::string_view, 10> kNames = {
      "alloc",       "free_requested", "free_completed", "segment_alloc", "segment_free",
      "segment_map", "segment_unmap",  "snapshot",       "oom",           "annotate"};
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Action>(i);
  return Action::unknown;
}

uint32_t next_record(size_t size, const char* what) {
  if (size >= kMostRecords) throw Error("more than " + std::to_string(kMostRecords) + " " + what, "", kFewer);
  return static_cast<uint32_t>(size);
}

}  // namespace

SnapshotBuilder::SnapshotBuilder() {
  for (const std::string_view key : kKeyNames) snapshot_.texts.intern(key);  // SnapshotKey + 1 is its text
}

// --- values ---

PickleValue SnapshotBuilder::wide_integer(std::span<const std::byte>) { return {PickleKind::wide_integer, 0}; }

PickleValue SnapshotBuilder::real(double value) {
  count_plain(1);
  reals_.push_back(value);
  return {PickleKind::real, static_cast<int64_t>(reals_.size()) - 1};
}

PickleValue SnapshotBuilder::text(std::string_view text) { return {PickleKind::text, snapshot_.texts.intern(text)}; }

PickleValue SnapshotBuilder::bytes(std::string_view) { return {PickleKind::bytes, 0}; }

// A pair of integers is a pool, and there are few: even numbers; other tuples are kept: odd ones.
PickleValue SnapshotBuilder::tuple(PickleItems items) {
  if (items.size() == 2 && items[0].is(PickleKind::integer) && items[1].is(PickleKind::integer)) {
    const PoolId pair{items[0].payload(), items[1].payload()};
    const auto [found, added] = pair_numbers_.try_emplace(pair, static_cast<uint32_t>(pairs_.size()));
    if (added) {
      count_plain(8);
      pairs_.push_back(pair);
    }
    return {PickleKind::tuple, int64_t{found->second} * 2};
  }
  return {PickleKind::tuple, int64_t{plain(items).index()} * 2 + 1};
}

PickleValue SnapshotBuilder::frozen_set(PickleItems) { return {PickleKind::set, 0}; }

PickleValue SnapshotBuilder::list() {
  const uint32_t number = next_record(lists_.size(), "lists");
  lists_.push_back({});
  return {PickleKind::list, number};
}

PickleValue SnapshotBuilder::dict() {
  const uint32_t number = next_record(dicts_.size(), "dicts");
  dicts_.push_back({});
  return {PickleKind::dict, number};
}

PickleValue SnapshotBuilder::set() { return {PickleKind::set, 0}; }

void SnapshotBuilder::insert(PickleValue, PickleItems) {}

std::string SnapshotBuilder::name(PickleValue text) const {
  return std::string(snapshot_.texts[static_cast<TextId>(text.index())]);
}

// --- lists ---

SnapshotBuilder::Folded SnapshotBuilder::folded(PickleValue container) const {
  if (container.is(PickleKind::list)) return lists_[container.index()];
  if (container.is(PickleKind::dict)) return dicts_[container.index()];
  return {};
}

void SnapshotBuilder::append(PickleValue list, PickleItems items) {
  Folded& form = lists_[list.index()];
  if (append_frames(form, items) || append_records(form, items)) return;
  append_plain(form, items);
}

bool SnapshotBuilder::append_frames(Folded& list, PickleItems items) {
  if (list.form() != Form::empty && list.form() != Form::stack) return false;
  frames_.clear();
  for (const PickleValue item : items) {
    if (!item.is(PickleKind::dict)) return false;
    const Folded dict = dicts_[item.index()];
    if (dict.form() != Form::frame) return false;
    frames_.push_back(dict.index());
  }
  list = {Form::stack, snapshot_.stacks.extend(list.form() == Form::stack ? list.index() : 0, frames_)};
  return true;
}

bool SnapshotBuilder::append_records(Folded& list, PickleItems items) {
  const Folded first = folded(items.front());
  if (first.form() != Form::event && first.form() != Form::block && first.form() != Form::segment &&
      first.form() != Form::past)
    return false;
  const bool fresh = list.form() == Form::empty;
  if (!fresh && list.form() != Form::range) return false;
  Range range = fresh ? Range{first.form(), first.index(), 0} : ranges_[list.index()];
  for (const PickleValue item : items) {
    const Folded record = item.is(PickleKind::dict) ? dicts_[item.index()] : Folded{};
    if (record.form() != range.form || record.index() != range.first + range.count) return false;
    ++range.count;
  }
  if (fresh) {
    list = {Form::range, next_record(ranges_.size(), "lists")};
    ranges_.push_back(range);
  } else {
    ranges_[list.index()] = range;
  }
  return true;
}

void SnapshotBuilder::append_plain(Folded& list, PickleItems items) {
  if (list.form() == Form::empty) {
    list = plain(items);
    return;
  }
  if (list.form() != Form::plain)
    throw Error("a list holds both records and something else", "", "this is not PyTorch's snapshot");
  count_plain(items.size());
  std::vector<PickleValue>& values = plain_[list.index()];
  values.insert(values.end(), items.begin(), items.end());
}

SnapshotBuilder::Folded SnapshotBuilder::plain(PickleItems items) {
  count_plain(items.size() + 4);
  plain_.emplace_back(items.begin(), items.end());
  return {Form::plain, static_cast<uint32_t>(plain_.size() - 1)};
}

void SnapshotBuilder::count_plain(size_t values) {
  plain_values_ += values;
  if (plain_values_ > kMostPlain)
    throw Error("more than " + std::to_string(kMostPlain) + " values that are no part of a memory snapshot", "",
                "give the file that torch.cuda.memory._dump_snapshot wrote");
}

// --- dicts ---

void SnapshotBuilder::assign(PickleValue dict, PickleItems pairs) {
  Folded& form = dicts_[dict.index()];
  if (form.form() == Form::plain) {
    count_plain(pairs.size());
    std::vector<PickleValue>& values = plain_[form.index()];
    values.insert(values.end(), pairs.begin(), pairs.end());
    return;
  }
  if (form.form() != Form::empty)
    throw Error("a dict is changed after it was complete", "", "this is not PyTorch's snapshot");
  Fields fields;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (!pairs[i].is(PickleKind::text)) continue;
    const size_t text = pairs[i].index();
    if (text >= 1 && text <= kKeyNames.size()) fields.set(static_cast<SnapshotKey>(text - 1), pairs[i + 1]);
  }
  const Folded record = fold(fields);
  form = record.form() == Form::empty ? plain(pairs) : record;
}

SnapshotBuilder::Folded SnapshotBuilder::fold(const Fields& fields) {
  if (fields.has(SnapshotKey::filename) && fields.has(SnapshotKey::line)) return fold_frame(fields);
  if (fields.has(SnapshotKey::action)) return fold_event(fields);
  if (fields.has(SnapshotKey::blocks) && fields.has(SnapshotKey::total_size)) return fold_segment(fields);
  if (fields.has(SnapshotKey::state) && fields.has(SnapshotKey::size)) return fold_block(fields);
  if (fields.has(SnapshotKey::real_size)) return fold_past(fields);
  return {};
}

SnapshotBuilder::Folded SnapshotBuilder::fold_frame(const Fields& fields) {
  const int64_t line = number(fields[SnapshotKey::line], 0);
  return {Form::frame, snapshot_.stacks.intern({text_of(fields[SnapshotKey::filename]), text_of(fields[SnapshotKey::name]),
                                                line < 0 || line > INT32_MAX ? 0 : static_cast<int32_t>(line)})};
}

SnapshotBuilder::Folded SnapshotBuilder::fold_event(const Fields& fields) {
  const uint32_t number = next_record(snapshot_.events.size(), "events");
  Event event;
  event.action = action_of(snapshot_.texts[text_of(fields[SnapshotKey::action])]);
  event.address = event.action == Action::oom && fields.has(SnapshotKey::device_free)
                      ? byte_count(fields, SnapshotKey::device_free)
                      : integer(fields, SnapshotKey::addr, 0);
  event.bytes = byte_count(fields, SnapshotKey::size);
  event.time_us = integer(fields, SnapshotKey::time_us, 0);
  event.stack = stack_of(fields[SnapshotKey::frames]);
  event.context = context(fields) & 0xFFFFFFFU;
  snapshot_.events.push_back(event);
  return {Form::event, number};
}

uint32_t SnapshotBuilder::context(const Fields& fields) {
  const EventContext context{integer(fields, SnapshotKey::stream, 0), pool_of(fields[SnapshotKey::pool_id]),
                             text_of(fields[SnapshotKey::compile_context]), text_of(fields[SnapshotKey::user_metadata])};
  std::vector<EventContext>& known = snapshot_.contexts;
  const auto word = [](int64_t value) { return static_cast<uint64_t>(value); };
  uint64_t hash = hash_word(word(context.stream), uint64_t{context.compile_context} << 32U | context.user_metadata);
  hash = hash_word(hash ^ word(context.pool.owner), word(context.pool.number));
  const auto fresh = next_record(known.size(), "different contexts");
  const uint32_t id = context_table_.find_or_add(hash, fresh, [&](uint32_t other) { return known[other] == context; });
  if (id == fresh) {
    count_plain(8);
    known.push_back(context);
  }
  return id;
}

SnapshotBuilder::Folded SnapshotBuilder::fold_block(const Fields& fields) {
  const uint32_t number = next_record(blocks_.size(), "blocks");
  const std::string_view state = snapshot_.texts[text_of(fields[SnapshotKey::state])];
  Block block;
  block.address = integer(fields, SnapshotKey::address, -1);
  block.bytes = byte_count(fields, SnapshotKey::size);
  block.requested_bytes = byte_count(fields, SnapshotKey::requested_size);
  block.stack = stack_of(fields[SnapshotKey::frames]);
  block.state = state == "inactive"           ? BlockState::inactive
                : state == "active_allocated" ? BlockState::allocated
                                              : BlockState::pending_free;  // active_pending_free, active_awaiting_free
  if (const Folded history = folded(fields[SnapshotKey::history]);
      history.form() == Form::range && ranges_[history.index()].form == Form::past) {
    const Past& newest = pasts_[ranges_[history.index()].first];
    block.stack = newest.stack;
    if (!fields.has(SnapshotKey::requested_size) && block.state != BlockState::inactive)
      block.requested_bytes = newest.bytes;
  }
  blocks_.push_back(block);
  return {Form::block, number};
}

SnapshotBuilder::Folded SnapshotBuilder::fold_segment(const Fields& fields) {
  const uint32_t number = next_record(segments_.size(), "segments");
  count_plain(16);
  Segment segment;
  segment.address = integer(fields, SnapshotKey::address, 0);
  segment.bytes = byte_count(fields, SnapshotKey::total_size);
  segment.allocated_bytes = byte_count(fields, SnapshotKey::allocated_size);
  segment.active_bytes = byte_count(fields, SnapshotKey::active_size);
  segment.requested_bytes = byte_count(fields, SnapshotKey::requested_size);
  segment.device = integer(fields, SnapshotKey::device, 0);
  segment.stream = integer(fields, SnapshotKey::stream, 0);
  segment.pool = pool_of(fields[SnapshotKey::segment_pool_id]);
  segment.small = snapshot_.texts[text_of(fields[SnapshotKey::segment_type])] == "small";
  segment.expandable = this->number(fields[SnapshotKey::is_expandable], 0) != 0;
  segment.stack = stack_of(fields[SnapshotKey::frames]);
  segments_.push_back(segment);
  segment_blocks_.push_back(fields[SnapshotKey::blocks]);
  return {Form::segment, number};
}

SnapshotBuilder::Folded SnapshotBuilder::fold_past(const Fields& fields) {
  const uint32_t number = next_record(pasts_.size(), "entries of blocks' histories");
  pasts_.push_back({stack_of(fields[SnapshotKey::frames]), byte_count(fields, SnapshotKey::real_size)});
  return {Form::past, number};
}

// --- entries ---

int64_t SnapshotBuilder::number(PickleValue value, int64_t otherwise) const {
  return value.is(PickleKind::integer) || value.is(PickleKind::boolean) ? value.payload() : otherwise;
}

int64_t SnapshotBuilder::integer(const Fields& fields, SnapshotKey key, int64_t otherwise) const {
  const PickleValue value = fields[key];
  if (value.is(PickleKind::none)) return otherwise;
  if (!value.is(PickleKind::integer) || value.payload() < 0)
    throw Error(std::string(kKeyNames[static_cast<size_t>(key)]) + " is no address, time or count", "",
                "this is not PyTorch's snapshot");
  return value.payload();
}

int64_t SnapshotBuilder::byte_count(const Fields& fields, SnapshotKey key) const {
  const int64_t bytes = integer(fields, key, 0);
  if (bytes > kMostSnapshotBytes)
    throw Error(std::string(kKeyNames[static_cast<size_t>(key)]) + " is " + std::to_string(bytes) +
                    " bytes, more than any device has",
                "", "the file is damaged");
  return bytes;
}

TextId SnapshotBuilder::text_of(PickleValue value) const {
  return value.is(PickleKind::text) ? static_cast<TextId>(value.index()) : 0;
}

StackId SnapshotBuilder::stack_of(PickleValue frames) const {
  const Folded list = folded(frames);
  return list.form() == Form::stack ? list.index() : 0;
}

PoolId SnapshotBuilder::pool_of(PickleValue value) const {
  return value.is(PickleKind::tuple) && value.index() % 2 == 0 ? pairs_[value.index() / 2] : PoolId{};
}

}  // namespace snug
