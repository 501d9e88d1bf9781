#include "program/passes/checkpoint_inputs.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"
#include "program/passes/clone.h"
#include "program/passes/made_again.h"

namespace snug {

namespace {

using Storages = std::set<StorageId>;

// Backward comes to segment i when i + 1 inputs are kept, its own among them.
std::optional<std::vector<BlockSegment>> segments_within(const std::vector<int64_t>& loops, int64_t inputs) {
  const int64_t layers = std::accumulate(loops.begin(), loops.end(), int64_t{0});
  std::vector<BlockSegment> segments;
  int64_t first = 0, loop_end = 0;
  for (int64_t loop : loops) {
    loop_end += loop;
    while (first < loop_end) {
      const int64_t room = inputs - static_cast<int64_t>(segments.size());  // of this segment
      if (room < 1) return std::nullopt;
      const int64_t left = layers - first, alone = room - 1;  // blocks that segments behind can be of one each
      const int64_t count = std::clamp<int64_t>(left - alone, 1, std::min(room, loop_end - first));
      segments.push_back({first, count});
      first += count;
    }
  }
  return segments;
}

StorageId stream_of(const Program& program, const Region& loop) {
  presume(loop.carries.size() == 1, "blocks that hand on one tensor");
  return program.tensor(loop.carries.front().in).storage;
}

// The inputs of some layers, elsewhere: all of them at once, or those that one block has before and behind it.
class Elsewhere {
 public:
  Elsewhere(Program& program, StorageId stream, bool all) : program_(program), stream_(stream) {
    Storage copy = program.storage(stream);
    copy.role = Role::temporary;
    if (!all) {
      stride_ = align_up(copy.bytes, alignment_of(copy));
      copy.bytes = 2 * stride_;
      copy.instances = 1;
    }
    storage_ = program.add_storage(std::move(copy));
  }

  // What the body reads, writes, or both lies there.
  void rename(Region& body, bool input, bool output) const {
    for_each_op(body, [&](Op& op, const Region&) {
      for (Operand& operand : op.operands) {
        const Tensor& tensor = program_.tensor(operand.tensor);
        if (tensor.storage != stream_) continue;
        presume(tensor.instance_by_layer && tensor.instance <= 1, "a block that knows its input and output alone");
        if (tensor.instance == 0 ? input : output) operand.tensor = program_.add_tensor(moved(tensor));
      }
    });
  }

 private:
  Tensor moved(Tensor tensor) const {
    tensor.storage = storage_;
    if (stride_ == 0) return tensor;
    tensor.layer_stride = stride_;
    tensor.layer_turns = 2;
    tensor.first_layer = -tensor.instance;
    tensor.instance = 0;
    tensor.instance_by_layer = false;
    return tensor;
  }

  Program& program_;
  StorageId stream_, storage_ = kNone;
  int64_t stride_ = 0;  // between the two; 0: all
};

// The ops of a block that its output needs, with temporaries of their own.
Region forward_again(Program& program, const Region& loop) {
  const StorageId stream = stream_of(program, loop);
  Storages needed, made = made_by(program, loop);
  std::vector<Op> ops;
  for (size_t i = loop.items.size(); i-- > 0;) {
    presume(loop.items[i].op() != nullptr, "a block of ops alone");
    const Op& op = *loop.items[i].op();
    const bool wanted = std::ranges::any_of(op.operands, [&](const Operand& operand) {
      const StorageId storage = program.tensor(operand.tensor).storage;
      return operand.access != Access::read && (storage == stream || needed.contains(storage));
    });
    if (!wanted) continue;
    for (const Operand& operand : op.operands) {
      const StorageId storage = program.tensor(operand.tensor).storage;
      presume(operand.access != Access::update || storage == stream || made.contains(storage),
              "a block that changes nothing but its own");
      needed.insert(storage);
    }
    ops.push_back(op);
  }
  std::reverse(ops.begin(), ops.end());
  Region again = loop;
  again.name = "blocks.again";
  again.section = Section::other;
  again.stage = Stage::backward;
  again.carries.clear();
  again.items.clear();
  for (Op& op : ops) again.items.push_back({std::move(op)});
  Clones(program, std::move(made)).rename(again);
  return again;
}

// The loop of a section that begins at this layer.
Region& loop_at(Program& program, Section section, int64_t first) {
  for (int32_t i = 0; i < program.count(section); ++i)
    if (Region& loop = program.region(section, i); loop.first == first) return loop;
  throw std::logic_error("no loop begins at layer " + std::to_string(first));
}

void put_before(Region& parent, const Region& child, std::vector<Region> loops) {
  const auto at = std::ranges::find_if(parent.items, [&](const Item& item) {
    const Region* region = item.region();
    return region != nullptr && region->section == child.section && region->index == child.index;
  });
  presume(at != parent.items.end(), "a loop in its section");
  std::vector<Item> items;
  for (Region& loop : loops) items.push_back({std::move(loop)});
  parent.items.insert(at, std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
}

// A segment is up to three loops: its first block, those between, its last.
void make_again(Program& program, const BlockSegment& segment) {
  const int64_t last = segment.first + segment.count - 1;
  std::vector<int64_t> begins{segment.first};
  if (segment.count > 2) begins.push_back(segment.first + 1);
  begins.push_back(last);
  const StorageId stream = stream_of(program, loop_at(program, Section::blocks, segment.first));
  const Elsewhere ahead(program, stream, false), back(program, stream, true);
  std::vector<Region> again;
  for (int64_t begin : begins) {
    const bool is_first = begin == segment.first, is_last = begin == last;
    Region& forward = loop_at(program, Section::blocks, begin);
    presume(forward.count == (is_first || is_last ? 1 : segment.count - 2), "loops split at a segment's borders");
    if (!is_last) {
      Region loop = forward_again(program, forward);
      back.rename(loop, !is_first, true);
      again.push_back(std::move(loop));
    }
    ahead.rename(forward, !is_first, !is_last);
    back.rename(loop_at(program, Section::blocks_backward, begin), !is_first, false);
  }
  put_before(program.region(Section::backward), Region(loop_at(program, Section::blocks_backward, last)), std::move(again));
}

}  // namespace

int64_t fewest_inputs(const std::vector<int64_t>& loops) {
  int64_t fewest = 1;
  while (!segments_within(loops, fewest)) ++fewest;
  return fewest;
}

std::vector<BlockSegment> segments_of(const std::vector<int64_t>& loops, int64_t inputs) {
  if (auto segments = segments_within(loops, inputs)) return *std::move(segments);
  throw Error("checkpoint_inputs is " + std::to_string(inputs), "recipe",
              "with " + std::to_string(std::accumulate(loops.begin(), loops.end(), int64_t{0})) + " blocks no fewer than " +
                  std::to_string(fewest_inputs(loops)) + " inputs are there at once");
}

std::vector<int64_t> borders_of(const std::vector<BlockSegment>& segments) {
  std::vector<int64_t> borders;
  for (const BlockSegment& segment : segments)
    for (const int64_t border : {segment.first, segment.first + 1, segment.first + segment.count - 1})
      if (segment.count > 1 || border == segment.first) borders.push_back(border);
  return borders;
}

void checkpoint_inputs(Program& program, const std::vector<BlockSegment>& segments) {
  for (const BlockRun& run : program.blocks) presume(run.saved.empty(), "blocks that keep their input alone");
  for (const BlockSegment& segment : segments)
    if (segment.count > 1) make_again(program, segment);
}

}  // namespace snug
