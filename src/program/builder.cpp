#include "program/builder.h"

#include <cmath>
#include <map>

#include "base/scalars.h"

namespace snug {

namespace {

// Letters as everywhere: B, T, C, F, V, H, K, D; x is the residual stream.
class Builder {
 public:
  Builder(const ModelSpec& spec, const Precision& precision, const BatchShape& shape)
      : spec_(spec), precision_(precision), shape_(shape) {}

  Program build() {
    program_.layers = spec_.layers;
    program_.batch = shape_.batch;
    program_.seq_len = shape_.seq_len;
    program_.micro_batches = shape_.micro_batches;
    add_weights();
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

 private:
  void add_weights() {
    for (Parameter& parameter : parameters_of(spec_)) {
      Tensor tensor{.name = parameter.name, .dtype = precision_.weights};
      for (int64_t size : parameter.shape) tensor.shape.emplace_back(size);
      Weight weight{.parameter = parameter, .source = parameter.name, .tensor = program_.add_tensor(std::move(tensor))};
      weight.decays = parameter.kind != ParameterKind::norm;
      by_module_[parameter.module] = weight.tensor;
      if (parameter.kind == ParameterKind::embedding) embedding_ = weight.tensor;
      if (parameter.kind == ParameterKind::head) head_ = weight.tensor;
      program_.weights.push_back(std::move(weight));
    }
    if (spec_.tied_embeddings) head_ = embedding_;
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
    io.scalars = program_.make("scalars", DType::f64, {kScalarCount}, Role::batch, Lifetime::run);
    io.inverse_frequency = program_.make("inverse_frequency", DType::f32, {spec_.head_size / 2}, Role::batch, Lifetime::run);
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

  TensorId norm(Region& region, const char* name, TensorId x, TensorId weight) {
    const int64_t rows = shape_.batch * shape_.seq_len;
    const TensorId out = activation(name, {rows, spec_.hidden_size});
    Op op{OpKind::rms_norm};
    op.attributes.epsilon = spec_.norm_eps;
    op.reads(Slot::x, x).reads(Slot::weight, weight);
    op.writes(Slot::out, out).writes(Slot::rstd, statistics(std::string(name) + ".rstd", {rows}));
    region.add(std::move(op));
    return out;
  }

  TensorId linear(Region& region, const char* module, TensorId x, std::vector<Extent> shape) {
    const TensorId out = activation(module, std::move(shape));
    Op op{OpKind::matmul};
    op.attributes.transpose_b = true;
    op.reads(Slot::a, x).reads(Slot::b, by_module_.at(module)).writes(Slot::c, out);
    region.add(std::move(op));
    return out;
  }

  void rotate(Region& region, TensorId x) {
    Op op{OpKind::rope};
    op.updates(Slot::x, x).reads(Slot::cosine, cosine_).reads(Slot::sine, sine_);
    region.add(std::move(op));
  }

  TensorId sum(Region& region, TensorId a, TensorId b, TensorId out) {
    Op op{OpKind::add};
    op.reads(Slot::a, a).reads(Slot::b, b).writes(Slot::out, out);
    region.add(std::move(op));
    return out;
  }

  // One pre-norm block: x -> x + attention(norm(x)) -> + mlp(norm(.)).
  Region block(TensorId x_in, TensorId x_out) {
    const int64_t B = shape_.batch, T = shape_.seq_len, M = B * T;
    const int64_t C = spec_.hidden_size, F = spec_.intermediate_size, D = spec_.head_size;
    Region body{.name = "blocks", .stage = Stage::forward, .axis = Axis::layer, .count = spec_.layers};

    const TensorId normed = norm(body, "attention_norm", x_in, by_module_.at("input_layernorm"));
    const TensorId q = linear(body, "q_proj", normed, {B, T, spec_.heads, D});
    const TensorId k = linear(body, "k_proj", normed, {B, T, spec_.kv_heads, D});
    const TensorId v = linear(body, "v_proj", normed, {B, T, spec_.kv_heads, D});
    rotate(body, q);
    rotate(body, k);
    const TensorId attended = activation("attended", {B, T, spec_.heads, D});
    Op attention{OpKind::attention};
    attention.attributes.scale = 1.0 / std::sqrt(static_cast<double>(D));
    attention.reads(Slot::q, q).reads(Slot::k, k).reads(Slot::v, v);
    attention.reads(Slot::document_start, program_.interface.document_start);
    attention.writes(Slot::out, attended).writes(Slot::lse, statistics("lse", {B, spec_.heads, T}));
    body.add(std::move(attention));
    const TensorId projected = linear(body, "o_proj", attended, {M, C});
    const TensorId x_mid = sum(body, x_in, projected, activation("x_mid", {M, C}));

    const TensorId normed_mid = norm(body, "mlp_norm", x_mid, by_module_.at("post_attention_layernorm"));
    const TensorId gate = linear(body, "gate_proj", normed_mid, {M, F});
    const TensorId up = linear(body, "up_proj", normed_mid, {M, F});
    const TensorId gated = activation("gated", {M, F});
    Op silu{OpKind::silu_gate};
    silu.reads(Slot::gate, gate).reads(Slot::up, up).writes(Slot::out, gated);
    body.add(std::move(silu));
    const TensorId down = linear(body, "down_proj", gated, {M, C});
    sum(body, x_mid, down, x_out);
    return body;
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

    Op embedding{OpKind::embedding};
    embedding.reads(Slot::weight, embedding_).reads(Slot::ids, io.tokens).writes(Slot::out, x_first);
    region.add(std::move(embedding));
    const int64_t half = spec_.head_size / 2;
    cosine_ = statistics("cosine", {M, half});
    sine_ = statistics("sine", {M, half});
    Op table{OpKind::rope_table};
    table.reads(Slot::positions, io.positions).reads(Slot::inverse_frequency, io.inverse_frequency);
    table.writes(Slot::cosine, cosine_).writes(Slot::sine, sine_);
    region.add(std::move(table));

    Region blocks = block(x_in, x_out);
    blocks.carries.push_back({.before = x_first, .in = x_in, .out = x_out, .after = x_last});
    region.add(std::move(blocks));

    const TensorId hidden = norm(region, "final_norm", x_last, by_module_.at("norm"));
    Op loss{OpKind::head_loss};
    loss.reads(Slot::hidden, hidden).reads(Slot::weight, head_);
    loss.reads(Slot::target_rows, io.target_rows).reads(Slot::target_tokens, io.target_tokens);
    loss.updates(Slot::scalars, io.scalars);
    region.add(std::move(loss));
    return region;
  }

  const ModelSpec& spec_;
  const Precision& precision_;
  const BatchShape& shape_;
  Program program_;
  std::map<std::string, TensorId> by_module_;
  TensorId embedding_ = kNone, head_ = kNone, cosine_ = kNone, sine_ = kNone;
};

}  // namespace

Program build_forward(const ModelSpec& spec, const Precision& precision, const BatchShape& shape) {
  return Builder(spec, precision, shape).build();
}

}  // namespace snug
