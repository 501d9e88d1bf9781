#include "program/builder.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "base/scalars.h"
#include "model/families.h"
#include "program/ops/experts.h"

namespace snug {

namespace {

// Letters as everywhere: B, T, C, F, V, H, K, D; x is the residual stream.
class Builder {
 public:
  Builder(const ModelSpec& spec, const Precision& precision, const BatchShape& shape)
      : spec_(spec), precision_(precision), shape_(shape) {}

  Program build() {
    add_weights();
    if (is_plan_only(spec_))
      program_.notes.push_back("models of family " + spec_.family + " can be planned, but not be trained yet");
    if (spec_.dropout > 0)
      program_.notes.push_back("transformers trains this model with dropout " + fmt::format("{}", spec_.dropout) +
                               "; here it is trained without");
    program_.batch = shape_.batch;
    program_.seq_len = shape_.seq_len;
    program_.micro_batches = shape_.micro_batches;
    add_interface();
    Region micro_batch{
        .name = "micro_batch", .stage = Stage::forward, .axis = Axis::micro_batch, .count = shape_.micro_batches};
    micro_batch.add(batch_region());
    micro_batch.add(forward_region());
    Region step{.name = "step"};
    step.add(std::move(micro_batch));
    program_.root.name = "root";
    program_.root.add(std::move(step));
    return std::move(program_);
  }

  Program build_generation(const GenerationShape& shape) {
    add_weights();
    program_.batch = program_.micro_batches = 1;
    program_.seq_len = program_.generation.capacity = shape.capacity;
    add_tables();
    add_caches(shape.capacity);
    hidden_ = program_.make("hidden", precision_.activations, {1, spec_.hidden_size}, Role::temporary, Lifetime::run);
    program_.root.name = "root";
    for (int64_t rows : shape.steps) program_.root.add(generation_step(rows));
    program_.root.add(generation_head());
    return std::move(program_);
  }

 private:
  void add_weights() {
    program_.layers = spec_.layers;
    program_.local_layers = spec_.local_layers;
    for (Parameter& parameter : parameters_of(spec_)) {
      Tensor tensor{.name = parameter.name, .dtype = precision_.weights};
      for (int64_t size : parameter.shape) tensor.shape.emplace_back(size);
      Weight weight{.parameter = parameter, .source = parameter.name, .tensor = program_.add_tensor(std::move(tensor))};
      weight.decays = parameter.kind != ParameterKind::norm && parameter.kind != ParameterKind::bias;
      by_part_[parameter.part] = weight.tensor;
      program_.weights.push_back(std::move(weight));
    }
    embedding_ = by_part_.at("embedding");
    head_ = spec_.tied_embeddings ? embedding_ : by_part_.at("head");
  }

  TensorId batch_tensor(const char* name, std::vector<Extent> shape) {
    return program_.make(name, DType::i32, std::move(shape), Role::batch);
  }

  void add_interface() {
    const int64_t rows = shape_.batch * shape_.seq_len;
    Interface& io = program_.interface;
    const Extent targets(rows, static_cast<int32_t>(Scalar::target_count));
    io.tokens = batch_tensor("tokens", {rows});
    io.positions = batch_tensor("positions", {rows});
    io.document_start = batch_tensor("document_start", {shape_.batch, shape_.seq_len});
    io.target_rows = batch_tensor("target_rows", {targets});
    io.target_tokens = batch_tensor("target_tokens", {targets});
    add_tables();
  }

  // What every step shares and the host fills once.
  void add_tables() {
    Interface& io = program_.interface;
    io.scalars = program_.make("scalars", DType::f64, {kScalarCount}, Role::batch, Lifetime::run);
    if (spec_.learned_positions) return;
    const auto frequencies = [&](const char* name) {
      return program_.make(name, DType::f32, {spec_.rotated() / 2}, Role::batch, Lifetime::run);
    };
    io.inverse_frequency = frequencies("inverse_frequency");
    if (spec_.local_rope_theta > 0) io.local_inverse_frequency = frequencies("local_inverse_frequency");
  }

