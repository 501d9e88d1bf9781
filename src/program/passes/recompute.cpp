#include "program/passes/recompute.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "program/passes/clone.h"

namespace snug {

namespace {

struct Run {
  int64_t first = 0, count = 0;
  bool recomputed = false;
};

std::vector<Run> runs_of(const Region& loop, const std::vector<int64_t>& recomputed) {
  std::vector<Run> runs;
  for (int64_t layer = loop.first; layer < loop.first + loop.count; ++layer) {
    const bool again = std::binary_search(recomputed.begin(), recomputed.end(), layer);
    if (runs.empty() || runs.back().recomputed != again) runs.push_back({layer, 0, again});
    ++runs.back().count;
  }
  return runs;
}

// Removes ops whose results `readers` do not need, from the last to the first. What a block hands on is kept anyway.
void drop_unread(const Program& program, std::vector<Op>& ops, const Region& readers, const std::set<StorageId>& made) {
  std::set<StorageId> needed;
  for_each_op(readers, [&](const Op& op, const Region&) {
    for (const Operand& operand : op.operands)
      if (operand.access != Access::write) needed.insert(program.tensor(operand.tensor).storage);
  });
  for (size_t i = ops.size(); i-- > 0;) {
    bool wanted = false;
    for (const Operand& operand : ops[i].operands)
      wanted = wanted || (operand.access != Access::read && made.contains(program.tensor(operand.tensor).storage) &&
                          needed.contains(program.tensor(operand.tensor).storage));
    if (!wanted) {
      ops.erase(ops.begin() + static_cast<int64_t>(i));
      continue;
    }
    for (const Operand& operand : ops[i].operands) needed.insert(program.tensor(operand.tensor).storage);
  }
}

std::vector<Op> ops_of(const Region& body) {
  std::vector<Op> ops;
  for (const Item& item : body.items) ops.push_back(*item.op());
  return ops;
}

Region run_of(const Region& loop, const Run& run) {
  Region region = loop;
  region.first = run.first;
  region.count = run.count;
  region.name += run.recomputed ? ".recomputed" : ".kept";
  return region;
}

// Storages that a body makes for its own layer: all it writes but what it hands on.
std::set<StorageId> made_by(const Program& program, const Region& body) {
  std::set<StorageId> carried, made;
  for (const Carry& carry : body.carries) carried.insert(program.tensor(carry.out).storage);
  for_each_op(body, [&](const Op& op, const Region&) {
    for (const Operand& operand : op.operands)
      if (operand.access == Access::write && !carried.contains(program.tensor(operand.tensor).storage))
        made.insert(program.tensor(operand.tensor).storage);
  });
  return made;
}

// Puts `replacements` where the child region of this section and index is.
void replace(Region& parent, Section section, int32_t index, std::vector<Region> replacements) {
  for (size_t i = 0; i < parent.items.size(); ++i) {
    const Region* child = parent.items[i].region();
    if (child == nullptr || child->section != section || child->index != index) continue;
    parent.items.erase(parent.items.begin() + static_cast<int64_t>(i));
    for (size_t r = 0; r < replacements.size(); ++r)
      parent.items.insert(parent.items.begin() + static_cast<int64_t>(i + r), Item{std::move(replacements[r])});
    return;
  }
  throw std::logic_error("no layer loop to split");
}

// Loops of a section are counted from the first layer on, in backward too.
void number(Region& parent, Section section) {
  std::vector<Region*> loops;
  for (Item& item : parent.items)
    if (Region* child = item.region(); child != nullptr && child->section == section) loops.push_back(child);
  std::sort(loops.begin(), loops.end(), [](const Region* a, const Region* b) { return a->first < b->first; });
  for (size_t i = 0; i < loops.size(); ++i) loops[i]->index = static_cast<int32_t>(i);
}

void recompute_loop(Program& program, int32_t index, const std::vector<int64_t>& layers) {
  const Region forward = program.region(Section::blocks, index);
  const Region backward = program.region(Section::blocks_backward, index);
  const std::vector<Run> runs = runs_of(forward, layers);
  const std::set<StorageId> made = made_by(program, forward);

  std::vector<Region> forward_runs, backward_runs;
  for (const Run& run : runs) {
    Region ahead = run_of(forward, run);
    Region back = run_of(backward, run);
    if (run.recomputed) {
      Clones first(program, made);
      first.rename(ahead);
      Clones again(program, made);
      std::vector<Op> repeated = ops_of(forward);
      drop_unread(program, repeated, backward, made);
      for (Op& op : repeated) again.rename(op);
      again.rename(back);
      std::vector<Item> items;
      for (Op& op : repeated) items.push_back({std::move(op)});
      back.items.insert(back.items.begin(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
    }
    if (runs.size() > 1) {  // each run has its own temporaries, so that they die with it
      for (Region* part : {&ahead, &back}) {
        std::set<StorageId> temporary = made_by(program, *part);
        std::erase_if(temporary, [&](StorageId id) { return program.storage(id).instances > 1; });
        Clones(program, std::move(temporary)).rename(*part);
      }
    }
    forward_runs.push_back(std::move(ahead));
    backward_runs.push_back(std::move(back));
  }

  std::reverse(backward_runs.begin(), backward_runs.end());
  replace(program.region(Section::forward), Section::blocks, index, std::move(forward_runs));
  replace(program.region(Section::backward), Section::blocks_backward, index, std::move(backward_runs));
}

}  // namespace

void recompute_blocks(Program& program, const std::vector<int64_t>& layers) {
  if (layers.empty()) return;
  const int32_t loops = program.count(Section::blocks);
  for (int32_t loop = 0; loop < loops; ++loop) recompute_loop(program, loop, layers);
  number(program.region(Section::forward), Section::blocks);
  number(program.region(Section::backward), Section::blocks_backward);
}

}  // namespace snug
