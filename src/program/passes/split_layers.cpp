// Pipeline parallelism, the forward of one stage: some of the layers, what comes before them where it is the first, what
// comes behind them where it is the last. Rows of the residual stream are received from the stage before and sent on to the
// next. With interleaving (Narayanan et al., "Efficient large-scale language model training on GPU clusters using
// Megatron-LM", 2021) a stage has several chunks of layers, and rows come round as often. How micro-batches follow one
// another is for passes::pipeline.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/error.h"
#include "base/even_part.h"
#include "program/collective.h"
#include "program/passes/list.h"

namespace snug {

namespace {

using TensorCopies = std::map<TensorId, TensorId>;

// A run of consecutive layers of this stage, with what comes before and behind it in the forward. With interleaving a stage
// has several, and between them rows go round all other stages.
struct Chunk {
  EvenPart layers;
  bool is_first = false, is_last = false;  // of the model
  std::vector<Region> loops = {};
  TensorCopies copies =
      {};  // of what its loops make, and of their weights; empty in a stage's first chunk, which keeps them

  int64_t end() const { return layers.begin + layers.elements; }
  TensorId of(TensorId id) const {
    const auto found = copies.find(id);
    return found == copies.end() ? id : found->second;
  }
};

// Stages have as many layers, and their chunks as many, as far as these can be dealt out evenly.
EvenPart layers_of(int64_t layers, const RankMesh& mesh, int64_t stage, int64_t chunk) {
  const auto size = [&](int64_t of_stage, int64_t at) {
    return even_part(even_part(layers, mesh.pipeline, of_stage).elements, mesh.chunks, at).elements;
  };
  EvenPart part{.begin = 0, .elements = size(stage, chunk)};
  for (int64_t at = 0; at <= chunk; ++at)
    for (int64_t before = 0; before < (at < chunk ? mesh.pipeline : stage); ++before) part.begin += size(before, at);
  return part;
}

class SplitLayers {
 public:
  explicit SplitLayers(Program& program) : program_(program) {}

  void run() {
    Region& forward = program_.region(Section::forward);
    if (program_.head.weight != kNone && weight(program_.head.weight).parameter.kind == ParameterKind::embedding)
      tied_ = program_.head.weight;
    take_apart(forward);
    const RankMesh& mesh = program_.mesh;
    for (int64_t i = 0; i < mesh.chunks; ++i)
      chunks_.push_back({.layers = layers_of(program_.layers, mesh, program_.stage, i),
                         .is_first = i == 0 && program_.stage == 0,
                         .is_last = i == mesh.chunks - 1 && program_.stage == mesh.pipeline - 1});
    for (size_t i = chunks_.size(); i-- > 0;) keep_layers(chunks_[i], i > 0);
    put_together(forward);
    keep_weights(forward);
  }

 private:
  Weight& weight(int32_t index) { return program_.weights[static_cast<size_t>(index)]; }

  void take_apart(Region& forward) {
    for (Item& item : forward.items) {
      if (Region* loop = item.region()) loops_.push_back(std::move(*loop));
      if (Op* op = item.op()) (loops_.empty() ? before_ : behind_).push_back(std::move(*op));
    }
    presume(!loops_.empty(), "a loop over layers");
    forward.items.clear();
    stream_ = program_.tensor(loops_.front().carries.front().in).storage;
  }

  // Loops over the chunk's layers alone. The residual stream has an instance before each of these, and one after the last.
  void keep_layers(Chunk& chunk, bool apart) {
    std::copy_if(loops_.begin(), loops_.end(), std::back_inserter(chunk.loops), [&](const Region& loop) {
      return loop.first < chunk.end() && loop.first + loop.count > chunk.layers.begin;
    });
    if (apart) make_apart(chunk);
    for (Region& loop : chunk.loops) {
      const int64_t last = std::min(loop.first + loop.count, chunk.end());
      loop.first = std::max(loop.first, chunk.layers.begin);
      loop.count = last - loop.first;
      const Carry& carry = loop.carries.front();
      program_.tensor(carry.before).instance = loop.first;
      program_.tensor(carry.after).instance = last;
    }
    const StorageId stream = program_.tensor(chunk.loops.front().carries.front().in).storage;
    program_.storage(stream).instances = chunk.layers.elements + 1;
    for (Tensor& tensor : program_.tensors)
      if (tensor.storage == stream) tensor.instance -= chunk.layers.begin;
  }

  // What its loops make, and their weights, are other storages than those of other chunks.
  void make_apart(Chunk& chunk) {
    std::set<StorageId> made = {stream_};
    for (const Region& loop : chunk.loops)
      for_each_op(loop, [&](const Op& op, const Region&) {
        for (const Operand& operand : op.operands)
          if (operand.access != Access::read) made.insert(program_.tensor(operand.tensor).storage);
      });
    std::map<StorageId, StorageId> storages;
    const auto copy_of = [&](TensorId id) {
      const StorageId storage = program_.tensor(id).storage;  // none yet: a weight's
      if (storage != kNone && (!made.contains(storage) || program_.storage(storage).lifetime == Lifetime::run)) return id;
      if (const auto found = chunk.copies.find(id); found != chunk.copies.end()) return found->second;
      Tensor copy = program_.tensor(id);
      if (storage != kNone) {
        if (!storages.contains(storage)) storages[storage] = program_.add_storage(Storage(program_.storage(storage)));
        copy.storage = storages[storage];
      }
      return chunk.copies[id] = program_.add_tensor(std::move(copy));
    };
    for (Region& loop : chunk.loops) {
      for (Carry& carry : loop.carries)
        for (TensorId* id : {&carry.before, &carry.in, &carry.out, &carry.after}) *id = copy_of(*id);
      for_each_op(loop, [&](Op& op, const Region&) {
        for (Operand& operand : op.operands) operand.tensor = copy_of(operand.tensor);
      });
    }
  }

