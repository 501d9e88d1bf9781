#pragma once
// Folds a snapshot's pickle into records while it is read: a dict becomes a frame, event, block or segment as soon as its
// keys are there, a list of frames becomes a stack, a list of consecutive records a range. What has no such form is kept as
// it is, within bounds. One handle costs four bytes here, a folded event thirty-two.

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "formats/chunked_array.h"
#include "formats/pickle.h"
#include "torch/snapshot.h"
#include "torch/snapshot_keys.h"

namespace snug {

class SnapshotBuilder : public PickleBuilder {
 public:
  SnapshotBuilder();

  // What was read, of the pickle's value. Leaves nothing behind.
  Snapshot finish(PickleValue root);

  PickleValue wide_integer(std::span<const std::byte> little_endian) override;
  PickleValue real(double value) override;
  PickleValue text(std::string_view text) override;
  PickleValue bytes(std::string_view bytes) override;
  PickleValue tuple(PickleItems items) override;
  PickleValue frozen_set(PickleItems items) override;
  PickleValue list() override;
  PickleValue dict() override;
  PickleValue set() override;
  void append(PickleValue list, PickleItems items) override;
  void assign(PickleValue dict, PickleItems pairs) override;
  void insert(PickleValue set, PickleItems items) override;
  std::string name(PickleValue text) const override;

 private:
  // What a dict or list has become, and where: lists are empty, plain, a stack or a range of records; the rest are dicts.
  enum class Form : uint8_t { empty, plain, stack, range, frame, event, block, segment, past };
  class Folded {
   public:
    Folded() = default;
    Folded(Form form, uint32_t index) : bits_(static_cast<uint32_t>(form) << 28U | index) {}
    Form form() const { return static_cast<Form>(bits_ >> 28U); }
    uint32_t index() const { return bits_ & 0xFFFFFFFU; }

   private:
    uint32_t bits_ = 0;  // empty
  };
  struct Range {  // of records of one form that follow one another
    Form form;
    uint32_t first, count;
  };
  struct Past {  // an entry of a block's history, as PyTorch 2.0 wrote it
    StackId stack;
    int64_t bytes;
  };

  Folded folded(PickleValue container) const;
  Folded fold(const Fields& fields);
  Folded fold_frame(const Fields& fields);
  Folded fold_event(const Fields& fields);
  Folded fold_block(const Fields& fields);
  Folded fold_segment(const Fields& fields);
  Folded fold_past(const Fields& fields);
  uint32_t context(const Fields& fields);

  bool append_frames(Folded& list, PickleItems items);
  bool append_records(Folded& list, PickleItems items);
  void append_plain(Folded& list, PickleItems items);
  Folded plain(PickleItems items);
  void count_plain(size_t values);

  int64_t integer(const Fields& fields, SnapshotKey key, int64_t otherwise) const;
  int64_t byte_count(const Fields& fields, SnapshotKey key) const;
  TextId text_of(PickleValue value) const;
  StackId stack_of(PickleValue frames) const;
  PoolId pool_of(PickleValue value) const;

  // --- finish ---
  PickleValue entry(PickleValue dict, std::string_view key) const;
  std::vector<uint32_t> records(PickleValue list, Form form, const char* what) const;
  std::vector<PickleValue> values(PickleValue list) const;
  EventRange trace(PickleValue list);
  std::vector<EventRange> traces(PickleValue lists);
  std::vector<Segment> segments(PickleValue list) const;
  std::vector<Annotation> annotations(PickleValue list) const;
  std::vector<HostSegment> host_segments(PickleValue list) const;
  RecordedSettings settings(PickleValue dict) const;
  int64_t number(PickleValue value, int64_t otherwise) const;

  Snapshot snapshot_;
  ChunkedArray<Folded> lists_, dicts_;
  std::vector<Range> ranges_;
  std::deque<std::vector<PickleValue>> plain_;  // items of lists; keys and values of dicts; tuples
  size_t plain_values_ = 0;
  std::vector<PoolId> pairs_;  // tuples of two integers, once each
  std::map<PoolId, uint32_t> pair_numbers_;
  std::vector<double> reals_;
  ChunkedArray<Block> blocks_;
  std::vector<Segment> segments_;  // without their blocks
  std::vector<PickleValue> segment_blocks_;
  ChunkedArray<Past> pasts_;
  IdTable context_table_;
  std::vector<FrameId> frames_;  // of the list in hand
};

}  // namespace snug
