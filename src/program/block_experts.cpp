// A mixture of experts in the MLP's place: routing, the experts' products, and what their tokens get back.

#include "op/routed_rows.h"
#include "program/block_builder.h"

namespace snug {

// Each routed row gets its expert's row of the biases [E, N].
void BlockBuilder::add_expert_bias(Region& region, const std::string& part, TensorId rows, TensorId tile_experts) {
  Op add{OpKind::add_bias};
  add.updates(Slot::x, rows).reads(Slot::bias, by_part_.at(part + "_bias")).reads(Slot::tile_experts, tile_experts);
  region.add(std::move(add));
}

TensorId BlockBuilder::expert_product(Region& body, const std::string& part, TensorId rows, const Routing& routing) {
  const TensorId weight = by_part_.at(part);
  const TensorId out = activation(part, {program_.tensor(rows).dim(0), program_.tensor(weight).dim(1)});
  Op op{OpKind::expert_matmul};
  op.attributes.transpose_b = true;
  op.attributes.needed_rows = routing.needed;
  op.reads(Slot::a, rows).reads(Slot::b, weight).reads(Slot::tile_experts, routing.tile_experts).writes(Slot::c, out);
  body.add(std::move(op));
  return out;
}

// Which experts each token goes to, and the rows in which experts find their tokens.
BlockBuilder::Routing BlockBuilder::route(Region& body, TensorId x) {
  const int64_t M = tokens(), J = spec_.experts.per_token;
  const RoutedRows routed = routed_rows(M, spec_.experts.count, J);
  const TensorId logits = statistics("router_logits", {M, spec_.experts.count});
  Op router{OpKind::matmul};
  router.attributes.transpose_b = true;
  body.add(std::move(router.reads(Slot::a, x).reads(Slot::b, by_part_.at("router")).writes(Slot::c, logits)));
  if (spec_.experts.biased) {
    Op add{OpKind::add_bias};
    body.add(std::move(add.updates(Slot::x, logits).reads(Slot::bias, by_part_.at("router_bias"))));
  }
  const auto indices = [&](const char* name, std::vector<Extent> shape) {
    return program_.make(name, DType::i32, std::move(shape), Role::temporary);
  };
  const Routing routing = {.weights = statistics("route_weights", {M, J}),
                           .expert_rows = indices("expert_rows", {M, J}),
                           .row_tokens = indices("row_tokens", {routed.rows}),
                           .tile_experts = indices("tile_experts", {routed.rows / routed.tile}),
                           .rows = routed.rows,
                           .needed = M * J};
  Op route{OpKind::route};
  route.attributes.normalize_weights = spec_.experts.normalize;
  route.attributes.sigmoid_scores = spec_.experts.sigmoid_scores;
  route.attributes.scale = spec_.experts.weight_scale;
  route.reads(Slot::logits, logits).writes(Slot::route_weights, routing.weights);
  if (const TensorId correction = program_.interface.router_correction; correction != kNone)
    route.reads(Slot::bias, correction);
  route.writes(Slot::expert_rows, routing.expert_rows).writes(Slot::row_tokens, routing.row_tokens);
  body.add(std::move(route.writes(Slot::tile_experts, routing.tile_experts)));
  return routing;
}

// The experts' gates and ups, by two products or by one.
std::array<TensorId, 2> BlockBuilder::expert_gate_up(Region& body, TensorId rows, const Routing& routing) {
  if (!spec_.experts.fused)
    return {expert_product(body, "expert_gate", rows, routing), expert_product(body, "expert_up", rows, routing)};
  const TensorId fused = expert_product(body, "expert_gate_up", rows, routing);
  if (spec_.experts.biased) add_expert_bias(body, "expert_gate_up", fused, routing.tile_experts);
  const std::vector<Extent> half = {routing.rows, spec_.experts.intermediate_size};
  const std::array<TensorId, 2> parts = {activation("expert_gate", half), activation("expert_up", half)};
  Op split{OpKind::split};
  body.add(std::move(split.reads(Slot::x, fused).writes(Slot::a, parts[0]).writes(Slot::b, parts[1])));
  return parts;
}

// A mixture of experts in the MLP's place, and a plain MLP beside it where all tokens share some.
TensorId BlockBuilder::sparse_mlp(Region& body, TensorId x) {
  const int64_t M = tokens(), F = spec_.experts.intermediate_size;
  const Routing routing = route(body, x);
  const TensorId rows = activation("routed", {routing.rows, spec_.hidden_size});
  Op gather{OpKind::gather_rows};
  gather.reads(Slot::x, x).reads(Slot::expert_rows, routing.expert_rows).reads(Slot::row_tokens, routing.row_tokens);
  body.add(std::move(gather.writes(Slot::out, rows)));
  const auto [gate, up] = expert_gate_up(body, rows, routing);
  const TensorId gated = activation("gated", {routing.rows, F});
  Op op{OpKind::activation};
  op.attributes.activation = spec_.activation;
  body.add(std::move(op.reads(Slot::gate, gate).reads(Slot::up, up).writes(Slot::out, gated)));
  const TensorId down = expert_product(body, "expert_down", gated, routing);
  if (spec_.experts.biased) add_expert_bias(body, "expert_down", down, routing.tile_experts);
  const TensorId out = activation("combined", {M, spec_.hidden_size});
  Op combine{OpKind::combine};
  combine.reads(Slot::rows, down).reads(Slot::route_weights, routing.weights);
  combine.reads(Slot::expert_rows, routing.expert_rows).reads(Slot::row_tokens, routing.row_tokens);
  body.add(std::move(combine.writes(Slot::out, out)));
  if (spec_.experts.shared == 0) return out;
  const TensorId shared = gated_mlp(body, "shared_", x, spec_.experts.shared_size);
  return sum(body, out, shared, activation("mlp_sum", {M, spec_.hidden_size}));
}

}  // namespace snug
