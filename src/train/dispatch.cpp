#include "train/dispatch.h"

#include <stdexcept>

#include "base/element_count.h"
#include "kernels/kernels.h"
#include "op/product.h"
#include "op/routed_rows.h"
#include "program/rules.h"

namespace snug {

void* Binding::address(TensorId id) const {
  if (id == kNone || base == nullptr) return nullptr;
  if (program.storage(program.tensor(id).storage).home != Home::device) return nullptr;
  return base + offset(id);
}

int64_t Binding::offset(TensorId id) const {
  const Tensor& tensor = program.tensor(id);
  const int64_t instance = tensor.instance + (tensor.instance_by_layer ? layer : 0);
  return layout.offset_of(tensor.storage, instance) + first_byte(id);
}

int64_t Binding::first_byte(TensorId id) const {
  const Tensor& tensor = program.tensor(id);
  return tensor.offset + (layer - tensor.first_layer) * tensor.layer_stride + chunk * tensor.chunk_stride;
}

int64_t Binding::first_element(TensorId id) const { return element_count(program.tensor(id).dtype, first_byte(id)); }

namespace {

// One op with its addresses.
class Call {
 public:
  Call(const Op& op, const Binding& binding) : op_(op), binding_(binding) {}

  const Tensor& tensor(Slot slot) const { return binding_.program.tensor(op_.find(slot)); }
  bool has(Slot slot) const { return op_.find(slot) != kNone; }
  kernels::In in(Slot slot) const {
    if (!has(slot)) return {};
    return {binding_.address(op_.find(slot)), tensor(slot).dtype};
  }
  // A weight, with its scales if it is quantized.
  kernels::In matrix(Slot slot) const {
    kernels::In found = in(slot);
    if (!has(Slot::absmax)) return found;
    found.scales = {.absmax = pointer<const void>(Slot::absmax),
                    .nested_absmax = floats(Slot::nested_absmax),
                    .offset = floats(Slot::absmax_offset),
                    .block_size = attributes().block_size,
                    .values = attributes().values};
    return found;
  }
  kernels::Out out(Slot slot) const {
    if (!has(slot)) return {};
    return {binding_.address(op_.find(slot)), tensor(slot).dtype};
  }
  template <class T>
  T* pointer(Slot slot) const {
    return static_cast<T*>(binding_.address(op_.find(slot)));
  }
  float* floats(Slot slot) const { return pointer<float>(slot); }
  const int32_t* ints(Slot slot) const { return pointer<int32_t>(slot); }
  kernels::Scalars* scalars() const { return pointer<kernels::Scalars>(Slot::scalars); }
  const OpCut& cut() const { return op_.cut; }
  kernels::Workspace workspace() const {
    if (!has(Slot::workspace)) return {};
    return {binding_.address(op_.find(Slot::workspace)), tensor(Slot::workspace).bytes()};
  }
  const Attributes& attributes() const { return op_.attributes; }
  bool in_local_layer() const {
    const auto layer = static_cast<size_t>(binding_.layer);
    return layer < binding_.program.local_layers.size() && binding_.program.local_layers[layer];
  }
  int64_t last_axis(Slot slot) const { return tensor(slot).shape.back().bound; }

  kernels::Matmul matmul() const {
    const ProductShape shape = product_shape(view_of(binding_.program, op_));
    return {.a = in(Slot::a),
            .b = matrix(Slot::b),
            .c = out(Slot::c),
            .m = shape.m,
            .n = shape.n,
            .k = shape.k,
            .transpose_a = shape.transpose_a,
            .transpose_b = shape.transpose_b,
            .accumulate = shape.accumulate,
            .scale = static_cast<float>(attributes().scale),
            .workspace = workspace(),
            .cut = cut()};
  }

