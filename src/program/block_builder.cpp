#include "program/block_builder.h"

#include <cmath>

namespace snug {

std::vector<LayerRun> layer_runs(const ModelSpec& spec) {
  const bool has_experts = spec.experts.count > 0;
  const int64_t dense = spec.experts.dense_layers;
  std::vector<LayerRun> runs;
  if (dense > 0) runs.push_back({.name = "dense_blocks", .first = 0, .count = dense});
  runs.push_back({.name = "blocks", .first = dense, .count = spec.layers - dense, .has_experts = has_experts});
  return runs;
}

void BlockBuilder::add_weights() {
  program_.layers = spec_.layers;
  program_.local_layers = spec_.local_layers;
  for (Parameter& parameter : parameters_of(spec_)) {
    Tensor tensor{.name = parameter.name, .dtype = precision_.weights};
    for (int64_t size : parameter.shape) tensor.shape.emplace_back(size);
    Weight weight{.parameter = parameter, .source = parameter.name, .tensor = program_.add_tensor(std::move(tensor))};
    weight.decays = parameter.kind != ParameterKind::norm && parameter.kind != ParameterKind::bias;
    by_part_[parameter.part] = weight.tensor;
    weights_[weight.tensor] = static_cast<int32_t>(program_.weights.size());
    program_.weights.push_back(std::move(weight));
  }
  embedding_ = by_part_.at("embedding");
  head_ = spec_.tied_embeddings ? embedding_ : by_part_.at("head");
}

TensorId BlockBuilder::activation(std::string name, std::vector<Extent> shape) {
  return program_.make(std::move(name), precision_.activations, std::move(shape), Role::temporary);
}

TensorId BlockBuilder::statistics(std::string name, std::vector<Extent> shape) {
  return program_.make(std::move(name), DType::f32, std::move(shape), Role::temporary);
}

TensorId BlockBuilder::norm(Region& region, const std::string& part, TensorId x, TensorId into) {
  const TensorId weight = by_part_.at(part);
  const std::vector<Extent> shape = program_.tensor(x).shape;
  const int64_t rows = program_.tensor(x).elements() / program_.tensor(weight).elements();
  const TensorId out = into == kNone ? activation(part, shape) : into;
  const bool layer_norm = spec_.norm == NormKind::layer;
  Op op{layer_norm ? OpKind::layer_norm : OpKind::rms_norm};
  op.attributes.epsilon = spec_.norm_eps;
  op.attributes.weight_offset = spec_.norms_from_zero ? 1.0 : 0.0;
  op.reads(Slot::x, x).reads(Slot::weight, weight);
  if (layer_norm) op.reads(Slot::bias, by_part_.at(part + "_bias"));
  op.writes(Slot::out, out);
  if (layer_norm) op.writes(Slot::mean, statistics(part + ".mean", {rows}));
  op.writes(Slot::rstd, statistics(part + ".rstd", {rows}));
  region.add(std::move(op));
  return out;
}

TensorId BlockBuilder::linear(Region& region, const std::string& part, TensorId x, std::vector<Extent> shape) {
  const TensorId out = activation(part, std::move(shape));
  Op op{OpKind::matmul};
  op.attributes.transpose_b = !spec_.input_features_first;
  op.reads(Slot::a, x).reads(Slot::b, by_part_.at(part)).writes(Slot::c, out);
  program_.linears.push_back(
      {.weight = weights_.at(by_part_.at(part)), .input = x, .output = out, .product = program_.identify(op)});
  region.add(std::move(op));
  if (const auto bias = by_part_.find(part + "_bias"); bias != by_part_.end()) {
    Op add{OpKind::add_bias};
    add.updates(Slot::x, out).reads(Slot::bias, bias->second);
    region.add(std::move(add));
  }
  return out;
}

TensorId BlockBuilder::sum(Region& region, TensorId a, TensorId b, TensorId out) {
  Op op{OpKind::add};
  op.reads(Slot::a, a).reads(Slot::b, b).writes(Slot::out, out);
  region.add(std::move(op));
  return out;
}

// Queries, keys and values, by one product or three.
std::array<TensorId, 3> BlockBuilder::project(Region& body, TensorId x) {
  const int64_t B = shape_.batch, T = shape_.seq_len, D = spec_.head_size;
  const std::vector<Extent> queries = {B, T, spec_.heads, D}, keys = {B, T, spec_.kv_heads, D};
  if (!spec_.fused_projections)
    return {linear(body, "query", x, queries), linear(body, "key", x, keys), linear(body, "value", x, keys)};
  const TensorId fused = linear(body, "query_key_value", x, {B * T, (spec_.heads + 2 * spec_.kv_heads) * D});
  const std::array<TensorId, 3> parts = {activation("query", queries), activation("key", keys), activation("value", keys)};
  Op split{OpKind::split};
  split.reads(Slot::x, fused).writes(Slot::a, parts[0]).writes(Slot::b, parts[1]).writes(Slot::c, parts[2]);
  body.add(std::move(split));
  return parts;
}

void BlockBuilder::rotate(Region& region, TensorId x, int64_t first_column) {
  if (spec_.learned_positions || spec_.alibi) return;
  Op op{OpKind::rope};
  op.attributes.first_column = first_column;
  op.updates(Slot::x, x).reads(Slot::cosine, rotation_.cosine).reads(Slot::sine, rotation_.sine);
  if (local_rotation_.cosine != kNone)
    op.reads(Slot::local_cosine, local_rotation_.cosine).reads(Slot::local_sine, local_rotation_.sine);
  region.add(std::move(op));
}

// Queries, keys and values as attention reads them: normalized and rotated.
std::array<TensorId, 3> BlockBuilder::queries_keys_values(Region& body, TensorId x) {
  auto [q, k, v] = project(body, x);
  if (spec_.query_key_norms) {
    q = norm(body, "query_norm", q);
    k = norm(body, "key_norm", k);
  }
  rotate(body, q);
  rotate(body, k);
  return {q, k, v};
}

TensorId BlockBuilder::attend(Region& body, TensorId x) {
  const auto [q, k, v] = spec_.has_latent_attention() ? latent_queries_keys_values(body, x) : queries_keys_values(body, x);
  return linear(body, "output", attention(body, q, k, v), {tokens(), spec_.hidden_size});
}

// q [B, T, H, D], k [B, T, K, D], v [B, T, K, its size] -> [B, T, H, size of v].
TensorId BlockBuilder::attention(Region& body, TensorId q, TensorId k, TensorId v) {
  const int64_t B = shape_.batch, T = shape_.seq_len;
  const TensorId attended = activation("attended", {B, T, spec_.heads, spec_.value_size()});
  const bool cached = key_cache_ != kNone;
  Op op{cached ? OpKind::cached_attention : OpKind::attention};
  op.attributes.scale =
      spec_.attention_scale > 0 ? spec_.attention_scale : 1.0 / std::sqrt(static_cast<double>(spec_.head_size));
  op.attributes.softcap = spec_.attention_softcap;
  op.attributes.window = spec_.sliding_window;
  op.reads(Slot::q, q).reads(Slot::k, k).reads(Slot::v, v);
  if (spec_.attention_sinks) op.reads(Slot::bias, by_part_.at("sinks"));
  if (cached) {
    op.reads(Slot::positions, program_.interface.positions).writes(Slot::out, attended);
    op.updates(Slot::key_cache, key_cache_).updates(Slot::value_cache, value_cache_);
  } else {
    op.reads(Slot::document_start, program_.interface.document_start).writes(Slot::out, attended);
    op.writes(Slot::lse, statistics("lse", {B, spec_.heads, T}));
  }
  body.add(std::move(op));
  return attended;
}

TensorId BlockBuilder::mlp(Region& body, TensorId x, bool has_experts) {
  if (has_experts) return sparse_mlp(body, x);
  const int64_t M = tokens(), F = spec_.intermediate_size;
  if (spec_.gated_mlp && !spec_.fused_gate_up) return gated_mlp(body, "", x, F);
  Op op{OpKind::activation};
  op.attributes.activation = spec_.activation;
  if (!spec_.gated_mlp) {
    op.reads(Slot::gate, linear(body, "up", x, {M, F}));
  } else {
    const TensorId fused = linear(body, "gate_up", x, {M, 2 * F});
    const TensorId gate = activation("gate", {M, F}), up = activation("up", {M, F});
    Op split{OpKind::split};
    split.reads(Slot::x, fused).writes(Slot::a, gate).writes(Slot::b, up);
    body.add(std::move(split));
    op.reads(Slot::gate, gate).reads(Slot::up, up);
  }
  const TensorId gated = activation("gated", {M, F});
  op.writes(Slot::out, gated);
  body.add(std::move(op));
  return linear(body, "down", gated, {M, spec_.hidden_size});
}

TensorId BlockBuilder::gated_mlp(Region& body, const std::string& part, TensorId x, int64_t width) {
  const int64_t M = tokens();
  Op op{OpKind::activation};
  op.attributes.activation = spec_.activation;
  const TensorId gate = linear(body, part + "gate", x, {M, width});
  op.reads(Slot::gate, gate).reads(Slot::up, linear(body, part + "up", x, {M, width}));
  const TensorId gated = activation(part + "gated", {M, width});
  op.writes(Slot::out, gated);
  body.add(std::move(op));
  return linear(body, part + "down", gated, {M, spec_.hidden_size});
}

// x -> x + attention(norm(x)) -> + mlp(norm(.)), each with a second norm before the sum where the family has one.
Region BlockBuilder::block(const LayerRun& run, TensorId x_in, TensorId x_out) {
  Region body{.name = run.name,
              .section = Section::blocks,
              .stage = Stage::forward,
              .axis = Axis::layer,
              .first = run.first,
              .count = run.count};
  if (spec_.parallel != ParallelBlock::none) return parallel_block(std::move(body), x_in, x_out);
  TensorId attended = attend(body, spec_.pre_norms ? norm(body, "attention_norm", x_in) : x_in);
  if (spec_.post_norms) attended = norm(body, "attention_post_norm", attended);
  const TensorId x_mid = sum(body, x_in, attended, activation("x_mid", {tokens(), spec_.hidden_size}));
  TensorId down = mlp(body, spec_.pre_norms ? norm(body, "mlp_norm", x_mid) : x_mid, run.has_experts);
  if (spec_.post_norms) down = norm(body, "mlp_post_norm", down);
  sum(body, x_mid, down, x_out);
  return body;
}

// x -> x + attention(norm(x)) + mlp(norm(x)), the norms one and the same or one each.
Region BlockBuilder::parallel_block(Region body, TensorId x_in, TensorId x_out) {
  const TensorId to_attention = norm(body, "attention_norm", x_in);
  const TensorId to_mlp = spec_.parallel == ParallelBlock::two_norms ? norm(body, "mlp_norm", x_in) : to_attention;
  const TensorId x_mid = sum(body, x_in, attend(body, to_attention), activation("x_mid", {tokens(), spec_.hidden_size}));
  sum(body, x_mid, mlp(body, to_mlp, false), x_out);
  return body;
}

}  // namespace snug
