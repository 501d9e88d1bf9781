#include "program/passes/pages.h"

#include <algorithm>

#include "base/element_count.h"
#include "base/scalars.h"

namespace snug {

namespace {

static_assert(kPagedElements % kStateBlock == 0 && kPagedElements % kSquareSumBlock == 0);

bool is_far(const Program& program, const Operand& operand) { return program.home_of(operand.tensor) != Home::device; }

// Parameters that an element of this operand stands for.
int64_t span_of(Slot slot) { return slot == Slot::first_absmax || slot == Slot::second_absmax ? kStateBlock : 1; }

// Whole pages of a chunk: where they lie, the window that they pass through, and the chunk in it as ops see it.
struct Page {
  TensorId far = kNone, window = kNone, seen = kNone;
};

// A chunk in the far home, and so many windows that its loop takes in turn.
Page page_of(Program& program, const Tensor& chunk, int64_t turns) {
  Tensor far = chunk, window = chunk;
  far.dtype = DType::u8;
  far.shape = {align_up(chunk.bytes(), kFarAlignment)};
  window.name += ".window";
  window.storage = program.add_storage(
      {.name = window.name, .bytes = checked_mul(far.bytes(), turns), .role = Role::temporary, .alignment = kFarAlignment});
  window.offset = window.layer_stride = window.instance = 0;
  window.instance_by_layer = false;
  window.chunk_stride = far.bytes();
  window.chunk_turns = turns;
  window.window_of = program.add_tensor(chunk);
  const TensorId seen = program.add_tensor(window);
  window.window_of = kNone;
  window.dtype = far.dtype;
  window.shape = far.shape;
  return {program.add_tensor(far), program.add_tensor(window), seen};
}

// `count` chunks of `length` elements from element `begin` on. There are two windows where there are several chunks, so that
// one comes or goes while the other is worked on.
void add_chunks(Program& program, Region& sink, const Op& op, int64_t begin, int64_t length, int64_t count) {
  Region loop{.name = "paged", .stage = sink.stage, .axis = Axis::chunk, .count = count};
  Op of_chunk = op;
  std::vector<Op> after;
  for (Operand& operand : of_chunk.operands) {
    if (operand.slot == Slot::scalars) continue;
    const int64_t span = span_of(operand.slot);
    Tensor chunk = program.tensor(operand.tensor);
    const int64_t size = size_of(chunk.dtype), held = (length + span - 1) / span;
    chunk.shape = {held};
    chunk.offset += begin / span * size;
    chunk.chunk_stride = held * size;
    if (!is_far(program, operand)) {
      operand.tensor = program.add_tensor(chunk);
      continue;
    }
    const Page page = page_of(program, chunk, count > 1 ? 2 : 1);
    operand.tensor = page.seen;
    if (operand.access != Access::write)
      loop.add(Op{OpKind::page_in, Lane::copy_in}).reads(Slot::far, page.far).writes(Slot::window, page.window);
    if (operand.access != Access::read)
      after.push_back(Op{OpKind::page_out, Lane::copy_out}.writes(Slot::far, page.far).reads(Slot::window, page.window));
  }
  loop.add(std::move(of_chunk));
  for (Op& page : after) loop.add(std::move(page));
  sink.add(std::move(loop));
}

}  // namespace

TensorId whole_buffer(Program& program, TensorId view) {
  const StorageId storage = program.tensor(view).storage;
  const DType dtype = program.tensor(view).dtype;
  const int64_t elements = element_count(dtype, program.storage(storage).bytes);
  return program.add_tensor(
      {.name = program.storage(storage).name, .storage = storage, .dtype = dtype, .shape = {elements}});
}

void add_in_pages(Program& program, Region& sink, const Op& op, int64_t elements) {
  if (std::none_of(op.operands.begin(), op.operands.end(), [&](const Operand& o) { return is_far(program, o); })) {
    sink.add(op);
    return;
  }
  const int64_t chunks = elements / kPagedElements, whole = chunks * kPagedElements;
  if (chunks > 0) add_chunks(program, sink, op, 0, kPagedElements, chunks);
  if (whole < elements) add_chunks(program, sink, op, whole, elements - whole, 1);
}

}  // namespace snug