  kernels::HeadLoss head_loss() const {
    const Tensor& weight = tensor(Slot::weight);
    return {.hidden = in(Slot::hidden),
            .weight = in(Slot::weight),
            .low = in(Slot::low),
            .low_weight = in(Slot::low_weight),
            .target_rows = ints(Slot::target_rows),
            .target_tokens = ints(Slot::target_tokens),
            .scalars = scalars(),
            .d_hidden = floats(Slot::d_hidden),
            .d_weight = floats(Slot::d_weight),
            .d_low = floats(Slot::d_low),
            .d_low_weight = floats(Slot::d_low_weight),
            .predictions = pointer<int32_t>(Slot::predictions),
            .rows = tensor(Slot::hidden).elements() / weight.dim(1),
            .cols = weight.dim(1),
            .vocabulary = weight.dim(0),
            .rank = has(Slot::low_weight) ? last_axis(Slot::low_weight) : 0,
            .softcap = static_cast<float>(attributes().softcap),
            .workspace = workspace(),
            .cut = cut()};
  }

  void embedding() const {
    const int64_t cols = tensor(Slot::weight).dim(1);
    kernels::embedding({.table = in(Slot::weight),
                        .ids = ints(Slot::ids),
                        .out = out(Slot::out),
                        .rows = tensor(Slot::ids).elements(),
                        .cols = cols,
                        .vocabulary = tensor(Slot::weight).dim(0),
                        .scale = static_cast<float>(attributes().scale),
                        .cut = cut()});
  }

  void embedding_backward() const {
    const int64_t cols = tensor(Slot::d_table).dim(1);
    kernels::embedding_backward({.d_out = floats(Slot::d_out),
                                 .ids = ints(Slot::ids),
                                 .d_table = floats(Slot::d_table),
                                 .rows = tensor(Slot::ids).elements(),
                                 .cols = cols,
                                 .vocabulary = tensor(Slot::d_table).dim(0),
                                 .scale = static_cast<float>(attributes().scale),
                                 .untrained_row = attributes().untrained_row,
                                 .cut = cut()});
  }

  void rms_norm() const {
    const int64_t cols = tensor(Slot::weight).elements();
    kernels::rms_norm({.x = in(Slot::x),
                       .weight = in(Slot::weight),
                       .out = out(Slot::out),
                       .rstd = floats(Slot::rstd),
                       .rows = tensor(Slot::x).elements() / cols,
                       .cols = cols,
                       .eps = static_cast<float>(attributes().epsilon),
                       .weight_offset = static_cast<float>(attributes().weight_offset),
                       .cut = cut()});
  }

  void rms_norm_backward() const {
    const int64_t cols = tensor(Slot::weight).elements();
    kernels::rms_norm_backward({.d_out = floats(Slot::d_out),
                                .x = in(Slot::x),
                                .weight = in(Slot::weight),
                                .rstd = floats(Slot::rstd),
                                .d_x = floats(Slot::d_x),
                                .d_weight = floats(Slot::d_weight),
                                .rows = tensor(Slot::x).elements() / cols,
                                .cols = cols,
                                .accumulate = attributes().accumulate,
                                .weight_offset = static_cast<float>(attributes().weight_offset),
                                .workspace = workspace(),
                                .cut = cut()});
  }

  void layer_norm() const {
    const int64_t cols = tensor(Slot::weight).elements();
    kernels::layer_norm({.x = in(Slot::x),
                         .weight = in(Slot::weight),
                         .bias = in(Slot::bias),
                         .out = out(Slot::out),
                         .mean = floats(Slot::mean),
                         .rstd = floats(Slot::rstd),
                         .rows = tensor(Slot::x).elements() / cols,
                         .cols = cols,
                         .eps = static_cast<float>(attributes().epsilon),
                         .cut = cut()});
  }

  void layer_norm_backward() const {
    const int64_t cols = tensor(Slot::weight).elements();
    kernels::layer_norm_backward({.d_out = floats(Slot::d_out),
                                  .x = in(Slot::x),
                                  .weight = in(Slot::weight),
                                  .mean = floats(Slot::mean),
                                  .rstd = floats(Slot::rstd),
                                  .d_x = floats(Slot::d_x),
                                  .d_weight = floats(Slot::d_weight),
                                  .d_bias = floats(Slot::d_bias),
                                  .rows = tensor(Slot::x).elements() / cols,
                                  .cols = cols,
                                  .accumulate = attributes().accumulate,
                                  .workspace = workspace(),
                                  .cut = cut()});
  }

