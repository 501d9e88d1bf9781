// Dropout where PEFT has it: of what an adapter reads, with a mask for each module, in training alone.

#include "program/passes/dropout.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "program/adjoint.h"
#include "program/dump.h"
#include "program/passes/evaluate.h"
#include "program/passes/lora.h"
#include "program/support_tiny.h"

namespace snug::testing {

namespace {

Program dropped(const Lora& lora, bool evaluates = false) {
  Program program = tiny_forward();
  add_lora(program, lora);
  if (evaluates) add_evaluation(program);
  add_dropout(program, lora.dropout, 7);
  return program;
}

TEST(DropoutPass, leaves_a_program_as_it_is_where_the_probability_is_0) {
  const Lora lora{.target_modules = {"q_proj"}};
  Program program = tiny_forward();
  add_lora(program, lora);
  EXPECT_EQ(dump(dropped(lora)), dump(program));
}

TEST(DropoutPass, draws_a_mask_of_its_own_for_each_adapter_and_leaves_the_modules_product_alone) {
  Program program = dropped({.dropout = 0.25, .target_modules = {"q_proj", "v_proj", "lm_head"}}, true);
  std::set<uint64_t> streams;
  for (const Linear* linear : {&linear_of(program, "q_proj"), &linear_of(program, "v_proj"), &program.head}) {
    const Op drop = op_with(program, linear->adapter.dropout), down = op_with(program, linear->adapter.down);
    EXPECT_EQ(drop.find(Slot::x), linear->input);
    EXPECT_EQ(down.find(Slot::a), drop.find(Slot::out));
    EXPECT_EQ(sizes_of(program, drop.find(Slot::out)), sizes_of(program, linear->input));
    EXPECT_EQ(drop.attributes.probability, 0.25);
    EXPECT_EQ(drop.attributes.noise_seed, 7U);
    EXPECT_FALSE(drop.attributes.complement);
    streams.insert(drop.attributes.noise_stream);
    const Op product = op_with(program, linear->product);
    EXPECT_EQ(product.find(product.kind == OpKind::head_loss ? Slot::hidden : Slot::a), linear->input);
  }
  EXPECT_EQ(streams.size(), 3U);
  EXPECT_EQ(linear_of(program, "k_proj").adapter.dropout, kNone);
  for_each_op(program.region(Section::evaluate), [](const Op& op, const Region&) { EXPECT_NE(op.kind, OpKind::dropout); });
}

// With x' what dropout leaves of x, y = W x + (g - 1) W x' + g s B A x' = g (W x' + s B A x') + W (x - x').
TEST(DropoutPass, of_dora_adds_the_product_of_what_it_takes_away_unscaled) {
  Program program = dropped({.dropout = 0.25, .target_modules = {"q_proj"}, .use_dora = true});
  const Linear& q = linear_of(program, "q_proj");
  const std::vector<Op> ops = ops_of_block(program);
  const size_t at = position_of(ops, q.adapter.dropout);
  ASSERT_LT(at + 7, ops.size());
  const Op &left = ops[at], &product = ops[at + 1], &down = ops[at + 2], &up = ops[at + 3], &scale = ops[at + 5];
  const Op &taken = ops[at + 6], &rest = ops[at + 7];
  EXPECT_EQ(product.id, q.product);
  EXPECT_EQ(product.find(Slot::a), left.find(Slot::out));
  EXPECT_EQ(down.find(Slot::a), left.find(Slot::out));
  EXPECT_EQ(up.find(Slot::c), product.find(Slot::c));
  EXPECT_EQ(scale.id, q.adapter.scale);
  EXPECT_EQ(taken.kind, OpKind::dropout);
  EXPECT_TRUE(taken.attributes.complement);
  EXPECT_EQ(taken.attributes.noise_stream, left.attributes.noise_stream);
  EXPECT_EQ(taken.find(Slot::x), q.input);
  EXPECT_EQ(rest.find(Slot::a), taken.find(Slot::out));
  EXPECT_EQ(rest.find(Slot::b), product.find(Slot::b));
  EXPECT_EQ(rest.find(Slot::c), q.output);
  EXPECT_TRUE(rest.attributes.accumulate);
}

TEST(DropoutPass, keeps_no_mask_and_no_dropped_input_for_backward_but_draws_them_again) {
  Program program = dropped({.dropout = 0.25, .target_modules = {"q_proj", "down_proj"}});
  differentiate(program);
  ASSERT_EQ(program.blocks.size(), 1U);
  for (StorageId id : program.blocks.front().saved)
    EXPECT_EQ(program.storage(id).name.find(".dropped"), std::string::npos) << program.storage(id).name;
  const std::vector<Op> backward = ops_of_block(program, Section::blocks_backward);
  for (const char* module : {"q_proj", "down_proj"}) {
    const Op once = op_with(program, linear_of(program, module).adapter.dropout);
    const size_t at = position_of(backward, once.id);
    ASSERT_LT(at, backward.size()) << module;
    EXPECT_EQ(backward[at].attributes.noise_stream, once.attributes.noise_stream);
    EXPECT_EQ(backward[at].attributes.noise_seed, once.attributes.noise_seed);
    EXPECT_EQ(backward[at].find(Slot::x), once.find(Slot::x));
    EXPECT_NE(backward[at].find(Slot::out), once.find(Slot::out));
  }
}

TEST(DropoutPass, refuses_what_has_it_already_or_is_differentiated) {
  const Lora lora{.dropout = 0.25, .target_modules = {"q_proj"}};
  Program program = dropped(lora);
  EXPECT_THROW(add_dropout(program, 0.25, 7), std::logic_error);
  EXPECT_THROW(add_evaluation(program), std::logic_error);
  differentiate(program);
  EXPECT_THROW(add_dropout(program, 0.25, 7), std::logic_error);
}

}  // namespace

}  // namespace snug::testing
