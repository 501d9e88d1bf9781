// Pipeline parallelism, one stage's order of micro-batches: 1F1B (Narayanan et al., "PipeDream", 2019; Megatron-LM's without
// interleaving). As many forwards as there are stages behind this one, then a backward after each forward, then the
// backwards that are left. So many micro-batches are on their way at once, and one more; each has instances of its own of
// what its backward reads.

#include <algorithm>
#include <optional>
#include <set>

#include "program/passes/clone.h"
#include "program/passes/list.h"

namespace snug {

namespace {

using Storages = std::set<StorageId>;

Storages touched(const Program& program, const Region& region, bool written) {
  Storages found;
  for_each_op(region, [&](const Op& op, const Region&) {
    for (const Operand& operand : op.operands)
      if (!written || operand.access == Access::write) found.insert(program.tensor(operand.tensor).storage);
  });
  std::erase_if(found, [&](StorageId id) { return program.storage(id).lifetime == Lifetime::run; });
  return found;
}

// What lives from a forward to its backward gets an instance for each micro-batch that is on its way.
void keep_apart(Program& program, const Storages& kept, int64_t slots) {
  for (const StorageId id : kept) {
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
}

// What others look for is there once.
void forget_sections(Region& region) {
  region.section = Section::other;
  for (Item& item : region.items)
    if (Region* child = item.region()) forget_sections(*child);
}

// A copy with temporaries of its own, which die with it.
Region copy_of(Program& program, const Region& region) {
  Region copy = region;
  Storages temporary = touched(program, region, true);
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

}  // namespace

void passes::pipeline(Program& program, const StepRequest& /*request*/) {
  const int64_t behind = program.mesh.pipeline - 1 - program.stage;
  if (program.mesh.pipeline == 1) return;
  Region& all = program.region(Section::micro_batch);
  presume(all.items.size() == 3 && program.count(Section::batch) == 1, "a batch, a forward and a backward");
  const int64_t warm = std::min(behind, program.micro_batches), slots = std::min(behind + 1, program.micro_batches);

  Region ahead{.name = "ahead", .stage = Stage::forward, .turn = Turn::ahead};
  ahead.add(std::move(*all.items[0].region()));
  ahead.add(std::move(*all.items[1].region()));
  Region back{.name = "back", .stage = Stage::backward, .turn = Turn::back};
  back.add(Op{OpKind::turn}.updates(Slot::scalars, program.interface.scalars));
  back.add(std::move(*all.items[2].region()));

  Storages kept = touched(program, ahead, true);
  const Storages read = touched(program, back, false);
  std::erase_if(kept, [&](StorageId id) { return !read.contains(id); });
  if (slots > 1) keep_apart(program, kept, slots);

  all.items.clear();
  all.axis = Axis::none;
  all.count = 1;
  const int64_t steady = program.micro_batches - warm;
  std::vector<Region> loops;
  if (warm > 0) loops.push_back(loop_of("warm_up", Section::warm_up, warm, {steady > 0 ? copy_of(program, ahead) : ahead}));
  std::optional<Region> late;
  if (warm > 0) late = steady > 0 ? copy_of(program, back) : back;
  if (steady > 0) loops.push_back(loop_of("steady", Section::steady, steady, {std::move(ahead), std::move(back)}));
  if (warm > 0) loops.push_back(loop_of("cool_down", Section::cool_down, warm, {std::move(*late)}));
  for (Region& loop : loops) all.add(std::move(loop));
}

}  // namespace snug