  void add_bias() const {
    const int64_t cols = tensor(Slot::bias).elements();
    kernels::add_bias(
        {.x = out(Slot::x), .bias = in(Slot::bias), .rows = tensor(Slot::x).elements() / cols, .cols = cols, .cut = cut()});
  }

  void bias_backward() const {
    const int64_t cols = tensor(Slot::d_bias).elements();
    kernels::bias_backward({.d_out = floats(Slot::d_out),
                            .d_bias = floats(Slot::d_bias),
                            .rows = tensor(Slot::d_out).elements() / cols,
                            .cols = cols,
                            .workspace = workspace(),
                            .cut = cut()});
  }

  kernels::ColumnParts columns() const {
    kernels::ColumnParts columns{.whole = pointer<void>(Slot::x), .dtype = tensor(Slot::x).dtype, .cut = cut()};
    const int64_t width = last_axis(Slot::x);
    columns.rows = tensor(Slot::x).elements() / width;
    size_t next = 0;
    for (Slot slot : {Slot::a, Slot::b, Slot::c})
      if (has(slot)) columns.parts[next++] = {pointer<void>(slot), tensor(slot).elements() / columns.rows};
    return columns;
  }

  void rope_table() const {
    kernels::rope_table({.positions = ints(Slot::positions),
                         .inverse_frequency = floats(Slot::inverse_frequency),
                         .cosine = floats(Slot::cosine),
                         .sine = floats(Slot::sine),
                         .rows = tensor(Slot::positions).elements(),
                         .half = tensor(Slot::inverse_frequency).elements(),
                         .scale = static_cast<float>(attributes().scale),
                         .cut = cut()});
  }

  void rope() const {
    const Tensor& x = tensor(Slot::x);
    const bool local = has(Slot::local_cosine) && in_local_layer();
    kernels::rope({.x = out(Slot::x),
                   .cosine = floats(local ? Slot::local_cosine : Slot::cosine),
                   .sine = floats(local ? Slot::local_sine : Slot::sine),
                   .rows = x.dim(0) * x.dim(1),
                   .heads = x.dim(2),
                   .head_size = x.dim(3),
                   .half = last_axis(Slot::cosine),
                   .inverse = attributes().inverse,
                   .cut = cut()});
  }

  void attention() const {
    const Tensor& q = tensor(Slot::q);
    kernels::attention({.q = in(Slot::q),
                        .k = in(Slot::k),
                        .v = in(Slot::v),
                        .document_start = ints(Slot::document_start),
                        .out = out(Slot::out),
                        .lse = floats(Slot::lse),
                        .batch = q.dim(0),
                        .seq_len = q.dim(1),
                        .heads = q.dim(2),
                        .kv_heads = tensor(Slot::k).dim(2),
                        .head_size = q.dim(3),
                        .scale = static_cast<float>(attributes().scale),
                        .softcap = static_cast<float>(attributes().softcap),
                        .window = in_local_layer() ? attributes().window : 0,
                        .workspace = workspace(),
                        .cut = cut()});
  }

  void attention_backward() const {
    const Tensor& q = tensor(Slot::q);
    kernels::attention_backward({.d_out = floats(Slot::d_out),
                                 .q = in(Slot::q),
                                 .k = in(Slot::k),
                                 .v = in(Slot::v),
                                 .out = in(Slot::out),
                                 .document_start = ints(Slot::document_start),
                                 .lse = floats(Slot::lse),
                                 .d_q = floats(Slot::d_q),
                                 .d_k = floats(Slot::d_k),
                                 .d_v = floats(Slot::d_v),
                                 .batch = q.dim(0),
                                 .seq_len = q.dim(1),
                                 .heads = q.dim(2),
                                 .kv_heads = tensor(Slot::k).dim(2),
                                 .head_size = q.dim(3),
                                 .scale = static_cast<float>(attributes().scale),
                                 .softcap = static_cast<float>(attributes().softcap),
                                 .window = in_local_layer() ? attributes().window : 0,
                                 .workspace = workspace(),
                                 .cut = cut()});
  }

