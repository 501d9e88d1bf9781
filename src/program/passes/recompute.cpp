#include "program/passes/recompute.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/error.h"
#include "program/passes/checkpoint_inputs.h"
#include "program/passes/clone.h"
#include "program/passes/list.h"
#include "program/passes/made_again.h"
#include "program/passes/named_layers.h"
#include "program/passes/offload.h"

namespace snug {

namespace {

using Storages = std::set<StorageId>;

// Layers that let go of the same and move the same.
struct Run {
  int64_t first = 0, count = 0;
  Storages released = {}, away = {};
};

Storages of_layer(const SavedByLayer& saved, int64_t layer) {
  const auto found = saved.find(layer);
  return found == saved.end() ? Storages() : found->second;
}

std::vector<Run> runs_of(const Region& loop, const SavedChoice& choice, const std::set<int64_t>& begins) {
  std::vector<Run> runs;
  for (int64_t layer = loop.first; layer < loop.first + loop.count; ++layer) {
    const Storages released = of_layer(choice.released, layer), away = of_layer(choice.away, layer);
    const bool goes_on = !runs.empty() && runs.back().released == released && runs.back().away == away;
    if (!goes_on || begins.contains(layer)) runs.push_back({layer, 0, released, away});
    ++runs.back().count;
  }
  return runs;
}

Region run_of(const Region& loop, const Run& run) {
  Region region = loop;
  region.first = run.first;
  region.count = run.count;
  region.name += run.released.empty() ? ".kept" : ".recomputed";
  return region;
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
  presume(false, "a loop to split");
}

// Loops of a section are counted from the first layer on, in backward too.
void number(Region& parent, Section section) {
  std::vector<Region*> loops;
  for (Item& item : parent.items)
    if (Region* child = item.region(); child != nullptr && child->section == section) loops.push_back(child);
  std::sort(loops.begin(), loops.end(), [](const Region* a, const Region* b) { return a->first < b->first; });
  for (size_t i = 0; i < loops.size(); ++i) loops[i]->index = static_cast<int32_t>(i);
}

// What the forward of a run makes and does not keep for its backward.
Storages lost_by(const Storages& made, const BlockRun& block, const Run& run) {
  Storages lost = made;
  for (StorageId saved : block.saved)
    if (!run.released.contains(saved)) lost.erase(saved);
  return lost;
}

// What an op that is done again writes beside what was lost goes nowhere: what is kept may have been changed since.
void write_aside(Program& program, Op& op, const Storages& lost) {
  for (Operand& operand : op.operands) {
    const StorageId storage = program.tensor(operand.tensor).storage;
    if (operand.access == Access::write && !lost.contains(storage))
      operand.tensor = Clones(program, {storage}).of(operand.tensor);
  }
}

// The forward's ops that make what `lost` holds, before backward's, each body with temporaries of its own.
void do_again(Program& program, Region& ahead, Region& back, const Storages& lost) {
  const MadeAgain again_of(program, ahead, back);
  std::vector<Op> repeated;
  for (size_t op : again_of.ops(again_of.set_of(lost))) repeated.push_back(*ahead.items[op].op());
  Clones first(program, lost);
  first.rename(ahead);
  Clones again(program, lost);
  for (Op& op : repeated) {
    write_aside(program, op, lost);
    again.rename(op);
  }
  again.rename(back);
  std::vector<Item> items;
  for (Op& op : repeated) items.push_back({std::move(op)});
  back.items.insert(back.items.begin(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
}

// Returns the blocks that this one becomes.
std::vector<BlockRun> recompute_loop(Program& program, int32_t index, const SavedChoice& choice,
                                     const std::set<int64_t>& begins) {
  const BlockRun block = program.blocks[static_cast<size_t>(index)];
  const Region forward = program.region(Section::blocks, index);
  const Region backward = program.region(Section::blocks_backward, index);
  presume(forward.first == backward.first && forward.count == backward.count, "a backward of the same layers");
  const std::vector<Run> runs = runs_of(forward, choice, begins);
  const Storages made = made_by(program, forward);

  std::vector<BlockRun> blocks;
  std::vector<Region> forward_runs, backward_runs;
  for (const Run& run : runs) {
    Region ahead = run_of(forward, run);
    Region back = run_of(backward, run);
    if (!run.released.empty()) do_again(program, ahead, back, lost_by(made, block, run));
    if (runs.size() > 1) {  // each run has its own temporaries, so that they die with it
      for (Region* part : {&ahead, &back}) {
        Storages temporary = made_by(program, *part);
        std::erase_if(temporary, [&](StorageId id) { return program.storage(id).instances > 1; });
        Clones(program, std::move(temporary)).rename(*part);
      }
    }
    forward_runs.push_back(std::move(ahead));
    backward_runs.push_back(std::move(back));
    BlockRun& kept = blocks.emplace_back(block);
    std::erase_if(kept.saved, [&](StorageId id) { return run.released.contains(id); });
    kept.away.assign(run.away.begin(), run.away.end());
  }

  std::reverse(backward_runs.begin(), backward_runs.end());
  replace(program.region(Section::forward), Section::blocks, index, std::move(forward_runs));
  replace(program.region(Section::backward), Section::blocks_backward, index, std::move(backward_runs));
  return blocks;
}

BlockPart part_of(OpKind kind) {
  switch (kind) {
    case OpKind::rms_norm:
    case OpKind::layer_norm: return BlockPart::norms;
    case OpKind::activation:
    case OpKind::dropout: return BlockPart::activations;
    case OpKind::attention: return BlockPart::attention;
    default: return BlockPart::projections;
  }
}

// What the block saves of these parts, each tensor by the op that makes it; of no parts: all.
Storages saved_of(const Program& program, const Region& loop, const BlockRun& block, const std::vector<BlockPart>& parts) {
  Storages saved(block.saved.begin(), block.saved.end()), of_parts;
  if (parts.empty()) return saved;
  for_each_op(loop, [&](const Op& op, const Region&) {
    if (std::find(parts.begin(), parts.end(), part_of(op.kind)) == parts.end()) return;
    for (const Operand& operand : op.operands)
      if (operand.access == Access::write && saved.contains(program.tensor(operand.tensor).storage))
        of_parts.insert(program.tensor(operand.tensor).storage);
  });
  return of_parts;
}

void check_saved(const Program& program, const SavedByLayer& chosen) {
  Storages saved;
  for (const BlockRun& block : program.blocks) saved.insert(block.saved.begin(), block.saved.end());
  for (const auto& [layer, storages] : chosen)
    for (StorageId id : storages) presume(saved.contains(id), "a block that saves " + program.storage(id).name);
}

std::vector<int64_t> recomputed_layers(const ModelSpec& spec, const Recipe& recipe) {
  if (!recipe.gradient_checkpointing) return {};
  std::vector<int64_t> layers = recipe.checkpoint_layers;
  if (layers.empty()) {
    layers.resize(static_cast<size_t>(spec.layers));
    std::iota(layers.begin(), layers.end(), 0);
  }
  return named_layers(std::move(layers), spec, "checkpoint_layers");
}

}  // namespace

void recompute(Program& program, const SavedChoice& choice, const std::set<int64_t>& begins) {
  if (choice.released.empty() && choice.away.empty() && begins.empty()) return;
  presume(program.count(Section::blocks) == program.count(Section::blocks_backward) && !program.blocks.empty(),
          "blocks with their backward");
  check_saved(program, choice.released);
  check_saved(program, choice.away);
  std::vector<BlockRun> blocks;
  for (size_t i = 0; i < program.blocks.size(); ++i) {
    std::vector<BlockRun> runs = recompute_loop(program, static_cast<int32_t>(i), choice, begins);
    std::move(runs.begin(), runs.end(), std::back_inserter(blocks));
  }
  program.blocks = std::move(blocks);
  number(program.region(Section::forward), Section::blocks);
  number(program.region(Section::backward), Section::blocks_backward);
}

namespace {

// What blocks gather from other ranks they gather again for their backward, from what each rank keeps.
SavedChoice gathered_again(const Program& program) {
  SavedChoice choice;
  for (int32_t i = 0; i < static_cast<int32_t>(program.blocks.size()); ++i) {
    const Region& loop = program.region(Section::blocks, i);
    const BlockRun& block = program.blocks[static_cast<size_t>(i)];
    const std::set<StorageId> saved(block.saved.begin(), block.saved.end());
    for_each_op(loop, [&](const Op& op, const Region&) {
      if (op.kind != OpKind::all_gather) return;
      const StorageId out = program.tensor(op.find(Slot::out)).storage;
      for (int64_t layer = loop.first; saved.contains(out) && layer < loop.first + loop.count; ++layer)
        choice.released[layer].insert(out);
    });
  }
  return choice;
}

}  // namespace

void recompute_blocks(Program& program, const std::vector<int64_t>& layers, const std::vector<BlockPart>& parts,
                      const std::set<int64_t>& begins) {
  SavedChoice choice = gathered_again(program);
  for (int32_t i = 0; i < static_cast<int32_t>(program.blocks.size()); ++i) {
    const Region& loop = program.region(Section::blocks, i);
    const Storages released = saved_of(program, loop, program.blocks[static_cast<size_t>(i)], parts);
    for (int64_t layer : layers)
      if (layer >= loop.first && layer < loop.first + loop.count && !released.empty())
        choice.released[layer].insert(released.begin(), released.end());
  }
  recompute(program, choice, begins);
}

namespace {

// Every block keeps its input alone, and of the inputs so many are there at once.
void recompute_inputs(Program& program, const StepRequest& request, int64_t inputs) {
  std::vector<int64_t> loops;
  for (int32_t i = 0; i < program.count(Section::blocks); ++i) loops.push_back(program.region(Section::blocks, i).count);
  const std::vector<BlockSegment> segments = segments_of(loops, inputs);
  const std::vector<int64_t> borders = borders_of(segments);
  recompute_blocks(program, recomputed_layers(request.model, request.recipe), {}, {borders.begin(), borders.end()});
  checkpoint_inputs(program, segments);
}

}  // namespace

void passes::recompute(Program& program, const StepRequest& request) {
  const std::set<int64_t> begins = borders_of(layers_on_disk(request.model, request.recipe));
  const int64_t inputs = request.saved != nullptr ? request.saved->inputs : request.recipe.checkpoint_inputs;
  if (inputs > 0) return recompute_inputs(program, request, inputs);
  if (request.saved != nullptr) return snug::recompute(program, *request.saved, begins);
  recompute_blocks(program, recomputed_layers(request.model, request.recipe), request.recipe.checkpoint_parts, begins);
  if (request.recipe.offload_activations)
    for (BlockRun& block : program.blocks) block.away = block.saved;
}

}  // namespace snug
