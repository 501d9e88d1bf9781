#include "train/support_experts.h"
#include "run/settle_process.h"

#include <algorithm>
#include <map>

#include "op/routed_rows.h"
#include "plan/workspaces.h"
#include "program/adjoint.h"
#include "program/passes/optimizer.h"
#include "program/passes/recompute.h"
#include "program/rules.h"
#include "run/in_place.h"
#include "train/trainer.h"

namespace snug::testing {

ExpertNames mixtral_names() {
  return {"model.layers.{}.block_sparse_moe.", "experts.{e}.w1", "experts.{e}.w3", "experts.{e}.w2"};
}

ExpertNames qwen3_names() {
  return {"model.layers.{}.mlp.", "experts.{e}.gate_proj", "experts.{e}.up_proj", "experts.{e}.down_proj"};
}

namespace {

class ExpertBuilder {
 public:
  ExpertBuilder(const ExpertSizes& sizes, const ExpertNames& names, const ExpertOptions& options)
      : s_(sizes), names_(names), options_(options), routed_(routed_rows(sizes.tokens, sizes.experts, sizes.choices)) {}

  Program build() {
    p_.layers = s_.layers;
    p_.batch = 1;
    p_.seq_len = s_.tokens;
    p_.micro_batches = 1;
    const int64_t E = s_.experts, F = s_.width, C = s_.cols;
    embedding_ = weight("model.embed_tokens.weight", {s_.vocabulary, C}, ParameterKind::embedding, false);
    router_ = weight(names_.prefix + "gate.weight", {E, C}, ParameterKind::linear, true);
    gate_ = weight(names_.prefix + names_.gate + ".weight", {E, F, C}, ParameterKind::linear, true);
    up_ = weight(names_.prefix + names_.up + ".weight", {E, F, C}, ParameterKind::linear, true);
    down_ = weight(names_.prefix + names_.down + ".weight", {E, C, F}, ParameterKind::linear, true);
    head_ = weight("lm_head.weight", {s_.vocabulary, C}, ParameterKind::head, false);
    for (auto [id, name, dtype, size] : {std::tuple{&p_.interface.tokens, "tokens", DType::i32, s_.tokens},
                                         {&p_.interface.target_rows, "target_rows", DType::i32, s_.tokens},
                                         {&p_.interface.target_tokens, "target_tokens", DType::i32, s_.tokens},
                                         {&p_.interface.scalars, "scalars", DType::f64, kScalarCount}})
      *id = p_.make(name, dtype, {size}, Role::batch, Lifetime::run);
    p_.root.name = "root";
    Region micro_batch{.name = "micro_batch", .section = Section::micro_batch, .axis = Axis::micro_batch};
    micro_batch.add(forward());
    Region step{.name = "step", .section = Section::step};
    step.add(std::move(micro_batch));
    p_.root.add(std::move(step));
    for (Weight& weight : p_.weights)
      weight.trainable = options_.train_experts || weight.tensor == embedding_ || weight.tensor == router_;
    differentiate(p_);
    recompute_blocks(p_, options_.recomputed);
    Precision precision;
    precision.weights = options_.dtype;
    place_weights(p_, precision);
    Recipe recipe;
    add_optimizer(p_, recipe);
    for_each_op(p_.root, [&](const Op& op, const Region&) { rule_of(op.kind).check(p_, op); });
    return std::move(p_);
  }

 private:
  TensorId weight(std::string name, std::vector<int64_t> shape, ParameterKind kind, bool per_layer) {
    Tensor tensor{.name = name, .dtype = options_.dtype};
    for (int64_t size : shape) tensor.shape.emplace_back(size);
    const int64_t experts = shape.size() == 3 ? shape[0] : 0;
    Parameter parameter{.name = name, .shape = std::move(shape), .kind = kind, .per_layer = per_layer, .experts = experts};
    p_.weights.push_back({.parameter = parameter, .source = name, .tensor = p_.add_tensor(std::move(tensor))});
    return p_.weights.back().tensor;
  }
  TensorId make(const char* name, DType dtype, std::vector<Extent> shape) {
    return p_.make(name, dtype, std::move(shape), Role::temporary);
  }
  TensorId activation(const char* name, std::vector<Extent> shape) { return make(name, options_.dtype, std::move(shape)); }

  TensorId expert_product(Region& body, const char* name, TensorId rows, TensorId weight, TensorId tile_experts) {
    const TensorId out = activation(name, {routed_.rows, p_.tensor(weight).dim(1)});
    Op op{OpKind::expert_matmul};
    op.attributes = {.transpose_b = true, .needed_rows = s_.tokens * s_.choices};
    op.reads(Slot::a, rows).reads(Slot::b, weight).reads(Slot::tile_experts, tile_experts).writes(Slot::c, out);
    body.add(std::move(op));
    return out;
  }

