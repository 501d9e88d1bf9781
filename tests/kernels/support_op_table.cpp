#include "kernels/support_op_table.h"

#include <cmath>
#include <cstring>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "base/philox.h"
#include "op/routed_rows.h"

namespace snug::tests {
namespace {

constexpr DType kStored[] = {DType::f32, DType::bf16, DType::f16};

// Builds one case after the other.
class Table {
 public:
  Table& op(OpKind kind, const std::string& what, const Attributes& attributes = {}) {
    cases.push_back({.kind = kind, .name = std::string(name_of(kind)) + " " + what, .attributes = attributes});
    return *this;
  }
  Table& in(Slot slot, DType dtype, std::vector<int64_t> shape, Fill fill = Fill::normal, int64_t bound = 0) {
    cases.back().operands.push_back({slot, dtype, std::move(shape), fill, false, bound});
    return *this;
  }
  Table& out(Slot slot, DType dtype, std::vector<int64_t> shape, Fill fill = Fill::zeros) {
    cases.back().operands.push_back({slot, dtype, std::move(shape), fill, true, 0});
    return *this;
  }
  Table& scalars() {
    cases.back().operands.push_back({Slot::scalars, DType::f64, {kScalarCount}, Fill::positive, true, 0});
    return *this;
  }
  std::vector<TableCase> cases;
};

std::string text(std::initializer_list<int64_t> sizes, DType dtype) {
  std::string joined;
  for (const int64_t size : sizes) joined += (joined.empty() ? "" : " x ") + std::to_string(size);
  return joined + " " + std::string(name_of(dtype));
}

struct RowSizes {
  int64_t rows, cols;
};
constexpr RowSizes kRows[] = {{1, 1}, {3, 40}, {33, 130}, {64, 576}};

void add_norms(Table& table) {
  for (const auto [m, c] : kRows) {
    for (const DType dtype : kStored) {
      const Attributes attributes{.weight_offset = 1.0, .epsilon = 1e-5};
      table.op(OpKind::rms_norm, text({m, c}, dtype), attributes);
      table.in(Slot::x, dtype, {m, c})
          .in(Slot::weight, dtype, {c})
          .out(Slot::out, dtype, {m, c})
          .out(Slot::rstd, DType::f32, {m});
      table.op(OpKind::layer_norm, text({m, c}, dtype), {.epsilon = 1e-5});
      table.in(Slot::x, dtype, {m, c}).in(Slot::weight, dtype, {c}).in(Slot::bias, dtype, {c}).out(Slot::out, dtype, {m, c});
      table.out(Slot::mean, DType::f32, {m}).out(Slot::rstd, DType::f32, {m});
      for (const bool trained : {false, true}) {
        Attributes adds = attributes;
        adds.accumulate = trained;
        table.op(OpKind::rms_norm_backward, text({m, c}, dtype), adds);
        table.in(Slot::d_out, DType::f32, {m, c}).in(Slot::x, dtype, {m, c}).in(Slot::weight, dtype, {c});
        table.in(Slot::rstd, DType::f32, {m}, Fill::positive).out(Slot::d_x, DType::f32, {m, c}, Fill::normal);
        if (trained) table.out(Slot::d_weight, DType::f32, {c}, Fill::normal);
        table.op(OpKind::layer_norm_backward, text({m, c}, dtype), adds);
        table.in(Slot::d_out, DType::f32, {m, c}).in(Slot::x, dtype, {m, c}).in(Slot::weight, dtype, {c});
        table.in(Slot::mean, DType::f32, {m}).in(Slot::rstd, DType::f32, {m}, Fill::positive);
        table.out(Slot::d_x, DType::f32, {m, c}, Fill::normal);
        if (trained)
          table.out(Slot::d_weight, DType::f32, {c}, Fill::normal).out(Slot::d_bias, DType::f32, {c}, Fill::normal);
      }
    }
  }
}

void add_rows(Table& table) {
  for (const auto [m, c] : kRows) {
    for (const DType dtype : kStored) {
      table.op(OpKind::embedding, text({m, c}, dtype), {.scale = 1.5});
      table.in(Slot::weight, dtype, {50, c}).in(Slot::ids, DType::i32, {m}, Fill::ids, 50).out(Slot::out, dtype, {m, c});
      table.op(OpKind::add_bias, text({m, c}, dtype));
      table.out(Slot::x, dtype, {m, c}, Fill::normal).in(Slot::bias, dtype, {c});
      table.op(OpKind::add, text({m, c}, dtype));
      table.in(Slot::a, dtype, {m, c}).in(Slot::b, dtype, {m, c}).out(Slot::out, dtype, {m, c});
      for (const Activation kind : {Activation::silu, Activation::gelu_tanh}) {
        for (const bool gated : {true, false}) {
          table.op(OpKind::activation, text({m, c}, dtype), {.activation = kind});
          table.in(Slot::gate, dtype, {m, c});
          if (gated) table.in(Slot::up, dtype, {m, c});
          table.out(Slot::out, dtype, {m, c});
          table.op(OpKind::activation_backward, text({m, c}, dtype), {.activation = kind});
          table.in(Slot::gate, dtype, {m, c});
          if (gated) table.in(Slot::up, dtype, {m, c});
          table.out(Slot::d_out, DType::f32, {m, c}, Fill::normal).out(Slot::d_gate, DType::f32, {m, c});
        }
      }
      table.op(OpKind::split, text({m, c}, dtype));
      table.in(Slot::x, dtype, {m, 4 * c})
          .out(Slot::a, dtype, {m, 2 * c})
          .out(Slot::b, dtype, {m, c})
          .out(Slot::c, dtype, {m, c});
      table.op(OpKind::join, text({m, c}, dtype));
      table.out(Slot::x, dtype, {m, 3 * c}).in(Slot::a, dtype, {m, 2 * c}).in(Slot::b, dtype, {m, c});
      table.op(OpKind::scale_columns, text({m, c}, dtype));
      table.in(Slot::x, dtype, {m, c}).in(Slot::magnitude, DType::f32, {c}).in(Slot::norm, DType::f32, {c}, Fill::positive);
      table.out(Slot::out, dtype, {m, c});
      table.op(OpKind::scale_columns_backward, text({m, c}, dtype));
      table.in(Slot::d_out, DType::f32, {m, c}).in(Slot::x, dtype, {m, c}).in(Slot::magnitude, DType::f32, {c});
      table.in(Slot::norm, DType::f32, {c}, Fill::positive).out(Slot::d_x, DType::f32, {m, c});
      table.out(Slot::d_magnitude, DType::f32, {c}, Fill::normal);
      table.op(OpKind::dropout, text({m, c}, dtype),
               {.accumulate = true, .noise_seed = 3, .noise_stream = 2, .probability = 0.3});
      table.in(Slot::x, dtype, {m, c}).out(Slot::out, dtype, {m, c}, Fill::normal).scalars();
      table.op(OpKind::noise, text({m, c}, dtype), {.scale = 0.3, .noise_seed = 3});
      table.out(Slot::x, dtype, {m, c}, Fill::normal).scalars();
    }
    table.op(OpKind::embedding_backward, text({m, c}, DType::f32), {.scale = 1.5, .untrained_row = 3});
    table.in(Slot::d_out, DType::f32, {m, c}).in(Slot::ids, DType::i32, {m}, Fill::ids, 50);
    table.out(Slot::d_table, DType::f32, {50, c}, Fill::normal);
    table.op(OpKind::bias_backward, text({m, c}, DType::f32));
    table.in(Slot::d_out, DType::f32, {m, c}).out(Slot::d_bias, DType::f32, {c}, Fill::normal);
  }
}

void add_rotations(Table& table) {
  for (const int64_t head_size : {2, 64, 80}) {
    const int64_t half = head_size / 2, tokens = 37;
    table.op(OpKind::rope_table, text({tokens, half}, DType::f32), {.scale = 1.1});
    table.in(Slot::positions, DType::i32, {tokens}, Fill::ascending)
        .in(Slot::inverse_frequency, DType::f32, {half}, Fill::positive);
    table.out(Slot::cosine, DType::f32, {tokens, half}).out(Slot::sine, DType::f32, {tokens, half});
    for (const DType dtype : kStored) {
      table.op(OpKind::rope, text({1, tokens, 3, head_size}, dtype), {.inverse = dtype == DType::bf16});
      table.out(Slot::x, dtype, {1, tokens, 3, head_size}, Fill::normal).in(Slot::cosine, DType::f32, {tokens, half});
      table.in(Slot::sine, DType::f32, {tokens, half});
    }
  }
}

void add_products(Table& table) {
  struct Sizes {
    int64_t m, n, k;
  };
  for (const auto [m, n, k] : {Sizes{1, 1, 1}, Sizes{5, 7, 9}, Sizes{64, 96, 32}, Sizes{130, 70, 300}, Sizes{96, 640, 8}}) {
    for (const DType weight : kStored) {
      for (const Arithmetic products : {Arithmetic::fp32, Arithmetic::bf16_pieces}) {
        if (products != Arithmetic::fp32 && weight == DType::f32) continue;
        const std::string name = text({m, n, k}, weight) + (products == Arithmetic::fp32 ? "" : " in bf16");
        table.op(OpKind::matmul, name, {.transpose_b = true, .scale = 0.5});
        table.in(Slot::a, weight, {m, k}).in(Slot::b, weight, {n, k}).out(Slot::c, weight, {m, n});
        table.cases.back().products = products;
        table.op(OpKind::matmul, name, {.accumulate = true});
        table.in(Slot::a, DType::f32, {m, k}).in(Slot::b, weight, {k, n}).out(Slot::c, DType::f32, {m, n}, Fill::normal);
        table.cases.back().products = products;
        table.op(OpKind::matmul, name, {.transpose_a = true, .accumulate = true});
        table.in(Slot::a, DType::f32, {k, m}).in(Slot::b, weight, {k, n}).out(Slot::c, DType::f32, {m, n}, Fill::normal);
        table.cases.back().products = products;
      }
    }
  }
}

void add_attention(Table& table) {
  struct Sizes {
    int64_t batch, tokens, heads, kv_heads, head_size;
  };
  for (const auto s : {Sizes{1, 1, 1, 1, 4}, Sizes{2, 37, 4, 2, 16}, Sizes{1, 150, 2, 1, 64}}) {
    for (const DType dtype : kStored) {
      for (const bool windowed : {false, true}) {
        const Attributes attributes{.scale = 0.2, .softcap = windowed ? 5.0 : 0.0, .window = 9};
        const std::vector<int64_t> q{s.batch, s.tokens, s.heads, s.head_size}, k{s.batch, s.tokens, s.kv_heads, s.head_size};
        const std::string name = text({s.batch, s.tokens, s.heads, s.kv_heads, s.head_size}, dtype);
        table.op(OpKind::attention, name, attributes);
        table.in(Slot::q, dtype, q).in(Slot::k, dtype, k).in(Slot::v, dtype, k);
        table.in(Slot::document_start, DType::i32, {s.batch, s.tokens}).out(Slot::out, dtype, q);
        table.out(Slot::lse, DType::f32, {s.batch, s.heads, s.tokens});
        table.cases.back().operands[3].fill = Fill::zeros;
        table.cases.back().is_local = windowed;
        // A gradient is told lse and out; any numbers that are large enough serve, since both sides are told the same.
        table.op(OpKind::attention_backward, name, attributes);
        table.in(Slot::d_out, DType::f32, q).in(Slot::q, dtype, q).in(Slot::k, dtype, k).in(Slot::v, dtype, k);
        table.in(Slot::out, dtype, q).in(Slot::document_start, DType::i32, {s.batch, s.tokens}, Fill::zeros);
        table.in(Slot::lse, DType::f32, {s.batch, s.heads, s.tokens}, Fill::positive);
        table.out(Slot::d_q, DType::f32, q).out(Slot::d_k, DType::f32, k).out(Slot::d_v, DType::f32, k);
        table.cases.back().is_local = windowed;
        table.op(OpKind::cached_attention, name, attributes);
        const std::vector<int64_t> rows{1, s.tokens, s.heads, s.head_size}, keys{1, s.tokens, s.kv_heads, s.head_size};
        table.in(Slot::q, dtype, rows).in(Slot::k, dtype, keys).in(Slot::v, dtype, keys);
        table.in(Slot::positions, DType::i32, {s.tokens}, Fill::ascending);
        const std::vector<int64_t> cache{s.tokens + 3, s.kv_heads, s.head_size};
        table.out(Slot::key_cache, dtype, cache).out(Slot::value_cache, dtype, cache).out(Slot::out, dtype, rows);
        table.cases.back().is_local = windowed;
      }
    }
  }
}

// The steps of a ring: keys of this rank, of one before, and of a later one, which no query sees; and the last, whose sums
// are rounded.
void add_rings(Table& table) {
  const std::vector<int64_t> starts{1, 70}, q{1, 70, 4, 32}, k{1, 70, 2, 32}, lse{1, 4, 70};
  for (const DType dtype : kStored) {
    for (const bool windowed : {false, true}) {
      for (const int64_t step : {0, 1, 2}) {
        const Attributes attributes{.accumulate = step > 0,
                                    .scale = 0.2,
                                    .softcap = windowed ? 5.0 : 0.0,
                                    .window = 90,
                                    .ranks = 3,
                                    .group = RankGroup::context,
                                    .ring_step = step};
        const std::string name = text({70, 4, 2, 32}, dtype) + ", step " + std::to_string(step);
        const auto place = [&] {
          table.cases.back().is_local = windowed;
          table.cases.back().place = 1;
        };
        table.op(OpKind::attention, name, attributes);
        table.in(Slot::q, dtype, q).in(Slot::k, dtype, k).in(Slot::v, dtype, k);
        table.in(Slot::document_start, DType::i32, starts, Fill::ids, 71);
        table.out(Slot::out, step == 2 ? dtype : DType::f32, q, Fill::normal).out(Slot::lse, DType::f32, lse, Fill::normal);
        if (step == 2 && dtype != DType::f32) table.in(Slot::sums, DType::f32, q);
        place();
        table.op(OpKind::attention_backward, name, attributes);
        table.in(Slot::d_out, DType::f32, q).in(Slot::q, dtype, q).in(Slot::k, dtype, k).in(Slot::v, dtype, k);
        table.in(Slot::out, dtype, q).in(Slot::document_start, DType::i32, starts, Fill::ids, 71);
        table.in(Slot::lse, DType::f32, lse, Fill::positive).out(Slot::d_q, DType::f32, q, Fill::normal);
        table.out(Slot::d_k, DType::f32, k, Fill::normal).out(Slot::d_v, DType::f32, k, Fill::normal);
        place();
      }
    }
  }
}

void add_loss(Table& table) {
  struct Sizes {
    int64_t rows, cols, vocabulary, rank;
  };
  for (const auto s : {Sizes{9, 16, 50, 0}, Sizes{70, 64, 300, 4}}) {
    for (const DType dtype : kStored) {
      for (const int trained : {0, 1, 2}) {  // nothing, the hidden states, the weights too
        table.op(OpKind::head_loss, text({s.rows, s.cols, s.vocabulary, s.rank}, dtype),
                 {.softcap = trained == 2 ? 20.0 : 0.0});
        table.in(Slot::hidden, dtype, {s.rows, s.cols}).in(Slot::weight, dtype, {s.vocabulary, s.cols});
        table.in(Slot::target_rows, DType::i32, {s.rows}, Fill::ascending);
        table.in(Slot::target_tokens, DType::i32, {s.rows}, Fill::ids, s.vocabulary).scalars();
        if (s.rank > 0)
          table.in(Slot::low, dtype, {s.rows, s.rank}).in(Slot::low_weight, DType::f32, {s.vocabulary, s.rank});
        if (trained == 0) table.out(Slot::predictions, DType::i32, {s.rows});
        if (trained > 0) table.out(Slot::d_hidden, DType::f32, {s.rows, s.cols});
        if (trained > 0 && s.rank > 0) {
          table.out(Slot::d_low, DType::f32, {s.rows, s.rank});
          table.out(Slot::d_low_weight, DType::f32, {s.vocabulary, s.rank}, Fill::normal);
        }
        if (trained > 1) table.out(Slot::d_weight, DType::f32, {s.vocabulary, s.cols}, Fill::normal);
      }
    }
  }
}

void add_optimizers(Table& table) {
  for (const int64_t n : {1, 100, 20000}) {
    table.op(OpKind::zero, text({n}, DType::f32)).out(Slot::gradient, DType::f32, {n}, Fill::normal);
    table.op(OpKind::square_sum, text({n}, DType::f32)).in(Slot::gradient, DType::f32, {n}).scalars();
    for (const DType dtype : kStored) {
      const auto begin = [&](OpKind kind, const Attributes& attributes) {
        table.op(kind, text({n}, dtype), attributes).out(Slot::parameter, dtype, {n}, Fill::normal);
        if (dtype != DType::f32) table.out(Slot::master, DType::f32, {n}, Fill::normal);
        table.in(Slot::gradient, DType::f32, {n});
      };
      begin(OpKind::adamw, {.epsilon = 1e-8, .beta1 = 0.9, .beta2 = 0.999, .weight_decay = 0.1});
      table.out(Slot::first_moment, DType::f32, {n}, Fill::normal)
          .out(Slot::second_moment, DType::f32, {n}, Fill::positive)
          .scalars();
      begin(OpKind::sgd, {.weight_decay = 0.1, .momentum = 0.9});
      table.out(Slot::first_moment, DType::f32, {n}, Fill::normal).scalars();
      begin(OpKind::lion, {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1});
      table.out(Slot::first_moment, DType::f32, {n}, Fill::normal).scalars();
    }
  }
  for (const bool factored : {true, false}) {
    const std::vector<int64_t> shape = factored ? std::vector<int64_t>{2, 30, 70} : std::vector<int64_t>{70};
    table.op(OpKind::adafactor, factored ? "2 x 30 x 70" : "70", {.weight_decay = 0.1});
    table.out(Slot::parameter, DType::f32, shape, Fill::normal).in(Slot::gradient, DType::f32, shape);
    if (factored) table.out(Slot::row_factor, DType::f32, {2, 30}, Fill::positive);
    table.out(Slot::column_factor, DType::f32, factored ? std::vector<int64_t>{2, 70} : shape, Fill::positive).scalars();
  }
  table.op(OpKind::clip_factor, "", {.max_norm = 1.0}).scalars();
  table.op(OpKind::update_scale, "", {.scale_window = 1}).scalars();
}

void add_experts(Table& table) {
  struct Sizes {
    int64_t tokens, experts, choices, n, k;
  };
  for (const auto s : {Sizes{1, 2, 1, 4, 8}, Sizes{60, 8, 2, 40, 24}, Sizes{300, 4, 2, 64, 96}}) {
    const auto [rows, tile] = routed_rows(s.tokens, s.experts, s.choices);
    const std::string sizes = text({s.tokens, s.experts, s.choices}, DType::f32);
    const std::vector<int64_t> choices{s.tokens, s.choices}, tiles{rows / tile};
    for (const bool normalize : {false, true}) {
      const Attributes attributes{.normalize_weights = normalize};
      table.op(OpKind::route, sizes, attributes).in(Slot::logits, DType::f32, {s.tokens, s.experts});
      table.out(Slot::route_weights, DType::f32, choices).out(Slot::expert_rows, DType::i32, choices);
      table.out(Slot::row_tokens, DType::i32, {rows}).out(Slot::tile_experts, DType::i32, tiles);
    }
    table.op(OpKind::route_backward, sizes, {.normalize_weights = true});
    table.in(Slot::d_route_weights, DType::f32, choices).in(Slot::route_weights, DType::f32, choices, Fill::positive);
    table.in(Slot::expert_rows, DType::i32, choices, Fill::routing).in(Slot::tile_experts, DType::i32, tiles, Fill::routing);
    table.out(Slot::d_logits, DType::f32, {s.tokens, s.experts});
    const auto routing = [&](bool tokens) {
      table.in(Slot::expert_rows, DType::i32, choices, Fill::routing);
      if (tokens) table.in(Slot::row_tokens, DType::i32, {rows}, Fill::routing);
    };
    for (const DType dtype : kStored) {
      const std::string name = sizes + " " + std::string(name_of(dtype));
      table.op(OpKind::gather_rows, name).in(Slot::x, dtype, {s.tokens, s.k});
      routing(true), table.out(Slot::out, dtype, {rows, s.k});
      table.op(OpKind::combine, name).in(Slot::rows, dtype, {rows, s.k}).in(Slot::route_weights, DType::f32, choices);
      routing(false), table.out(Slot::out, dtype, {s.tokens, s.k});
      table.op(OpKind::combine_backward, name)
          .in(Slot::d_out, DType::f32, {s.tokens, s.k})
          .in(Slot::rows, dtype, {rows, s.k});
      table.in(Slot::route_weights, DType::f32, choices), routing(true);
      table.out(Slot::d_rows, DType::f32, {rows, s.k}).out(Slot::d_route_weights, DType::f32, choices);
      const int64_t needed = s.tokens * s.choices;
      table.op(OpKind::expert_matmul, name, {.transpose_b = true, .needed_rows = needed});
      table.in(Slot::a, dtype, {rows, s.k}).in(Slot::b, dtype, {s.experts, s.n, s.k});
      table.in(Slot::tile_experts, DType::i32, tiles, Fill::routing).out(Slot::c, dtype, {rows, s.n});
      table.op(OpKind::expert_matmul, name, {.needed_rows = needed});
      table.in(Slot::a, DType::f32, {rows, s.n}).in(Slot::b, dtype, {s.experts, s.n, s.k});
      table.in(Slot::tile_experts, DType::i32, tiles, Fill::routing).out(Slot::c, DType::f32, {rows, s.k});
      table.op(OpKind::expert_matmul, name, {.transpose_a = true, .accumulate = true, .needed_rows = needed});
      table.in(Slot::a, DType::f32, {rows, s.n}).in(Slot::b, dtype, {rows, s.k});
      table.in(Slot::tile_experts, DType::i32, tiles, Fill::routing)
          .out(Slot::c, DType::f32, {s.experts, s.n, s.k}, Fill::normal);
    }
    table.op(OpKind::gather_rows_backward, sizes, {.accumulate = true}).in(Slot::d_out, DType::f32, {rows, s.k});
    routing(false), table.out(Slot::d_x, DType::f32, {s.tokens, s.k}, Fill::normal);
  }
}

void add_dora(Table& table) {
  for (const bool output_first : {true, false}) {
    for (const DType dtype : kStored) {
      table.op(OpKind::dora_norm, text({30, 70}, dtype), {.transpose_b = output_first, .scale = 0.5});
      table.in(Slot::weight, dtype, output_first ? std::vector<int64_t>{30, 70} : std::vector<int64_t>{70, 30});
      table.in(Slot::a, DType::f32, {4, 70}).in(Slot::b, DType::f32, {30, 4}).out(Slot::norm, DType::f32, {30});
    }
  }
}

int64_t elements_of(const TableOperand& operand) {
  int64_t product = 1;
  for (const int64_t size : operand.shape) product *= size;
  return product;
}

void store(std::byte* to, DType dtype, int64_t i, double value) {
  const auto narrow = static_cast<float>(value);
  const auto put = [&](auto typed) { std::memcpy(to + i * static_cast<int64_t>(sizeof(typed)), &typed, sizeof(typed)); };
  switch (dtype) {
    case DType::f64: return put(value);
    case DType::f32: return put(narrow);
    case DType::bf16: return put(f32_to_bf16(narrow));
    case DType::f16: return put(f32_to_f16(narrow));
    default: return put(static_cast<int32_t>(value));
  }
}

// What `route` would have written if token t chose experts t, t + 1 … : a routing for ops that read one.
double routed(const TableCase& of, Slot slot, int64_t i) {
  int64_t tokens = 0, choices = 0, experts = 0, rows = 0, tiles = 0;
  for (const TableOperand& operand : of.operands) {
    if (operand.slot == Slot::expert_rows) tokens = operand.shape[0], choices = operand.shape[1];
    if (operand.slot == Slot::tile_experts) tiles = operand.shape[0];
    if (operand.slot == Slot::d_logits) experts = operand.shape[1];
  }
  // Without sizes of its own the op takes any: two experts, of which the first has the first half of the tiles.
  if (slot == Slot::tile_experts && tokens == 0)
    return static_cast<double>(i < (tiles + 1) / 2 ? 0 : i + 1 < tiles ? 1 : -1);
  rows = tokens * choices;
  if (slot == Slot::row_tokens) return static_cast<double>(i < rows ? i / choices : -1);
  if (slot == Slot::expert_rows && experts == 0) return static_cast<double>(i);
  // One expert for each choice, each with a tile of its own for every token's row.
  const int64_t tile = tokens > 0 ? routed_rows(tokens, experts, choices).tile : 1, each = (tokens + tile - 1) / tile;
  if (slot == Slot::expert_rows) return static_cast<double>(i % choices * each * tile + i / choices);
  return static_cast<double>(i / each < choices ? i / each : -1);
}

}  // namespace

std::vector<TableCase> op_table() {
  Table table;
  for (const auto add : {add_norms, add_rows, add_rotations, add_products, add_attention, add_rings, add_loss,
                         add_optimizers, add_experts, add_dora})
    add(table);
  return std::move(table.cases);
}

TableMemory::TableMemory(const TableCase& of) : of_(of) {
  for (size_t index = 0; index < of.operands.size(); ++index) {
    const TableOperand& operand = of.operands[index];
    const int64_t count = elements_of(operand);
    std::vector<std::byte>& bytes = bytes_.emplace_back(static_cast<size_t>(bytes_of(operand.dtype, count)));
    const Philox random{.seed = 5, .stream = index};
    for (int64_t i = 0; i < count; ++i) {
      const auto normal = static_cast<double>(random.normal(static_cast<uint64_t>(i)));
      double value = 0;
      switch (operand.fill) {
        case Fill::normal: value = normal; break;
        case Fill::positive: value = std::abs(normal) + 0.5; break;
        case Fill::zeros: break;
        case Fill::ids:
          value = static_cast<double>(random.words(static_cast<uint64_t>(i))[0] % static_cast<uint64_t>(operand.bound));
          break;
        case Fill::ascending: value = static_cast<double>(i); break;
        case Fill::routing: value = routed(of, operand.slot, i); break;
      }
      store(bytes.data(), operand.dtype, i, value);
    }
    if (operand.slot != Slot::scalars) continue;
    const auto set = [&](Scalar which, double value) {
      store(bytes.data(), DType::f64, static_cast<int64_t>(which), value);
    };
    set(Scalar::learning_rate, 0.01), set(Scalar::step, 3), set(Scalar::micro_batch, 1), set(Scalar::skip, 0);
    set(Scalar::target_count, 0), set(Scalar::steps_at_scale, 1);
    for (const TableOperand& rows : of.operands)
      if (rows.slot == Slot::target_rows) set(Scalar::target_count, static_cast<double>(rows.shape[0] - 2));
  }
}

OpView TableMemory::view(const OpCut& cut, int64_t workspace) {
  OpView view(of_.kind, of_.attributes, cut);
  view.is_local = of_.is_local;
  view.place = of_.place;
  view.layer = 1;
  for (size_t index = 0; index < of_.operands.size(); ++index) {
    const TableOperand& operand = of_.operands[index];
    OperandView added{
        .slot = operand.slot, .dtype = operand.dtype, .elements = elements_of(operand), .data = bytes_[index].data()};
    for (const int64_t size : operand.shape) added.shape[added.axes++] = size;
    view.add(added);
  }
  if (workspace > 0) {
    workspace_.assign(static_cast<size_t>(workspace) + 64, std::byte{0xFF});
    auto* const start = workspace_.data() + (64 - reinterpret_cast<uintptr_t>(workspace_.data()) % 64) % 64;
    view.add({.slot = Slot::workspace,
              .dtype = DType::u8,
              .axes = 1,
              .shape = {workspace},
              .elements = workspace,
              .data = start});
  }
  return view;
}

std::vector<double> TableMemory::numbers(size_t operand) const {
  const TableOperand& of = of_.operands[operand];
  const std::byte* const from = bytes_[operand].data();
  std::vector<double> values(static_cast<size_t>(elements_of(of)));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto get = [&](auto typed) {
      std::memcpy(&typed, from + i * sizeof(typed), sizeof(typed));
      return typed;
    };
    switch (of.dtype) {
      case DType::f64: values[i] = get(0.0); break;
      case DType::f32: values[i] = static_cast<double>(get(0.0F)); break;
      case DType::bf16: values[i] = static_cast<double>(bf16_to_f32(get(uint16_t{0}))); break;
      case DType::f16: values[i] = static_cast<double>(f16_to_f32(get(uint16_t{0}))); break;
      default: values[i] = static_cast<double>(get(int32_t{0}));
    }
  }
  return values;
}

}  // namespace snug::tests
