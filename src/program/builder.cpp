#include "program/builder.h"

#include <fmt/format.h>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "base/scalars.h"
#include "model/families.h"
#include "program/block_builder.h"

namespace snug {

namespace {

class Builder : private BlockBuilder {
 public:
  Builder(const ModelSpec& spec, const Precision& precision, const BatchShape& shape)
      : BlockBuilder(spec, precision, shape) {}

  Program build() {
    refuse_unmodelled(spec_);
    add_weights();
    if (is_plan_only(spec_))
      program_.notes.push_back("models of family " + spec_.family + " can be planned, but not be trained yet");
    if (!spec_.stored_format.empty())
      program_.notes.push_back(fmt::format("its files hold {}; planned with weights in {}, as they are fine-tuned",
                                           spec_.stored_format, name_of(precision_.weights)));
    if (!spec_.learned_positions && spec_.max_position > 0 && shape_.seq_len > spec_.max_position)
      program_.notes.push_back(fmt::format("rows of {} tokens go beyond the {} positions that the model was made for",
                                           shape_.seq_len, spec_.max_position));
    if (spec_.dropout > 0)
      program_.notes.push_back("transformers trains this model with dropout " + fmt::format("{}", spec_.dropout) +
                               "; here it is trained without");
    program_.batch = shape_.batch;
    program_.seq_len = shape_.seq_len;
    program_.micro_batches = shape_.micro_batches;
    add_interface();
    Region micro_batch{.name = "micro_batch",
                       .section = Section::micro_batch,
                       .stage = Stage::forward,
                       .axis = Axis::micro_batch,
                       .count = shape_.micro_batches};
    micro_batch.add(batch_region());
    micro_batch.add(forward_region());
    Region step{.name = "step", .section = Section::step};
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
    if (spec_.learned_positions || spec_.alibi) return;
    const auto frequencies = [&](const char* name) {
      return program_.make(name, DType::f32, {spec_.rotated() / 2}, Role::batch, Lifetime::run);
    };
    io.inverse_frequency = frequencies("inverse_frequency");
    if (spec_.experts.sigmoid_scores) io.router_correction = router_correction();
    if (spec_.local_rope_theta > 0) io.local_inverse_frequency = frequencies("local_inverse_frequency");
  }

  // A row [E] for each layer, which checkpoints hold and no gradient reaches: it is none of the model's parameters.
  TensorId router_correction() {
    const TensorId id = program_.make("router_correction", DType::f32, {spec_.experts.count}, Role::batch, Lifetime::run);
    Tensor& tensor = program_.tensor(id);
    tensor.layer_stride = align_up(tensor.bytes(), kAlignment);
    tensor.first_layer = spec_.experts.dense_layers;
    program_.storage(tensor.storage).bytes = checked_mul(tensor.layer_stride, spec_.layers - tensor.first_layer);
    return id;
  }

  Region batch_region() {
    Region region{.name = "batch", .section = Section::batch, .stage = Stage::forward};
    const Interface& io = program_.interface;
    Op op{OpKind::batch, Lane::compute};
    op.writes(Slot::ids, io.tokens).writes(Slot::positions, io.positions).writes(Slot::document_start, io.document_start);
    op.writes(Slot::target_rows, io.target_rows)
        .writes(Slot::target_tokens, io.target_tokens)
        .updates(Slot::scalars, io.scalars);
    region.add(std::move(op));
    return region;
  }

  Rotation rotation_table(Region& region, const char* name, TensorId frequencies, double scale) {
    const int64_t M = tokens(), half = spec_.rotated() / 2;
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
    if (ids == program_.interface.tokens) {
      program_.token_lookups.push_back(program_.identify(embedding));
      if (spec_.pad_row_is_fixed) embedding.attributes.untrained_row = spec_.pad_token_id;
    }
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
    if (spec_.embedding_norm) {
      const std::vector<Extent> shape = program_.tensor(x_first).shape;
      norm(region, "embedding_norm", embed(region, embedding_, io.tokens, activation("token_rows", shape), scale), x_first);
    } else {
      embed(region, embedding_, io.tokens, x_first, scale);
    }
    if (spec_.alibi) return;
    rotation_ = rotation_table(region, "", io.inverse_frequency, spec_.rope.attention_factor);
    if (io.local_inverse_frequency != kNone)
      local_rotation_ = rotation_table(region, "local_", io.local_inverse_frequency, 1.0);
  }