  void cached_attention() const {
    const Tensor& q = tensor(Slot::q);
    kernels::cached_attention({.q = in(Slot::q),
                               .k = in(Slot::k),
                               .v = in(Slot::v),
                               .positions = ints(Slot::positions),
                               .key_cache = out(Slot::key_cache),
                               .value_cache = out(Slot::value_cache),
                               .out = out(Slot::out),
                               .rows = q.dim(0) * q.dim(1),
                               .capacity = tensor(Slot::key_cache).dim(0),
                               .heads = q.dim(2),
                               .kv_heads = tensor(Slot::k).dim(2),
                               .head_size = q.dim(3),
                               .scale = static_cast<float>(attributes().scale),
                               .softcap = static_cast<float>(attributes().softcap),
                               .window = in_local_layer() ? attributes().window : 0,
                               .workspace = workspace(),
                               .cut = cut()});
  }

  void activation() const {
    kernels::activation({.gate = in(Slot::gate),
                         .up = in(Slot::up),
                         .out = out(Slot::out),
                         .rows = tensor(Slot::gate).elements() / last_axis(Slot::gate),
                         .cols = last_axis(Slot::gate),
                         .kind = attributes().activation,
                         .cut = cut()});
  }

  void activation_backward() const {  // d_up takes d_out's place, or d_gate where there is no up
    kernels::activation_backward({.d_out = floats(Slot::d_out),
                                  .gate = in(Slot::gate),
                                  .up = in(Slot::up),
                                  .d_gate = floats(has(Slot::up) ? Slot::d_gate : Slot::d_out),
                                  .d_up = has(Slot::up) ? floats(Slot::d_out) : nullptr,
                                  .rows = tensor(Slot::gate).elements() / last_axis(Slot::gate),
                                  .cols = last_axis(Slot::gate),
                                  .kind = attributes().activation,
                                  .cut = cut()});
  }

  void add() const {
    kernels::add(
        {.a = in(Slot::a), .b = in(Slot::b), .out = out(Slot::out), .elements = tensor(Slot::out).elements(), .cut = cut()});
  }

  void zero() const {
    kernels::zero({.data = floats(Slot::gradient), .elements = tensor(Slot::gradient).elements(), .cut = cut()});
  }

  void square_sum() const {
    kernels::square_sum({.data = floats(Slot::gradient),
                         .elements = tensor(Slot::gradient).elements(),
                         .scalars = scalars(),
                         .workspace = workspace(),
                         .cut = cut()});
  }

  void clip_factor() const {
    kernels::clip_factor({.scalars = scalars(), .max_norm = static_cast<float>(attributes().max_norm)});
  }

  void update_scale() const { kernels::update_scale({.scalars = scalars(), .window = attributes().scale_window}); }

  void dropout() const {
    const Attributes& a = attributes();
    kernels::dropout({.x = in(Slot::x),
                      .out = out(has(Slot::out) ? Slot::out : Slot::x),
                      .elements = tensor(Slot::x).elements(),
                      .probability = a.probability,
                      .complement = a.complement,
                      .accumulate = a.accumulate,
                      .seed = a.noise_seed,
                      .stream = a.noise_stream,
                      .layer = binding_.layer,
                      .scalars = scalars(),
                      .cut = cut()});
  }

