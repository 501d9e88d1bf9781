// What each optimizer keeps, to the byte, and where.

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/scalars.h"
#include "program/compile.h"

namespace snug::testing {

namespace {

// Weights below and above 4,096 elements, and of sizes that fill no block.
ModelSpec small() {
  ModelSpec spec{.name = "small", .architecture = "LlamaForCausalLM", .family = "llama"};
  spec.hidden_size = 60;
  spec.intermediate_size = 83;
  spec.vocab_size = 97;
  spec.layers = 3;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_size = 16;
  spec.max_position = 64;
  return spec;
}

Program compiled(Optimizer optim, double momentum = 0.0) {
  Recipe recipe;
  recipe.method = Method::full;
  recipe.seq_len = 16;
  recipe.optim = optim;
  recipe.momentum = momentum;
  return compile(small(), recipe);
}

int64_t state_bytes(const Program& program) {
  int64_t sum = 0;
  for (const Storage& storage : program.storages)
    if (storage.role == Role::optimizer) sum += storage.bytes;
  return sum;
}

// The sum over all instances of f(elements of one).
int64_t over_weights(const Program& program, const std::function<int64_t(const Parameter&)>& f) {
  int64_t sum = 0;
  for (const Weight& weight : program.weights)
    sum += f(weight.parameter) * (weight.parameter.per_layer ? program.layers : 1);
  return sum;
}

TEST(OptimizerStates, are_planned_to_the_byte) {
  const Program adamw = compiled(Optimizer::adamw);
  const int64_t padded = over_weights(adamw, [](const Parameter& p) { return align_up(p.elements(), 32); });
  EXPECT_EQ(state_bytes(adamw), 8 * padded);
  EXPECT_EQ(state_bytes(compiled(Optimizer::adamw_bf16)), 4 * padded);
  EXPECT_EQ(state_bytes(compiled(Optimizer::lion)), 4 * padded);
  EXPECT_EQ(state_bytes(compiled(Optimizer::sgd)), 0);
  EXPECT_EQ(state_bytes(compiled(Optimizer::sgd, 0.9)), 4 * padded);
  const auto eight_bit = [&](int64_t states) {
    return over_weights(adamw, [&](const Parameter& p) {
      const int64_t blocks = align_up(p.elements(), kStateBlock) / kStateBlock;
      return states * (p.elements() >= 4096 ? blocks * (kStateBlock + 4) : 4 * align_up(p.elements(), 32));
    });
  };
  EXPECT_EQ(state_bytes(compiled(Optimizer::adamw_8bit)), eight_bit(2));
  EXPECT_EQ(state_bytes(compiled(Optimizer::lion_8bit)), eight_bit(1));
  EXPECT_EQ(state_bytes(compiled(Optimizer::adafactor)), over_weights(adamw, [](const Parameter& p) {
              if (p.shape.size() == 1) return 4 * align_up(p.elements(), 32);
              return 4 * (align_up(p.shape[0], 32) + align_up(p.shape[1], 32));
            }));
}

TEST(OptimizerStates, in_blocks_follow_each_weight) {
  const Program program = compiled(Optimizer::adamw_8bit);
  std::map<DType, int> moments;
  for (const Weight& weight : program.weights) {
    const Tensor& first = program.tensor(weight.state(Slot::first_moment));
    ++moments[first.dtype];
    EXPECT_EQ(first.dtype, weight.parameter.elements() >= 4096 ? DType::u8 : DType::f32) << weight.parameter.name;
    if (first.dtype != DType::u8) continue;
    const Tensor& absmax = program.tensor(weight.state(Slot::first_absmax));
    const Tensor& parameter = program.tensor(weight.tensor);
    EXPECT_EQ(first.offset % kStateBlock, 0) << weight.parameter.name;
    EXPECT_EQ(first.layer_stride % kStateBlock, 0) << weight.parameter.name;
    EXPECT_EQ(absmax.offset, first.offset / kStateBlock * 4) << weight.parameter.name;
    EXPECT_EQ(absmax.layer_stride, first.layer_stride / kStateBlock * 4) << weight.parameter.name;
    EXPECT_EQ(parameter.offset, first.offset * 4) << weight.parameter.name;
  }
  EXPECT_GT(moments[DType::u8], 2);
  EXPECT_GT(moments[DType::f32], 2);
}

TEST(OptimizerStates, of_matrices_are_updated_weight_by_weight_where_they_are_factors) {
  const Program program = compiled(Optimizer::adafactor);
  std::map<std::string, int64_t> ops;
  for_each_op(program.root, [&](const Op& op, const Region& region) {
    if (op.kind == OpKind::adafactor) ++ops[region.name];
  });
  int64_t once = 0, layered = 0;
  for (const Weight& weight : program.weights) ++(weight.parameter.per_layer ? layered : once);
  EXPECT_EQ(ops["optimizer"], once);
  EXPECT_EQ(ops["optimizer.layers"], layered);
  EXPECT_EQ(program.region("optimizer.layers").count, program.layers);
}

}  // namespace

}  // namespace snug::testing