  Region forward_region() {
    const int64_t M = tokens();
    const Interface& io = program_.interface;
    Region region{.name = "forward", .section = Section::forward, .stage = Stage::forward};

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
    begin(region, x_first);
    TensorId x = x_first;
    int32_t index = 0;
    for (const LayerRun& run : layer_runs(spec_)) {
      const TensorId x_in = instance("x_in", 0, true);
      const TensorId x_out = instance("x_out", 1, true);
      const int64_t end = run.first + run.count;
      const TensorId x_after = instance(end == spec_.layers ? "x_last" : "x_between", end, false);
      Region blocks = block(run, x_in, x_out);
      blocks.index = index++;
      blocks.carries.push_back({.before = x, .in = x_in, .out = x_out, .after = x_after});
      region.add(std::move(blocks));
      x = x_after;
    }

    const TensorId hidden = norm(region, "final_norm", x);
    Op loss{OpKind::head_loss};
    loss.attributes.softcap = spec_.logit_softcap;
    loss.reads(Slot::hidden, hidden).reads(Slot::weight, head_);
    loss.reads(Slot::target_rows, io.target_rows).reads(Slot::target_tokens, io.target_tokens);
    loss.updates(Slot::scalars, io.scalars);
    program_.loss = program_.identify(loss);
    program_.head = {.weight = weights_.at(head_), .input = hidden, .product = program_.loss};
    region.add(std::move(loss));
    return region;
  }

  // ---- Generation

  // Each layer's rows lie in one storage, side by side.
  void add_caches(int64_t capacity) {
    const auto cache = [&](const char* name, int64_t head_size) {
      const TensorId id = program_.make(name, precision_.activations, {capacity, spec_.kv_heads, head_size},
                                        Role::activation, Lifetime::run);
      Tensor& tensor = program_.tensor(id);
      tensor.layer_stride = align_up(tensor.bytes(), kAlignment);
      program_.storage(tensor.storage).bytes = checked_mul(tensor.layer_stride, spec_.layers);
      return id;
    };
    key_cache_ = cache("key_cache", spec_.head_size);
    value_cache_ = cache("value_cache", spec_.value_size());
  }

  Region generation_step(int64_t rows) {
    shape_ = {.batch = 1, .seq_len = rows};
    GenerationStep step{.rows = rows};
    Region region{.name = fmt::format("step.{}", rows), .section = Section::generation_step, .stage = Stage::generate};
    region.index = static_cast<int32_t>(program_.generation.steps.size());
    Interface& io = program_.interface;
    step.tokens = io.tokens = batch_tensor("tokens", {rows});
    step.positions = io.positions = batch_tensor("positions", {rows});
    program_.generation.steps.push_back(step);
    Op batch{OpKind::batch, Lane::compute};
    region.add(std::move(batch.writes(Slot::ids, io.tokens).writes(Slot::positions, io.positions)));

    const TensorId x = activation("x", {rows, spec_.hidden_size});  // each block adds to it in place
    begin(region, x);
    for (const LayerRun& run : layer_runs(spec_)) {
      Region blocks = block(run, x, x);
      blocks.stage = Stage::generate;
      region.add(std::move(blocks));
    }
    const TensorId last = program_.view(x, "x_last", {1, spec_.hidden_size});
    program_.tensor(last).offset += (rows - 1) * program_.tensor(last).bytes();
    norm(region, "final_norm", last, hidden_);
    return region;
  }

  Region generation_head() {
    Generation& generation = program_.generation;
    const Extent vocabulary = spec_.vocab_size;
    generation.logits = program_.make("logits", DType::f32, {1, vocabulary}, Role::batch);
    generation.fetched = program_.make("logits.fetched", DType::f32, {1, vocabulary}, Role::batch);
    generation.order = program_.make("order", DType::i32, {vocabulary}, Role::workspace);
    Region region{.name = "head", .section = Section::head, .stage = Stage::generate};
    Op product{OpKind::matmul};
    product.attributes.transpose_b = true;
    product.reads(Slot::a, hidden_).reads(Slot::b, head_).writes(Slot::c, generation.logits);
    program_.head = {
        .weight = weights_.at(head_), .input = hidden_, .output = generation.logits, .product = program_.identify(product)};
    region.add(std::move(product));
    Op fetch{OpKind::fetch};
    fetch.reads(Slot::x, generation.logits).writes(Slot::out, generation.fetched).writes(Slot::workspace, generation.order);
    region.add(std::move(fetch));
    return region;
  }

  TensorId hidden_ = kNone;  // of generation
};

}  // namespace

Program build_forward(const ModelSpec& spec, const Precision& precision, const BatchShape& shape) {
  return Builder(spec, precision, shape).build();
}

Program build_generation(const ModelSpec& spec, const Precision& precision, const GenerationShape& shape) {
  return Builder(spec, precision, {}).build_generation(shape);
}

}  // namespace snug