  void dora_norm() const {
    const int64_t rows = tensor(Slot::norm).elements();
    kernels::dora_norm({.weight = matrix(Slot::weight),
                        .a = floats(Slot::a),
                        .b = floats(Slot::b),
                        .norm = floats(Slot::norm),
                        .rows = rows,
                        .cols = tensor(Slot::weight).elements() / rows,
                        .rank = tensor(Slot::a).dim(0),
                        .scale = static_cast<float>(attributes().scale),
                        .input_features_first = !attributes().transpose_b,
                        .workspace = workspace(),
                        .cut = cut()});
  }

  void scale_columns() const {
    const int64_t cols = tensor(Slot::norm).elements();
    kernels::scale_columns({.x = in(Slot::x),
                            .magnitude = floats(Slot::magnitude),
                            .norm = floats(Slot::norm),
                            .out = out(Slot::out),
                            .rows = tensor(Slot::x).elements() / cols,
                            .cols = cols,
                            .workspace = workspace(),
                            .cut = cut()});
  }

  void scale_columns_backward() const {
    const int64_t cols = tensor(Slot::norm).elements();
    kernels::scale_columns_backward({.d_out = floats(Slot::d_out),
                                     .x = in(Slot::x),
                                     .magnitude = floats(Slot::magnitude),
                                     .norm = floats(Slot::norm),
                                     .d_x = floats(has(Slot::d_x) ? Slot::d_x : Slot::d_out),
                                     .d_magnitude = floats(Slot::d_magnitude),
                                     .rows = tensor(Slot::x).elements() / cols,
                                     .cols = cols,
                                     .workspace = workspace(),
                                     .cut = cut()});
  }

  kernels::CodedState state(Slot slot, Slot absmax) const {
    return {.data = pointer<void>(slot), .dtype = tensor(slot).dtype, .absmax = floats(absmax)};
  }

  void adamw() const {
    const Attributes& a = attributes();
    kernels::adamw({.parameter = out(Slot::parameter),
                    .master = floats(Slot::master),
                    .gradient = floats(Slot::gradient),
                    .first_moment = state(Slot::first_moment, Slot::first_absmax),
                    .second_moment = state(Slot::second_moment, Slot::second_absmax),
                    .elements = tensor(Slot::parameter).elements(),
                    .beta1 = a.beta1,
                    .beta2 = a.beta2,
                    .epsilon = a.epsilon,
                    .weight_decay = a.weight_decay,
                    .seed = a.noise_seed,
                    .stream = a.noise_stream,
                    .first_element = binding_.first_element(op_.find(Slot::parameter)),
                    .scalars = scalars(),
                    .cut = cut()});
  }

  void sgd() const {
    kernels::sgd({.parameter = out(Slot::parameter),
                  .master = floats(Slot::master),
                  .gradient = floats(Slot::gradient),
                  .velocity = floats(Slot::first_moment),
                  .elements = tensor(Slot::parameter).elements(),
                  .momentum = attributes().momentum,
                  .weight_decay = attributes().weight_decay,
                  .scalars = scalars(),
                  .cut = cut()});
  }

  void lion() const {
    kernels::lion({.parameter = out(Slot::parameter),
                   .master = floats(Slot::master),
                   .gradient = floats(Slot::gradient),
                   .first_moment = state(Slot::first_moment, Slot::first_absmax),
                   .elements = tensor(Slot::parameter).elements(),
                   .beta1 = attributes().beta1,
                   .beta2 = attributes().beta2,
                   .weight_decay = attributes().weight_decay,
                   .scalars = scalars(),
                   .cut = cut()});
  }

  void adafactor() const {
    const Tensor& parameter = tensor(Slot::parameter);
    const int64_t cols = last_axis(Slot::parameter);
    const int64_t rows = has(Slot::row_factor) ? parameter.dim(parameter.shape.size() - 2) : 1;
    kernels::adafactor({.parameter = out(Slot::parameter),
                        .master = floats(Slot::master),
                        .gradient = floats(Slot::gradient),
                        .row_factor = floats(Slot::row_factor),
                        .column_factor = floats(Slot::column_factor),
                        .matrices = parameter.elements() / (rows * cols),
                        .rows = rows,
                        .cols = cols,
                        .weight_decay = attributes().weight_decay,
                        .scalars = scalars(),
                        .workspace = workspace(),
                        .cut = cut()});
  }

