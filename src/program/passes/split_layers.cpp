// Pipeline parallelism, the forward of one stage: some of the layers, what comes before them where it is the first, what
// comes behind them where it is the last. Rows of the residual stream are received from the stage before and sent on to the
// next. How micro-batches follow one another is for passes::pipeline.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/even_part.h"
#include "program/collective.h"
#include "program/passes/list.h"

namespace snug {

namespace {

class SplitLayers {
 public:
  SplitLayers(Program& program, int64_t stage)
      : program_(program),
        layers_(even_part(program.layers, program.mesh.pipeline, stage)),
        is_first_(stage == 0),
        is_last_(stage == program.mesh.pipeline - 1) {}

  void run() {
    Region& forward = program_.region(Section::forward);
    if (program_.head.weight != kNone &&
        program_.weights[static_cast<size_t>(program_.head.weight)].parameter.kind == ParameterKind::embedding)
      tied_ = program_.head.weight;
    const StorageId stream = program_.tensor(forward_loop(forward).carries.front().in).storage;
    keep_layers(forward);
    number_stream(stream);
    if (!is_first_) receive_stream(forward);
    if (!is_last_) send_stream(forward);
    keep_weights();
  }

 private:
  int64_t end() const { return layers_.begin + layers_.elements; }

  static Region& forward_loop(Region& forward) {
    const auto loop =
        std::find_if(forward.items.begin(), forward.items.end(), [](const Item& item) { return item.region() != nullptr; });
    presume(loop != forward.items.end(), "a loop over layers");
    return *loop->region();
  }

  // Loops over layers of this stage alone.
  void keep_layers(Region& forward) {
    std::erase_if(forward.items, [&](const Item& item) {
      const Region* loop = item.region();
      return loop != nullptr && (loop->first >= end() || loop->first + loop->count <= layers_.begin);
    });
    int32_t index = 0;
    for (Item& item : forward.items)
      if (Region* loop = item.region()) {
        const int64_t last = std::min(loop->first + loop->count, end());
        loop->first = std::max(loop->first, layers_.begin);
        loop->count = last - loop->first;
        loop->index = index++;
        Carry& carry = loop->carries.front();
        program_.tensor(carry.before).instance = loop->first;
        program_.tensor(carry.after).instance = last;
      }
  }

  // The residual stream has an instance before each of these layers, and one after the last.
  void number_stream(StorageId stream) {
    program_.storage(stream).instances = layers_.elements + 1;
    for (Tensor& tensor : program_.tensors)
      if (tensor.storage == stream) tensor.instance -= layers_.begin;
  }

  void receive_stream(Region& forward) {
    const auto loop =
        std::find_if(forward.items.begin(), forward.items.end(), [](const Item& item) { return item.region() != nullptr; });
    const TensorId first = loop->region()->carries.front().before;
    forward.items.erase(
        std::remove_if(forward.items.begin(), loop, [](const Item& item) { return item.op()->kind != OpKind::rope_table; }),
        loop);
    forward.items.insert(forward.items.begin(), Item{receive(program_, first, {RankGroup::ahead, Lane::compute})});
    program_.token_lookups.clear();
  }

  void send_stream(Region& forward) {
    const auto loop = std::find_if(forward.items.rbegin(), forward.items.rend(),
                                   [](const Item& item) { return item.region() != nullptr; });
    const TensorId last = loop->region()->carries.front().after;
    forward.items.erase(loop.base(), forward.items.end());
    forward.items.push_back(Item{send(program_, last, {RankGroup::ahead, Lane::comm})});
    program_.loss = kNone;
    program_.head = {};
  }

  // Those that an op reads, of these layers.
  void keep_weights() {
    std::set<TensorId> read;
    std::set<OpId> ops;
    for_each_op(program_.region(Section::forward), [&](const Op& op, const Region&) {
      for (const Operand& operand : op.operands) read.insert(operand.tensor);
      ops.insert(op.id);
    });
    std::map<int32_t, int32_t> places;
    std::vector<Weight> kept;
    for (size_t i = 0; i < program_.weights.size(); ++i) {
      Weight& weight = program_.weights[i];
      if (!read.contains(weight.tensor)) continue;
      Parameter& parameter = weight.parameter;
      if (parameter.per_layer) {
        const int64_t last = std::min(parameter.end_layer(program_.layers), end());
        parameter.first_layer = std::max(parameter.first_layer, layers_.begin);
        parameter.layer_count = last - parameter.first_layer;
      }
      program_.tensor(weight.tensor).first_layer = parameter.first_layer;
      weight.at_ends = static_cast<int32_t>(i) == tied_;
      weight.repeats = weight.at_ends && is_last_;
      places[static_cast<int32_t>(i)] = static_cast<int32_t>(kept.size());
      kept.push_back(std::move(weight));
    }
    program_.weights = std::move(kept);
    std::erase_if(program_.linears, [&](const Linear& linear) { return !ops.contains(linear.product); });
    for (Linear& linear : program_.linears) linear.weight = places.at(linear.weight);
    if (program_.head.weight != kNone) program_.head.weight = places.at(program_.head.weight);
  }

  Program& program_;
  EvenPart layers_;
  bool is_first_, is_last_;
  int32_t tied_ = kNone;  // the weight that is embedding and head
};

}  // namespace

void passes::split_layers(Program& program, const StepRequest& request) {
  const int64_t stages = program.mesh.pipeline;
  if (stages == 1) return;
  if (stages > program.layers)
    throw Error(fmt::format("pp_size {} does not go with {} layers", stages, program.layers), "recipe",
                "give at most as many stages as layers");
  program.stage = std::max<int64_t>(0, request.recipe.parallel.stage);
  SplitLayers(program, program.stage).run();
}

}  // namespace snug
