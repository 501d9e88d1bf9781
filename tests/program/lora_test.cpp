// LoRA as Hu et al. (2021) write it and PEFT makes it, counted by hand on a tiny decoder.

#include "program/passes/lora.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "program/adjoint.h"
#include "program/passes/evaluate.h"
#include "program/support_tiny.h"

namespace snug::testing {

namespace {

using Sizes = std::vector<int64_t>;

Program with_lora(const Lora& lora, const ModelSpec& spec = tiny_decoder()) {
  Program program = tiny_forward(spec);
  add_lora(program, lora);
  return program;
}

TEST(Handles, name_the_linears_of_a_block_in_the_order_of_their_products) {
  const Program program = tiny_forward();
  std::vector<std::string> modules;
  for (const Linear& linear : program.linears) modules.push_back(module_of(program, linear));
  EXPECT_EQ(modules,
            (std::vector<std::string>{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}));
  const std::vector<Op> ops = ops_of_block(program);
  size_t last = 0;
  for (const Linear& linear : program.linears) {
    const size_t at = position_of(ops, linear.product);
    ASSERT_LT(at, ops.size());
    EXPECT_GE(at, last);
    last = at;
    EXPECT_EQ(ops[at].find(Slot::b), program.weights[static_cast<size_t>(linear.weight)].tensor);
    EXPECT_EQ(ops[at].find(Slot::a), linear.input);
    EXPECT_EQ(ops[at].find(Slot::c), linear.output);
    EXPECT_EQ(linear.adapter.down, kNone);
  }
}

TEST(Handles, find_one_op_below_a_region_or_refuse) {
  Program program = tiny_forward();
  Region& forward = program.region(Section::forward);
  const OpPlace loss = find_op(forward, program.loss);
  EXPECT_EQ(loss.op().kind, OpKind::head_loss);
  EXPECT_EQ(loss.region, &forward);
  EXPECT_EQ(program.head.product, program.loss);
  EXPECT_EQ(program.token_lookups.size(), 1U);
  EXPECT_THROW(find_op(program.region(Section::batch), program.loss), std::logic_error);
  EXPECT_THROW(find_op(forward, kNone), std::logic_error);
  insert_before(loss, {loss.op()});  // a copy in the same region
  EXPECT_THROW(find_op(forward, program.loss), std::logic_error);
  EXPECT_THROW(program.region(Section::backward), std::logic_error);
  EXPECT_THROW(operand(forward.items.front().value.index() == 0 ? *forward.items.front().op() : loss.op(), Slot::staging),
               std::logic_error);
}

// r (in + out) numbers a module: q 32 + 32, v 32 + 16, down 80 + 32.
TEST(LoraPass, trains_r_times_in_plus_out_numbers_of_each_target) {
  const Program program = with_lora({.r = 4, .target_modules = {"q_proj", "v_proj", "down_proj"}});
  EXPECT_EQ(program.trainable_parameters(), 4 * (4 * 64 + 4 * 48 + 4 * 112));
  for (const Weight& weight : program.weights) {
    EXPECT_EQ(weight.trainable, weight.adapter);
    if (!weight.adapter) continue;
    EXPECT_EQ(weight.origin, weight.parameter.shape[0] == 4 ? Origin::lora_a : Origin::zeros) << weight.parameter.name;
    EXPECT_EQ(program.tensor(weight.tensor).dtype, DType::f32);
  }
}

TEST(LoraPass, adds_two_products_right_behind_the_modules_own) {
  Program program = with_lora({.r = 4, .alpha = 16, .target_modules = {"v_proj"}});
  const Linear& v = linear_of(program, "v_proj");
  const std::vector<Op> ops = ops_of_block(program);
  const size_t at = position_of(ops, v.product);
  ASSERT_EQ(position_of(ops, v.adapter.down), at + 1);
  ASSERT_EQ(position_of(ops, v.adapter.up), at + 2);
  const Op &product = ops[at], &down = ops[at + 1], &up = ops[at + 2];
  // low [M, r] = 16 / 4 x A^T
  EXPECT_EQ(down.find(Slot::a), product.find(Slot::a));
  EXPECT_EQ(sizes_of(program, down.find(Slot::b)), (Sizes{4, 32}));
  EXPECT_EQ(sizes_of(program, down.find(Slot::c)), (Sizes{32, 4}));
  EXPECT_TRUE(down.attributes.transpose_b && !down.attributes.accumulate);
  EXPECT_EQ(down.attributes.scale, 4.0);
  // y += low B^T
  EXPECT_EQ(up.find(Slot::a), down.find(Slot::c));
  EXPECT_EQ(sizes_of(program, up.find(Slot::b)), (Sizes{16, 4}));
  EXPECT_EQ(up.find(Slot::c), product.find(Slot::c));
  EXPECT_TRUE(up.attributes.transpose_b && up.attributes.accumulate);
  EXPECT_EQ(up.attributes.scale, 1.0);
  EXPECT_EQ(count_of(ops, OpKind::matmul), 7 + 2);
  EXPECT_EQ(linear_of(program, "q_proj").adapter.down, kNone);
}

TEST(LoraPass, scales_by_the_root_of_the_rank_where_rslora_is_asked_for) {
  Program program = with_lora({.r = 4, .alpha = 16, .target_modules = {"q_proj"}, .use_rslora = true});
  EXPECT_EQ(op_with(program, linear_of(program, "q_proj").adapter.down).attributes.scale, 8.0);
}

TEST(LoraPass, of_the_head_stands_before_the_loss_and_ends_within_it) {
  Program program = with_lora({.r = 4, .target_modules = {"lm_head"}});
  const Region& forward = program.region(Section::forward);
  const Op down = op_with(program, program.head.adapter.down), loss = op_with(program, program.loss);
  EXPECT_EQ(forward.items.back().op()->id, program.loss);
  EXPECT_EQ(forward.items[forward.items.size() - 2].op()->id, program.head.adapter.down);
  EXPECT_EQ(down.find(Slot::a), loss.find(Slot::hidden));
  EXPECT_EQ(loss.find(Slot::low), down.find(Slot::c));
  EXPECT_EQ(sizes_of(program, loss.find(Slot::low_weight)), (Sizes{96, 4}));
  EXPECT_EQ(program.trainable_parameters(), 4 * (32 + 96));
}

// y = (x W^T + s x A^T B^T) magnitude / ||W + s B A|| + bias (Liu et al., 2024, equation 5).
TEST(LoraPass, of_dora_scales_the_sum_of_both_products_before_the_bias) {
  ModelSpec spec = tiny_decoder();
  spec.query_key_value_bias = true;
  Program program = with_lora({.r = 4, .target_modules = {"k_proj"}, .use_dora = true}, spec);
  const Linear& k = linear_of(program, "k_proj");
  const std::vector<Op> ops = ops_of_block(program);
  const size_t at = position_of(ops, k.product);
  ASSERT_LT(at + 5, ops.size());
  const Op &product = ops[at], &up = ops[at + 2], &norm = ops[at + 3], &scale = ops[at + 4], &bias = ops[at + 5];
  EXPECT_EQ(scale.id, k.adapter.scale);
  EXPECT_EQ(norm.kind, OpKind::dora_norm);
  EXPECT_EQ(up.find(Slot::c), product.find(Slot::c));
  EXPECT_EQ(scale.find(Slot::x), product.find(Slot::c));
  EXPECT_EQ(scale.find(Slot::norm), norm.find(Slot::norm));
  EXPECT_EQ(sizes_of(program, scale.find(Slot::magnitude)), (Sizes{16}));
  EXPECT_EQ(scale.find(Slot::out), k.output);
  EXPECT_NE(scale.find(Slot::x), k.output);
  EXPECT_EQ(bias.kind, OpKind::add_bias);
  EXPECT_EQ(bias.find(Slot::x), k.output);
  EXPECT_EQ(program.trainable_parameters(), 4 * (4 * (32 + 16) + 16));
}

TEST(LoraPass, reaches_each_step_of_generation_with_one_pair_of_weights) {
  Program program = build_generation(tiny_decoder(), {}, {.capacity = 32, .steps = {8, 1}});
  add_lora(program, {.r = 4, .target_modules = {"q_proj", "lm_head"}});
  std::vector<TensorId> weights;
  for (const Linear& linear : program.linears)
    if (linear.adapter.down != kNone) weights.push_back(find_op(program.root, linear.adapter.down).op().find(Slot::b));
  ASSERT_EQ(weights.size(), 2U);
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(find_op(program.root, program.head.adapter.up).op().find(Slot::c), program.generation.logits);
}

TEST(LoraPass, refuses_a_program_that_has_copies_of_its_forward_or_adapters_already) {
  const Lora lora{.target_modules = {"q_proj"}};
  Program twice = with_lora(lora);
  EXPECT_THROW(add_lora(twice, lora), std::logic_error);
  Program evaluated = tiny_forward();
  add_evaluation(evaluated);
  EXPECT_THROW(add_lora(evaluated, lora), std::logic_error);
  Program differentiated = with_lora(lora);
  differentiate(differentiated);
  EXPECT_THROW(add_lora(differentiated, lora), std::logic_error);
  EXPECT_THROW(differentiate(differentiated), std::logic_error);
  EXPECT_THROW(add_evaluation(differentiated), std::logic_error);
}

}  // namespace

}  // namespace snug::testing