  // ---- Experts
  int64_t routed_rows() const { return tensor(Slot::row_tokens).elements(); }
  int64_t choices() const { return tensor(Slot::expert_rows).dim(1); }

  void route() const {
    const Tensor& logits = tensor(Slot::logits);
    kernels::route({.logits = floats(Slot::logits),
                    .route_weights = floats(Slot::route_weights),
                    .expert_rows = pointer<int32_t>(Slot::expert_rows),
                    .row_tokens = pointer<int32_t>(Slot::row_tokens),
                    .tile_experts = pointer<int32_t>(Slot::tile_experts),
                    .rows = logits.dim(0),
                    .experts = logits.dim(1),
                    .choices = choices(),
                    .routed_rows = routed_rows(),
                    .tile = routed_rows() / tensor(Slot::tile_experts).elements(),
                    .normalize = attributes().normalize_weights,
                    .workspace = workspace(),
                    .cut = cut()});
  }

  void route_backward() const {
    const Tensor& d_logits = tensor(Slot::d_logits);
    const int64_t tile = snug::routed_rows(d_logits.dim(0), d_logits.dim(1), choices()).tile;
    kernels::route_backward({.d_route_weights = floats(Slot::d_route_weights),
                             .route_weights = floats(Slot::route_weights),
                             .expert_rows = ints(Slot::expert_rows),
                             .tile_experts = ints(Slot::tile_experts),
                             .logits = floats(Slot::logits),
                             .d_logits = floats(Slot::d_logits),
                             .rows = d_logits.dim(0),
                             .experts = d_logits.dim(1),
                             .choices = choices(),
                             .tile = tile,
                             .normalize = attributes().normalize_weights,
                             .cut = cut()});
  }

  void gather_rows() const {
    const int64_t rows = tensor(Slot::expert_rows).dim(0);
    kernels::gather_rows({.x = in(Slot::x),
                          .expert_rows = ints(Slot::expert_rows),
                          .row_tokens = ints(Slot::row_tokens),
                          .out = out(Slot::out),
                          .rows = rows,
                          .cols = tensor(Slot::x).elements() / rows,
                          .choices = choices(),
                          .routed_rows = routed_rows(),
                          .cut = cut()});
  }

  void gather_rows_backward() const {
    const int64_t rows = tensor(Slot::expert_rows).dim(0);
    kernels::gather_rows_backward({.d_out = floats(Slot::d_out),
                                   .expert_rows = ints(Slot::expert_rows),
                                   .d_x = floats(Slot::d_x),
                                   .rows = rows,
                                   .cols = tensor(Slot::d_x).elements() / rows,
                                   .choices = choices(),
                                   .accumulate = attributes().accumulate,
                                   .cut = cut()});
  }

  kernels::ExpertMatmul expert_matmul() const {
    const Tensor& weight = tensor(attributes().transpose_a ? Slot::c : Slot::b);
    const int64_t rows = tensor(Slot::a).dim(0);
    const int64_t tile = rows / tensor(Slot::tile_experts).elements();
    return {.a = in(Slot::a),
            .b = matrix(Slot::b),
            .c = out(Slot::c),
            .tile_experts = ints(Slot::tile_experts),
            .routed_rows = rows,
            .tile = tile,
            .n = weight.dim(1),
            .k = weight.dim(2),
            .transpose_a = attributes().transpose_a,
            .transpose_b = attributes().transpose_b,
            .accumulate = attributes().accumulate,
            .workspace = workspace(),
            .cut = cut()};
  }

  void combine() const {
    const int64_t rows = tensor(Slot::expert_rows).dim(0);
    kernels::combine({.x = in(Slot::rows),
                      .route_weights = floats(Slot::route_weights),
                      .expert_rows = ints(Slot::expert_rows),
                      .out = out(Slot::out),
                      .rows = rows,
                      .cols = tensor(Slot::out).elements() / rows,
                      .choices = choices(),
                      .cut = cut()});
  }

