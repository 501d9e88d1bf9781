#include "program/passes/pipeline_parts.h"

#include <algorithm>

#include "program/passes/clone.h"

namespace snug {

namespace {

// What others look for is there once.
void forget_sections(Region& region) {
  region.section = Section::other;
  for (Item& item : region.items)
    if (Region* child = item.region()) forget_sections(*child);
}

Op turn_op(const Program& program) { return Op{OpKind::turn}.updates(Slot::scalars, program.interface.scalars); }

// The items of a region, cut behind what is sent to a neighbour, into as many as there are chunks.
std::vector<std::vector<Item>> cut_at_sends(Region& region, RankGroup group, size_t chunks) {
  std::vector<std::vector<Item>> parts(1);
  for (Item& item : region.items) {
    const Op* op = item.op();
    const bool sends = op != nullptr && op->kind == OpKind::send && op->attributes.group == group;
    parts.back().push_back(std::move(item));
    if (sends && parts.size() < chunks) parts.emplace_back();
  }
  presume(parts.size() == chunks, "a part for each chunk");
  return parts;
}

}  // namespace

StorageSet touched(const Program& program, const Region& region, bool written) {
  StorageSet found;
  for_each_op(region, [&](const Op& op, const Region&) {
    for (const Operand& operand : op.operands)
      if (!written || operand.access == Access::write) found.insert(program.tensor(operand.tensor).storage);
  });
  std::erase_if(found, [&](StorageId id) { return program.storage(id).lifetime == Lifetime::run; });
  return found;
}

void keep_apart(Program& program, StorageId id, int64_t slots) {
  Storage& storage = program.storage(id);
  const int64_t each = storage.instances;
  for (Tensor& tensor : program.tensors) {
    if (tensor.storage != id) continue;
    tensor.slots = slots;
    tensor.slot_instances = each;
  }
  storage.instances = checked_mul(each, slots);
  storage.lifetime = Lifetime::run;
}

Region copy_of(Program& program, const Region& region) {
  Region copy = region;
  StorageSet temporary = touched(program, region, true);
  std::erase_if(temporary, [&](StorageId id) { return program.storage(id).instances > 1; });
  Clones(program, std::move(temporary)).rename(copy);
  forget_sections(copy);
  return copy;
}

Region loop_of(const char* name, Section section, int64_t count, std::vector<Region> parts) {
  Region loop{.name = name, .section = section, .stage = parts.front().stage, .axis = Axis::micro_batch, .count = count};
  for (Region& part : parts) loop.add(std::move(part));
  return loop;
}

ChunkParts take_apart(Program& program, Region& all) {
  const auto chunks = static_cast<size_t>(program.mesh.chunks);
  presume(all.items.size() == 3 && program.count(Section::batch) == 1, "a batch, a forward and a backward");
  Region &forward = *all.items[1].region(), &backward = *all.items[2].region();
  auto forwards = cut_at_sends(forward, RankGroup::ahead, chunks),
       backwards = cut_at_sends(backward, RankGroup::back, chunks);
  ChunkParts parts{std::vector<Region>(chunks), std::vector<Region>(chunks)};
  for (size_t i = 0; i < chunks; ++i) {
    Region& ahead =
        parts.ahead[i] = {.name = "ahead", .index = static_cast<int32_t>(i), .stage = Stage::forward, .turn = Turn::ahead};
    if (i == 0) ahead.add(std::move(*all.items[0].region()));
    if (i > 0) ahead.add(turn_op(program));
    forward.items = std::move(forwards[i]);
    ahead.add(Region(forward));
    forward.section = Section::other;  // others look for the first
    Region& back = parts.back[chunks - 1 - i] = {
        .name = "back", .index = static_cast<int32_t>(chunks - 1 - i), .stage = Stage::backward, .turn = Turn::back};
    back.add(turn_op(program));
    backward.items = std::move(backwards[i]);
    back.add(Region(backward));
    backward.section = Section::other;
  }
  all.items.clear();
  all.axis = Axis::none;
  all.count = 1;
  return parts;
}

}  // namespace snug