  Region batch_region() {
    Region region{.name = "batch", .stage = Stage::forward};
    const Interface& io = program_.interface;
    Op op{OpKind::batch, Lane::compute};
    op.writes(Slot::ids, io.tokens).writes(Slot::positions, io.positions).writes(Slot::document_start, io.document_start);
    op.writes(Slot::target_rows, io.target_rows)
        .writes(Slot::target_tokens, io.target_tokens)
        .updates(Slot::scalars, io.scalars);
    region.add(std::move(op));
    return region;
  }

  TensorId activation(std::string name, std::vector<Extent> shape) {
    return program_.make(std::move(name), precision_.activations, std::move(shape), Role::temporary);
  }

  TensorId statistics(std::string name, std::vector<Extent> shape) {  // fp32 whatever the activations are
    return program_.make(std::move(name), DType::f32, std::move(shape), Role::temporary);
  }

  // Rows of the weight's length: [M, C], or heads [B, T, H, D].
  TensorId norm(Region& region, const std::string& part, TensorId x, TensorId into = kNone) {
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

  TensorId linear(Region& region, const std::string& part, TensorId x, std::vector<Extent> shape) {
    const TensorId out = activation(part, std::move(shape));
    Op op{OpKind::matmul};
    op.attributes.transpose_b = !spec_.input_features_first;
    op.reads(Slot::a, x).reads(Slot::b, by_part_.at(part)).writes(Slot::c, out);
    region.add(std::move(op));
    if (const auto bias = by_part_.find(part + "_bias"); bias != by_part_.end()) {
      Op add{OpKind::add_bias};
      add.updates(Slot::x, out).reads(Slot::bias, bias->second);
      region.add(std::move(add));
    }
    return out;
  }

  TensorId sum(Region& region, TensorId a, TensorId b, TensorId out) {
    Op op{OpKind::add};
    op.reads(Slot::a, a).reads(Slot::b, b).writes(Slot::out, out);
    region.add(std::move(op));
    return out;
  }

  // Each routed row gets its expert's row of the biases [E, N].
  void add_expert_bias(Region& region, const std::string& part, TensorId rows, TensorId tile_experts) {
    Op add{OpKind::add_bias};
    add.updates(Slot::x, rows).reads(Slot::bias, by_part_.at(part + "_bias")).reads(Slot::tile_experts, tile_experts);
    region.add(std::move(add));
  }

  // Queries, keys and values, by one product or three.
  std::array<TensorId, 3> project(Region& body, TensorId x) {
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

  void rotate(Region& region, TensorId x) {
    if (spec_.learned_positions) return;
    Op op{OpKind::rope};
    op.updates(Slot::x, x).reads(Slot::cosine, rotation_.cosine).reads(Slot::sine, rotation_.sine);
    if (local_rotation_.cosine != kNone)
      op.reads(Slot::local_cosine, local_rotation_.cosine).reads(Slot::local_sine, local_rotation_.sine);
    region.add(std::move(op));
  }

  struct Routing {
    TensorId weights, expert_rows, row_tokens, tile_experts;
    int64_t rows, needed;  // with padding; tokens times their experts
  };

  // x [M, C] -> attention(x) [M, C], without norms around it.
  TensorId attend(Region& body, TensorId x) {
    const int64_t B = shape_.batch, T = shape_.seq_len, D = spec_.head_size;
    auto [q, k, v] = project(body, x);
    if (spec_.query_key_norms) {
      q = norm(body, "query_norm", q);
      k = norm(body, "key_norm", k);
    }
    rotate(body, q);
    rotate(body, k);
    const TensorId attended = activation("attended", {B, T, spec_.heads, D});
    const bool cached = key_cache_ != kNone;
    Op attention{cached ? OpKind::cached_attention : OpKind::attention};
    attention.attributes.scale = spec_.attention_scale > 0 ? spec_.attention_scale : 1.0 / std::sqrt(static_cast<double>(D));
    attention.attributes.softcap = spec_.attention_softcap;
    attention.attributes.window = spec_.sliding_window;
    attention.reads(Slot::q, q).reads(Slot::k, k).reads(Slot::v, v);
    if (spec_.attention_sinks) attention.reads(Slot::bias, by_part_.at("sinks"));
    if (cached) {
      attention.reads(Slot::positions, program_.interface.positions).writes(Slot::out, attended);
      attention.updates(Slot::key_cache, key_cache_).updates(Slot::value_cache, value_cache_);
    } else {
      attention.reads(Slot::document_start, program_.interface.document_start).writes(Slot::out, attended);
      attention.writes(Slot::lse, statistics("lse", {B, spec_.heads, T}));
    }
    body.add(std::move(attention));
    return linear(body, "output", attended, {B * T, spec_.hidden_size});
  }

  TensorId expert_product(Region& body, const std::string& part, TensorId rows, const Routing& routing) {
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
  Routing route(Region& body, TensorId x) {
    const int64_t M = shape_.batch * shape_.seq_len, J = spec_.experts.per_token;
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
    route.reads(Slot::logits, logits).writes(Slot::route_weights, routing.weights);
    route.writes(Slot::expert_rows, routing.expert_rows).writes(Slot::row_tokens, routing.row_tokens);
    body.add(std::move(route.writes(Slot::tile_experts, routing.tile_experts)));
    return routing;
  }

  // The experts' gates and ups, by two products or by one.
  std::array<TensorId, 2> expert_gate_up(Region& body, TensorId rows, const Routing& routing) {
    if (!spec_.experts.biased)
      return {expert_product(body, "expert_gate", rows, routing), expert_product(body, "expert_up", rows, routing)};
    const TensorId fused = expert_product(body, "expert_gate_up", rows, routing);
    add_expert_bias(body, "expert_gate_up", fused, routing.tile_experts);
    const std::vector<Extent> half = {routing.rows, spec_.experts.intermediate_size};
    const std::array<TensorId, 2> parts = {activation("expert_gate", half), activation("expert_up", half)};
    Op split{OpKind::split};
    body.add(std::move(split.reads(Slot::x, fused).writes(Slot::a, parts[0]).writes(Slot::b, parts[1])));
    return parts;
  }

  // A mixture of experts in the MLP's place.
  TensorId sparse_mlp(Region& body, TensorId x) {
    const int64_t M = shape_.batch * shape_.seq_len, F = spec_.experts.intermediate_size;
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
    return out;
  }

  // x [M, C] -> mlp(x) [M, C].
  TensorId mlp(Region& body, TensorId x) {
    if (spec_.experts.count > 0) return sparse_mlp(body, x);
    const int64_t M = shape_.batch * shape_.seq_len, F = spec_.intermediate_size;
    Op op{OpKind::activation};
    op.attributes.activation = spec_.activation;
    if (!spec_.gated_mlp) {
      op.reads(Slot::gate, linear(body, "up", x, {M, F}));
    } else if (spec_.fused_projections) {
      const TensorId fused = linear(body, "gate_up", x, {M, 2 * F});
      const TensorId gate = activation("gate", {M, F}), up = activation("up", {M, F});
      Op split{OpKind::split};
      split.reads(Slot::x, fused).writes(Slot::a, gate).writes(Slot::b, up);
      body.add(std::move(split));
      op.reads(Slot::gate, gate).reads(Slot::up, up);
    } else {
      const TensorId gate = linear(body, "gate", x, {M, F});
      op.reads(Slot::gate, gate).reads(Slot::up, linear(body, "up", x, {M, F}));
    }
    const TensorId gated = activation("gated", {M, F});
    op.writes(Slot::out, gated);
    body.add(std::move(op));
    return linear(body, "down", gated, {M, spec_.hidden_size});
  }

  // x -> x + attention(norm(x)) -> + mlp(norm(.)), each with a second norm before the sum where the family has one.
  Region block(TensorId x_in, TensorId x_out) {
    const int64_t M = shape_.batch * shape_.seq_len;
    Region body{.name = "blocks", .stage = Stage::forward, .axis = Axis::layer, .count = spec_.layers};
    if (spec_.parallel != ParallelBlock::none) return parallel_block(std::move(body), x_in, x_out);
    TensorId attended = attend(body, spec_.pre_norms ? norm(body, "attention_norm", x_in) : x_in);
    if (spec_.post_norms) attended = norm(body, "attention_post_norm", attended);
    const TensorId x_mid = sum(body, x_in, attended, activation("x_mid", {M, spec_.hidden_size}));
    TensorId down = mlp(body, spec_.pre_norms ? norm(body, "mlp_norm", x_mid) : x_mid);
    if (spec_.post_norms) down = norm(body, "mlp_post_norm", down);
    sum(body, x_mid, down, x_out);
    return body;
  }

  // x -> x + attention(norm(x)) + mlp(norm(x)), the norms one and the same or one each.
  Region parallel_block(Region body, TensorId x_in, TensorId x_out) {
    const TensorId to_attention = norm(body, "attention_norm", x_in);
    const TensorId to_mlp = spec_.parallel == ParallelBlock::two_norms ? norm(body, "mlp_norm", x_in) : to_attention;
    const TensorId x_mid =
        sum(body, x_in, attend(body, to_attention), activation("x_mid", {shape_.batch * shape_.seq_len, spec_.hidden_size}));
    sum(body, x_mid, mlp(body, to_mlp), x_out);
    return body;
  }

  struct Rotation {
    TensorId cosine = kNone, sine = kNone;
  };

  Rotation rotation_table(Region& region, const char* name, TensorId frequencies, double scale) {
    const int64_t M = shape_.batch * shape_.seq_len, half = spec_.rotated() / 2;
    const Rotation table = {statistics(std::string(name) + "cosine", {M, half}),
                            statistics(std::string(name) + "sine", {M, half})};
    Op op{OpKind::rope_table};
    op.attributes.scale = scale;
    op.reads(Slot::positions, program_.interface.positions).reads(Slot::inverse_frequency, frequencies);
    op.writes(Slot::cosine, table.cosine).writes(Slot::sine, table.sine);
    region.add(std::move(op));
    return table;
  }

  TensorId embed(Region& region, TensorId table, TensorId ids, TensorId out, double scale) {
    Op embedding{OpKind::embedding};
    embedding.attributes.scale = scale;
    if (spec_.pad_row_is_fixed && ids == program_.interface.tokens) embedding.attributes.untrained_row = spec_.pad_token_id;
    embedding.reads(Slot::weight, table).reads(Slot::ids, ids).writes(Slot::out, out);
    region.add(std::move(embedding));
    return out;
  }

  // Tokens, and where they stand: learned rows are added, rotations are tabulated for the blocks.
  void begin(Region& region, TensorId x_first) {
    const Interface& io = program_.interface;
    double scale = spec_.embedding_scale;  // transformers rounds it to the weights' dtype
    if (precision_.weights == DType::bf16) scale = bf16_to_f32(f32_to_bf16(static_cast<float>(scale)));
    if (precision_.weights == DType::f16) scale = f16_to_f32(f32_to_f16(static_cast<float>(scale)));
    if (spec_.learned_positions) {
      const std::vector<Extent> shape = program_.tensor(x_first).shape;
      const TensorId tokens = embed(region, embedding_, io.tokens, activation("token_rows", shape), scale);
      const TensorId rows = embed(region, by_part_.at("positions"), io.positions, activation("position_rows", shape), 1.0);
      sum(region, tokens, rows, x_first);
      return;
    }
    embed(region, embedding_, io.tokens, x_first, scale);
    rotation_ = rotation_table(region, "", io.inverse_frequency, spec_.rope.attention_factor);
    if (io.local_inverse_frequency != kNone)
      local_rotation_ = rotation_table(region, "local_", io.local_inverse_frequency, 1.0);
  }

  Region forward_region() {
    const int64_t M = shape_.batch * shape_.seq_len;
    const Interface& io = program_.interface;
    Region region{.name = "forward", .stage = Stage::forward};

    // The residual stream: one instance before each block and one after the last.
    const TensorId x_first = activation("x", {M, spec_.hidden_size});
    program_.storage(program_.tensor(x_first).storage).instances = spec_.layers + 1;
    program_.storage(program_.tensor(x_first).storage).role = Role::activation;
    const auto instance = [&](const char* name, int64_t base, bool by_layer) {
      const TensorId id = program_.view(x_first, name, program_.tensor(x_first).shape);
      program_.tensor(id).instance = base;
      program_.tensor(id).instance_by_layer = by_layer;
      return id;
    };
    const TensorId x_in = instance("x_in", 0, true);
    const TensorId x_out = instance("x_out", 1, true);
    const TensorId x_last = instance("x_last", spec_.layers, false);

    begin(region, x_first);
    Region blocks = block(x_in, x_out);
    blocks.carries.push_back({.before = x_first, .in = x_in, .out = x_out, .after = x_last});
    region.add(std::move(blocks));

    const TensorId hidden = norm(region, "final_norm", x_last);
    Op loss{OpKind::head_loss};
    loss.attributes.softcap = spec_.logit_softcap;
    loss.reads(Slot::hidden, hidden).reads(Slot::weight, head_);
    loss.reads(Slot::target_rows, io.target_rows).reads(Slot::target_tokens, io.target_tokens);
    loss.updates(Slot::scalars, io.scalars);
    region.add(std::move(loss));
    return region;
  }

  // ---- Generation

  // Each layer's rows lie in one storage, side by side.
  void add_caches(int64_t capacity) {
    const auto cache = [&](const char* name) {
      const TensorId id = program_.make(name, precision_.activations, {capacity, spec_.kv_heads, spec_.head_size},
                                        Role::activation, Lifetime::run);
      Tensor& tensor = program_.tensor(id);
      tensor.layer_stride = align_up(tensor.bytes(), kAlignment);
      program_.storage(tensor.storage).bytes = checked_mul(tensor.layer_stride, spec_.layers);
      return id;
    };
    key_cache_ = cache("key_cache");
    value_cache_ = cache("value_cache");
  }

  Region generation_step(int64_t rows) {
    shape_ = {.batch = 1, .seq_len = rows};
    GenerationStep step{.rows = rows, .region = fmt::format("step.{}", rows)};
    Interface& io = program_.interface;
    step.tokens = io.tokens = batch_tensor("tokens", {rows});
    step.positions = io.positions = batch_tensor("positions", {rows});
    Region region{.name = step.region, .stage = Stage::generate};
    program_.generation.steps.push_back(step);
    Op batch{OpKind::batch, Lane::compute};
    region.add(std::move(batch.writes(Slot::ids, io.tokens).writes(Slot::positions, io.positions)));

    const TensorId x = activation("x", {rows, spec_.hidden_size});  // each block adds to it in place
    begin(region, x);
    Region blocks = block(x, x);
    blocks.stage = Stage::generate;
    region.add(std::move(blocks));
    const TensorId last = program_.view(x, "x_last", {1, spec_.hidden_size});
    program_.tensor(last).offset += (rows - 1) * program_.tensor(last).bytes();
    norm(region, "final_norm", last, hidden_);
    return region;
  }

  Region generation_head() {
    Generation& generation = program_.generation;
    const Extent vocabulary = spec_.vocab_size;
    generation.logits = program_.make("logits", DType::f32, {1, vocabulary}, Role::batch, Lifetime::run);
    generation.order = program_.make("order", DType::i32, {vocabulary}, Role::workspace, Lifetime::run);
    Region region{.name = "head", .stage = Stage::generate};
    Op product{OpKind::matmul};
    product.attributes.transpose_b = true;
    product.reads(Slot::a, hidden_).reads(Slot::b, head_).writes(Slot::c, generation.logits);
    region.add(std::move(product));
    return region;
  }

  const ModelSpec& spec_;
  const Precision& precision_;
  BatchShape shape_;
  Program program_;
  std::map<std::string, TensorId> by_part_;  // Parameter::part
  TensorId embedding_ = kNone, head_ = kNone;
  Rotation rotation_, local_rotation_;
  TensorId key_cache_ = kNone, value_cache_ = kNone, hidden_ = kNone;  // of generation
};

}  // namespace

Program build_forward(const ModelSpec& spec, const Precision& precision, const BatchShape& shape) {
  return Builder(spec, precision, shape).build();
}

Program build_generation(const ModelSpec& spec, const Precision& precision, const GenerationShape& shape) {
  return Builder(spec, precision, {}).build_generation(shape);
}

}  // namespace snug