  void combine_backward() const {
    const int64_t rows = tensor(Slot::expert_rows).dim(0);
    kernels::combine_backward({.d_out = floats(Slot::d_out),
                               .x = in(Slot::rows),
                               .route_weights = floats(Slot::route_weights),
                               .expert_rows = ints(Slot::expert_rows),
                               .row_tokens = ints(Slot::row_tokens),
                               .d_x = floats(Slot::d_rows),
                               .d_route_weights = floats(Slot::d_route_weights),
                               .rows = rows,
                               .cols = tensor(Slot::d_out).elements() / rows,
                               .choices = choices(),
                               .routed_rows = routed_rows(),
                               .cut = cut()});
  }

 private:
  const Op& op_;
  const Binding& binding_;
};

}  // namespace

void dispatch(const Op& op, const Binding& binding) {
  const Call call(op, binding);
  switch (op.kind) {
    case OpKind::embedding: return call.embedding();
    case OpKind::embedding_backward: return call.embedding_backward();
    case OpKind::rms_norm: return call.rms_norm();
    case OpKind::rms_norm_backward: return call.rms_norm_backward();
    case OpKind::matmul: return kernels::matmul(call.matmul());
    case OpKind::rope_table: return call.rope_table();
    case OpKind::rope: return call.rope();
    case OpKind::attention: return call.attention();
    case OpKind::attention_backward: return call.attention_backward();
    case OpKind::cached_attention: return call.cached_attention();
    case OpKind::activation: return call.activation();
    case OpKind::activation_backward: return call.activation_backward();
    case OpKind::layer_norm: return call.layer_norm();
    case OpKind::layer_norm_backward: return call.layer_norm_backward();
    case OpKind::add_bias: return call.add_bias();
    case OpKind::bias_backward: return call.bias_backward();
    case OpKind::split: return kernels::split(call.columns());
    case OpKind::join: return kernels::join(call.columns());
    case OpKind::add: return call.add();
    case OpKind::head_loss: return kernels::head_loss(call.head_loss());
    case OpKind::zero: return call.zero();
    case OpKind::square_sum: return call.square_sum();
    case OpKind::clip_factor: return call.clip_factor();
    case OpKind::update_scale: return call.update_scale();
    case OpKind::adamw: return call.adamw();
    case OpKind::sgd: return call.sgd();
    case OpKind::lion: return call.lion();
    case OpKind::adafactor: return call.adafactor();
    case OpKind::route: return call.route();
    case OpKind::route_backward: return call.route_backward();
    case OpKind::gather_rows: return call.gather_rows();
    case OpKind::gather_rows_backward: return call.gather_rows_backward();
    case OpKind::expert_matmul: return kernels::expert_matmul(call.expert_matmul());
    case OpKind::combine: return call.combine();
    case OpKind::combine_backward: return call.combine_backward();
    case OpKind::dropout: return call.dropout();
    case OpKind::dora_norm: return call.dora_norm();
    case OpKind::scale_columns: return call.scale_columns();
    case OpKind::scale_columns_backward: return call.scale_columns_backward();
    case OpKind::load:
    case OpKind::save:
    case OpKind::batch:
    case OpKind::page_in:
    case OpKind::page_out:               // the host's and the executor's
    case OpKind::latent_heads:           // planned, not run yet
    case OpKind::latent_heads_backward:  // likewise
      break;
  }
  throw std::logic_error(std::string(name_of(op.kind)) + " is not a kernel");
}

void prepare(const Op& op, const Binding& binding) {
  const Call call(op, binding);
  if (op.kind == OpKind::matmul) kernels::prepare(call.matmul());
  if (op.kind == OpKind::head_loss) kernels::prepare(call.head_loss());
  if (op.kind == OpKind::expert_matmul) kernels::prepare(call.expert_matmul());
}

}  // namespace snug