  void put_together(Region& forward) {
    int32_t index = 0;
    for (Chunk& chunk : chunks_) {
      const bool first_here = &chunk == chunks_.data();
      const Carry begin = chunk.loops.front().carries.front(), end = chunk.loops.back().carries.front();
      if (!chunk.is_first) forward.items.push_back({receive(program_, begin.before, {RankGroup::ahead, Lane::compute})});
      for (const Op& op : before_)
        if (first_here && (chunk.is_first || op.kind == OpKind::rope_table)) forward.items.push_back({op});
      for (Region& loop : chunk.loops) {
        loop.index = index++;
        number_linears(chunk, loop);
        forward.add(std::move(loop));
      }
      if (!chunk.is_last) forward.items.push_back({send(program_, end.after, {RankGroup::ahead, Lane::comm})});
      for (Op op : behind_) {
        if (!chunk.is_last) break;
        for (Operand& operand : op.operands) operand.tensor = chunk.of(operand.tensor);
        forward.items.push_back({std::move(op)});
      }
    }
    if (!chunks_.front().is_first) program_.token_lookups.clear();
    if (chunks_.back().is_last) {
      program_.head.input = chunks_.back().of(program_.head.input);
    } else {
      program_.loss = kNone;
      program_.head = {};
    }
  }

  // Linear modules of a loop; those of a copy have products of their own.
  void number_linears(const Chunk& chunk, Region& loop) {
    std::map<OpId, Op*> ops;
    for_each_op(loop, [&](Op& op, const Region&) {
      if (op.id != kNone) ops[op.id] = &op;
    });
    for (Linear linear : program_.linears) {
      const auto found = ops.find(linear.product);
      if (found == ops.end()) continue;
      if (!chunk.copies.empty()) linear.product = program_.identify(*found->second);
      linear.input = chunk.of(linear.input);
      linear.output = chunk.of(linear.output);
      weights_of_linears_.push_back(chunk.of(weight(linear.weight).tensor));
      linears_.push_back(linear);
    }
  }

  // Those that an op reads, of the layers of the chunk that it is in.
  void keep_weights(const Region& forward) {
    std::set<TensorId> read;
    for_each_op(forward, [&](const Op& op, const Region&) {
      for (const Operand& operand : op.operands) read.insert(operand.tensor);
    });
    std::map<TensorId, int32_t> places;
    std::vector<Weight> kept;
    for (const Chunk& chunk : chunks_)
      for (size_t i = 0; i < program_.weights.size(); ++i) {
        Weight own = program_.weights[i];
        own.tensor = chunk.of(own.tensor);
        if (!read.contains(own.tensor) || places.contains(own.tensor)) continue;
        own.at_ends = static_cast<int32_t>(i) == tied_;
        own.repeats = own.at_ends && chunks_.back().is_last;
        keep_layers_of(own, chunk);
        places[own.tensor] = static_cast<int32_t>(kept.size());
        kept.push_back(std::move(own));
      }
    if (program_.head.weight != kNone) program_.head.weight = places.at(weight(program_.head.weight).tensor);
    program_.weights = std::move(kept);
    program_.linears = std::move(linears_);
    for (size_t i = 0; i < program_.linears.size(); ++i) program_.linears[i].weight = places.at(weights_of_linears_[i]);
  }

  void keep_layers_of(Weight& own, const Chunk& chunk) {
    Parameter& parameter = own.parameter;
    if (parameter.per_layer) {
      const int64_t last = std::min(parameter.end_layer(program_.layers), chunk.end());
      parameter.first_layer = std::max(parameter.first_layer, chunk.layers.begin);
      parameter.layer_count = last - parameter.first_layer;
    }
    program_.tensor(own.tensor).first_layer = parameter.first_layer;
  }

  Program& program_;
  std::vector<Op> before_, behind_;  // the loops, in the whole model's forward
  std::vector<Region> loops_;
  StorageId stream_ = kNone;
  std::vector<Chunk> chunks_;
  std::vector<Linear> linears_;
  std::vector<TensorId> weights_of_linears_;
  int32_t tied_ = kNone;  // the weight that is embedding and head
};

}  // namespace

void passes::split_layers(Program& program, const StepRequest& request) {
  const int64_t stages = program.mesh.pipeline;
  if (stages == 1) return;
  const int64_t chunks = program.mesh.chunks;
  if (stages > program.layers)
    throw Error(fmt::format("pp_size {} does not go with {} layers", stages, program.layers), "recipe",
                "give at most as many stages as layers");
  if (checked_mul(stages, chunks) > program.layers)
    throw Error(fmt::format("pp_size {} with vpp_size {} does not go with {} layers", stages, chunks, program.layers),
                "recipe", "set a smaller vpp_size: each chunk needs a layer");
  program.stage = std::max<int64_t>(0, request.recipe.parallel.stage);
  SplitLayers(program).run();
}

}  // namespace snug