  TensorId sparse_mlp(Region& body, TensorId x) {
    const TensorId logits = make("router_logits", DType::f32, {s_.tokens, s_.experts});
    Op router{OpKind::matmul};
    router.attributes.transpose_b = true;
    body.add(std::move(router.reads(Slot::a, x).reads(Slot::b, router_).writes(Slot::c, logits)));

    const TensorId weights = make("route_weights", DType::f32, {s_.tokens, s_.choices});
    const TensorId expert_rows = make("expert_rows", DType::i32, {s_.tokens, s_.choices});
    const TensorId row_tokens = make("row_tokens", DType::i32, {routed_.rows});
    const TensorId tile_experts = make("tile_experts", DType::i32, {routed_.rows / routed_.tile});
    Op route{OpKind::route};
    route.attributes.normalize_weights = s_.normalize;
    route.reads(Slot::logits, logits).writes(Slot::route_weights, weights).writes(Slot::expert_rows, expert_rows);
    body.add(std::move(route.writes(Slot::row_tokens, row_tokens).writes(Slot::tile_experts, tile_experts)));

    const TensorId rows = activation("routed", {routed_.rows, s_.cols});
    Op gather{OpKind::gather_rows};
    gather.reads(Slot::x, x).reads(Slot::expert_rows, expert_rows).reads(Slot::row_tokens, row_tokens);
    body.add(std::move(gather.writes(Slot::out, rows)));

    const TensorId gate = expert_product(body, "gate", rows, gate_, tile_experts);
    const TensorId up = expert_product(body, "up", rows, up_, tile_experts);
    const TensorId gated = activation("gated", {routed_.rows, s_.width});
    body.add(std::move(Op{OpKind::activation}.reads(Slot::gate, gate).reads(Slot::up, up).writes(Slot::out, gated)));
    const TensorId down = expert_product(body, "down", gated, down_, tile_experts);

    const TensorId out = activation("combined", {s_.tokens, s_.cols});
    Op combine{OpKind::combine};
    combine.reads(Slot::rows, down).reads(Slot::route_weights, weights).reads(Slot::expert_rows, expert_rows);
    body.add(std::move(combine.reads(Slot::row_tokens, row_tokens).writes(Slot::out, out)));
    return out;
  }

  Region forward() {
    Region region{.name = "forward", .section = Section::forward};
    const TensorId x_first = activation("x", {s_.tokens, s_.cols});
    Storage& stream = p_.storage(p_.tensor(x_first).storage);
    stream.instances = s_.layers + 1;
    stream.role = Role::activation;
    const auto instance = [&](const char* name, int64_t base, bool by_layer) {
      const TensorId id = p_.view(x_first, name, p_.tensor(x_first).shape);
      p_.tensor(id).instance = base;
      p_.tensor(id).instance_by_layer = by_layer;
      return id;
    };
    const TensorId x_in = instance("x_in", 0, true), x_out = instance("x_out", 1, true);
    const TensorId x_last = instance("x_last", s_.layers, false);
    Op embedding{OpKind::embedding};
    embedding.reads(Slot::weight, embedding_).reads(Slot::ids, p_.interface.tokens).writes(Slot::out, x_first);
    region.add(std::move(embedding));
    Region body{.name = "blocks", .section = Section::blocks, .axis = Axis::layer, .count = s_.layers};
    const TensorId mlp = sparse_mlp(body, x_in);
    body.add(std::move(Op{OpKind::add}.reads(Slot::a, x_in).reads(Slot::b, mlp).writes(Slot::out, x_out)));
    body.carries.push_back({.before = x_first, .in = x_in, .out = x_out, .after = x_last});
    region.add(std::move(body));
    Op loss{OpKind::head_loss};
    p_.loss = p_.identify(loss);
    loss.reads(Slot::hidden, x_last).reads(Slot::weight, head_);
    loss.reads(Slot::target_rows, p_.interface.target_rows).reads(Slot::target_tokens, p_.interface.target_tokens);
    region.add(std::move(loss.updates(Slot::scalars, p_.interface.scalars)));
    return region;
  }

  const ExpertSizes& s_;
  const ExpertNames& names_;
  const ExpertOptions& options_;
  RoutedRows routed_;
  Program p_;
  TensorId embedding_ = kNone, router_ = kNone, gate_ = kNone, up_ = kNone, down_ = kNone, head_ = kNone;
};

Program fitted(Program program, const Target& target) {
  fit_to_target(program, target);
  return program;
}

}  // namespace

Program build_expert_blocks(const ExpertSizes& sizes, const ExpertNames& names, const ExpertOptions& options) {
  return ExpertBuilder(sizes, names, options).build();
}

ExpertRun::ExpertRun(Program differentiated, const Target& target, int64_t red_zone)
    : program(fitted(std::move(differentiated), target)), layout(lay_out(program, red_zone)) {
  settle_process(target.threads);
  executor = std::make_unique<Executor>(program, layout);
  const auto scalars = InPlace::elements<double>(*executor, program.interface.scalars);
  std::fill(scalars.begin(), scalars.end(), 0.0);
}

double ExpertRun::forward_backward(const std::vector<int32_t>& targets) {
  const Interface& io = program.interface;
  for (size_t i = 0; i < targets.size(); ++i) {
    InPlace::elements<int32_t>(*executor, io.tokens)[i] = static_cast<int32_t>(i);
    InPlace::elements<int32_t>(*executor, io.target_rows)[i] = static_cast<int32_t>(i);
    InPlace::elements<int32_t>(*executor, io.target_tokens)[i] = targets[i];
  }
  executor->set_scalar(Scalar::target_count, static_cast<double>(targets.size()));
  executor->set_scalar(Scalar::inverse_labels, 1.0 / static_cast<double>(targets.size()));
  executor->set_scalar(Scalar::loss_scale, 1);
  executor->set_scalar(Scalar::loss_sum, 0);
  executor->run(program.region(Section::clear), *this);
  executor->run(program.region(Section::micro_batch), *this, 1);
  return executor->scalar(Scalar::loss_sum);
}

void ExpertRun::run(const Op&, int64_t) {}

}  // namespace snug::testing
