// Tensor parallelism (Shoeybi et al., "Megatron-LM", 2019): ranks split each layer's products. Those that begin attention or
// an MLP by their outputs, so that each rank has some heads and some features, those that end it by their inputs, so that
// what ranks have makes the result when it is added up. Between them rows are split (sequence parallelism; Korthikanti et
// al., 2022): norms, sums, embedding and loss see this rank's rows, which are gathered before products and scattered,
// summed, behind them. Weights of whole products then have gradients that are this rank's share of a sum.

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/error.h"
#include "program/collective.h"
#include "program/find_op.h"
#include "program/passes/list.h"

namespace snug {

namespace {

using Segments = std::vector<int64_t>;

class SplitProducts {
 public:
  SplitProducts(Program& program, const ModelSpec& model) : program_(program), model_(model), ways_(program.mesh.tensor) {}

  void run() {
    refuse_what_is_not_split();
    for (size_t i = 0; i < program_.linears.size(); ++i) linears_[program_.linears[i].product] = i;
    visit(program_.region(Section::forward));
  }

 private:
  [[noreturn]] void refuse(const std::string& why, const std::string& mend) const {
    throw Error(fmt::format("tp_size {} does not go with {}", ways_, why), "recipe", mend);
  }

  void refuse_what_is_not_split() const {
    const std::string fewer = "give a tp_size that divides it";
    const auto divides = [&](int64_t size, const char* what) {
      if (size % ways_ != 0) refuse(fmt::format("{} {}", size, what), fewer);
    };
    const std::string other = "use cp_size or zero_stage: 3";
    if (model_.experts.count > 0) refuse("experts", other);
    if (model_.has_latent_attention()) refuse("latent attention", other);
    if (model_.wide_query_key_norms) refuse("norms over all heads of a token", other);
    if (model_.alibi || model_.attention_sinks) refuse("attention with numbers of each head's own", other);
    divides(model_.heads, "heads");
    divides(model_.kv_heads, "key/value heads");
    divides(model_.intermediate_size, "features of an MLP");
    const int64_t rows = program_.tensor(program_.interface.tokens).elements();
    if (rows % ways_ != 0) refuse(fmt::format("{} tokens in a micro-batch", rows), "set a max_length that it divides");
  }

  // ---- Shapes

  // Its dimension along an axis, and its storage with it.
  void narrow(TensorId id, size_t axis) {
    Tensor& tensor = program_.tensor(id);
    presume(tensor.dim(axis) % ways_ == 0, "what ranks can split: " + tensor.name);
    const bool counted = tensor.rank_elements > 0;
    tensor.shape[axis].bound /= ways_;
    if (counted) tensor.rank_elements = tensor.elements();
    if (tensor.storage != kNone && narrowed_.insert(tensor.storage).second) program_.storage(tensor.storage).bytes /= ways_;
  }

  // [M, N], [B, T, H, D], lse [B, H, T], or a number for each row of these.
  static size_t split_axis(const Tensor& tensor) {
    constexpr size_t kAxes[] = {0, 0, 1, 1, 2};
    return kAxes[tensor.shape.size()];
  }

  // This rank's rows of what is there for each, and is not of a product.
  void keep_rows(TensorId id) {
    if (!rows_.insert(id).second) return;
    narrow(id, 0);
    program_.tensor(id).rank_group = RankGroup::batch;
    program_.tensor(id).rank_elements = program_.tensor(id).elements();
  }

  // All ranks' rows, like this rank's.
  TensorId all_rows(TensorId own, const char* end) {
    const Tensor like = program_.tensor(own);
    std::vector<Extent> shape = like.shape;
    shape[0].bound *= ways_;
    const TensorId all = program_.make(like.name + end, like.dtype, std::move(shape), Role::temporary);
    if (program_.mesh.context > 1) {
      program_.tensor(all).rank_group = RankGroup::context;
      program_.tensor(all).rank_elements = program_.tensor(all).elements();
    }
    return all;
  }

  void split(TensorId id, const Segments& segments) {
    if (!split_.emplace(id, segments).second) return;
    narrow(id, split_axis(program_.tensor(id)));
  }

  void slice(Weight& weight, size_t axis, Segments segments) {
    if (weight.slice) return;
    weight.slice = {.group = RankGroup::tensor, .axis = axis, .segments = std::move(segments)};
    narrow(weight.tensor, axis);
  }

  Weight* weight_of(TensorId id) {
    for (Weight& weight : program_.weights)
      if (weight.tensor == id) return &weight;
    return nullptr;
  }

  // What one product makes of several things.
  Segments segments_of(const Parameter& parameter) const {
    const int64_t D = model_.head_size;
    if (parameter.part == "query_key_value") return {model_.heads * D, model_.kv_heads * D, model_.kv_heads * D};
    if (parameter.part == "gate_up") return {model_.intermediate_size, model_.intermediate_size};
    return {parameter.output_features()};
  }

  // ---- Ops

  void visit(Region& region) {
    gathered_.clear();
    for (const Carry& carry : region.carries)
      for (const TensorId tensor : {carry.before, carry.in, carry.out, carry.after}) keep_rows(tensor);
    for (size_t i = 0; i < region.items.size(); ++i) {
      if (Region* child = region.items[i].region()) visit(*child);
      if (region.items[i].op() != nullptr) i = visit(region, i);
    }
  }

  // The last of the items that this one becomes.
  size_t visit(Region& region, size_t at) {
    Op& op = *region.items[at].op();
    if (const auto linear = linears_.find(op.id); linear != linears_.end() && op.id != kNone)
      return split_product(region, at, program_.linears[linear->second]);
    const Segments* segments = nullptr;
    for (const Operand& operand : op.operands)
      if (const auto found = split_.find(operand.tensor); found != split_.end()) segments = &found->second;
    if (segments == nullptr) {
      note_rows(op);
      return at;
    }
    const Segments of = *segments;
    for (const Operand& operand : op.operands) {
      if (operand.access == Access::write) split(operand.tensor, of);
      if (op.kind == OpKind::add_bias && operand.slot == Slot::bias) slice(*weight_of(operand.tensor), 0, of);
    }
    return at;
  }

  void note_rows(const Op& op) {
    if (op.kind == OpKind::rope_table || op.kind == OpKind::all_gather || op.kind == OpKind::reduce_scatter) return;
    for (const Operand& operand : op.operands)
      if (program_.tensor(operand.tensor).storage != kNone &&
          program_.storage(program_.tensor(operand.tensor).storage).lifetime == Lifetime::computed)
        keep_rows(operand.tensor);
  }

  size_t split_product(Region& region, size_t at, Linear& linear) {
    Weight& weight = program_.weights[static_cast<size_t>(linear.weight)];
    const size_t output_axis = weight.parameter.input_features_first ? 1 : 0;
    if (split_.contains(linear.input)) {
      slice(weight, 1 - output_axis, {weight.parameter.input_features()});
      return sum_products(region, at, linear);
    }
    slice(weight, output_axis, segments_of(weight.parameter));
    split(linear.output, weight.slice->segments);
    return gather_input(region, at, linear);
  }

  // All ranks' rows before the product, once for all products that read them.
  size_t gather_input(Region& region, size_t at, Linear& linear) {
    const TensorId own = linear.input;
    keep_rows(own);
    const auto [found, is_new] = gathered_.emplace(own, kNone);
    if (is_new) found->second = all_rows(own, ".gathered");
    linear.input = found->second;
    operand(*region.items[at].op(), Slot::a).tensor = linear.input;
    if (!is_new) return at;
    region.items.insert(region.items.begin() + static_cast<int64_t>(at),
                        Item{all_gather(program_, own, linear.input, {RankGroup::tensor, Lane::compute})});
    return at + 1;
  }

  // Each rank's rows of the sum, behind the product.
  size_t sum_products(Region& region, size_t at, Linear& linear) {
    const TensorId own = linear.output;
    program_.tensor(own).dtype = DType::f32;  // as sums are
    keep_rows(own);
    program_.storage(program_.tensor(own).storage).bytes = program_.tensor(own).bytes();
    linear.output = all_rows(own, ".partial");
    operand(*region.items[at].op(), Slot::c).tensor = linear.output;
    region.items.insert(region.items.begin() + static_cast<int64_t>(at) + 1,
                        Item{reduce_scatter(program_, linear.output, own, false, {RankGroup::tensor, Lane::compute})});
    return at + 1;
  }

  Program& program_;
  const ModelSpec& model_;
  int64_t ways_;
  std::map<OpId, size_t> linears_;
  std::map<TensorId, Segments> split_;     // by features or heads
  std::map<TensorId, TensorId> gathered_;  // in this region: all rows of these
  std::set<TensorId> rows_;                // of which ranks have rows of their own
  std::set<StorageId> narrowed_;
};

}  // namespace

void passes::split_products(Program& program, const StepRequest& request) {
  if (program.mesh.tensor == 1) return;
  presume(program.count(Section::evaluate) + program.count(Section::backward) == 0, "a forward, and no copies of it");
  SplitProducts(program, request.model).run();
}

}  // namespace snug
