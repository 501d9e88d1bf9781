// Where pages come and go: what blocks save leaves once it is made and comes before it is read, weights come before each
// use.

#include <gtest/gtest.h>

#include "program/compile.h"
#include "program/support_tiny.h"
#include "recipe/keys.h"

namespace snug::testing {

namespace {

Program offloaded(bool activations, bool weights, bool checkpointing = false) {
  Recipe recipe;
  recipe.seq_len = 16;
  recipe.lora = {.r = 4, .alpha = 8, .target_modules = {"all-linear"}};
  recipe.gradient_checkpointing = checkpointing;
  recipe.offload_activations = activations;
  recipe.offload_weights = weights;
  return compile(tiny_decoder(), recipe);
}

// Names of the storages that a body fetches and sends, in order, each with the items between it and what uses it.
std::vector<std::string> moved(const Program& program, const Region& body, OpKind kind) {
  std::vector<std::string> names;
  for (const Item& item : body.items)
    if (const Op* op = item.op(); op != nullptr && op->kind == kind)
      names.push_back(program.storage(program.tensor(op->find(Slot::far)).storage).name);
  return names;
}

TEST(Offload, activations_are_sent_in_forward_and_fetched_in_backward) {
  const Program program = offloaded(true, false);
  const Region &ahead = program.region(Section::blocks), &back = program.region(Section::blocks_backward);
  EXPECT_TRUE(moved(program, ahead, OpKind::page_in).empty());
  EXPECT_TRUE(moved(program, back, OpKind::page_out).empty());
  std::vector<std::string> sent = moved(program, ahead, OpKind::page_out), fetched = moved(program, back, OpKind::page_in);
  EXPECT_GT(sent.size(), 10u);
  std::ranges::sort(sent);
  std::ranges::sort(fetched);
  EXPECT_EQ(sent, fetched);
  // The stream begins before the blocks and ends behind them.
  EXPECT_EQ(moved(program, program.region(Section::forward), OpKind::page_out), std::vector<std::string>{"x"});
  EXPECT_EQ(moved(program, program.region(Section::backward), OpKind::page_in), std::vector<std::string>{"x"});
  for (const BlockRun& block : program.blocks)
    for (StorageId saved : block.saved) EXPECT_EQ(program.storage(saved).home, Home::disk);
}

TEST(Offload, of_recomputed_blocks_only_the_stream_moves) {
  const Program program = offloaded(true, false, true);
  EXPECT_EQ(moved(program, program.region(Section::blocks), OpKind::page_out), std::vector<std::string>{"x"});
  EXPECT_EQ(moved(program, program.region(Section::blocks_backward), OpKind::page_in), std::vector<std::string>{"x"});
}

TEST(Offload, each_body_fetches_the_matrices_that_it_reads_once) {
  const Program program = offloaded(false, true);
  for (const Section section : {Section::blocks, Section::blocks_backward}) {
    const Region& body = program.region(section);
    const std::vector<std::string> fetched = moved(program, body, OpKind::page_in);
    EXPECT_EQ(fetched.size(), 7u);
    EXPECT_EQ(std::set(fetched.begin(), fetched.end()).size(), 7u);
    EXPECT_TRUE(moved(program, body, OpKind::page_out).empty());
  }
}

Program offloaded_full(bool weights, bool gradients, int64_t accumulation = 2) {
  Recipe recipe;
  recipe.seq_len = 16;
  recipe.accumulation = accumulation;
  recipe.method = Method::full;
  recipe.offload_weights = weights;
  recipe.offload_gradients = gradients;
  return compile(tiny_decoder(), recipe);
}

TEST(Offload, of_what_is_trained_a_body_moves_one_matrix_at_a_time) {
  const Program program = offloaded_full(true, true);
  const Region &ahead = program.region(Section::blocks), &back = program.region(Section::blocks_backward);
  EXPECT_EQ(moved(program, ahead, OpKind::page_in).size(), 7u);
  EXPECT_TRUE(moved(program, ahead, OpKind::page_out).empty());
  EXPECT_EQ(moved(program, back, OpKind::page_in).size(), 14u);  // with what other micro-batches gave
  EXPECT_EQ(moved(program, back, OpKind::page_out).size(), 7u);
  for (const Weight& weight : program.weights) {
    const bool matrix = weight.parameter.per_layer && weight.parameter.shape.size() > 1;
    EXPECT_EQ(program.home_of(weight.tensor), matrix ? Home::disk : Home::device) << weight.parameter.name;
    EXPECT_EQ(program.home_of(weight.gradient), matrix ? Home::disk : Home::device) << weight.parameter.name;
  }
}

// Nothing was there before: each gradient is made in its window.
TEST(Offload, gradients_of_one_micro_batch_are_sent_alone) {
  const Program program = offloaded_full(false, true, 1);
  const Region& back = program.region(Section::blocks_backward);
  EXPECT_TRUE(moved(program, back, OpKind::page_in).empty());
  EXPECT_EQ(moved(program, back, OpKind::page_out).size(), 7u);
  for_each_op(program.region(Section::clear), [&](const Op& op, const Region&) { EXPECT_NE(op.kind, OpKind::page_out); });
}

// So that noise, norms and blocks of states are the same.
TEST(Offload, what_is_trained_lies_in_the_same_order_in_either_home) {
  const Program stays = offloaded_full(false, false), away = offloaded_full(true, true);
  ASSERT_EQ(stays.weights.size(), away.weights.size());
  for (size_t i = 0; i < stays.weights.size(); ++i)
    for (const auto which : {&Weight::tensor, &Weight::gradient}) {
      const Tensor &here = stays.tensor(stays.weights[i].*which), &there = away.tensor(away.weights[i].*which);
      EXPECT_EQ(here.offset, there.offset) << here.name;
      EXPECT_EQ(here.layer_stride, there.layer_stride) << here.name;
    }
}

// Whoever reads far bytes would read an address that is none.
TEST(Offload, no_op_sees_what_lies_far_but_pages_and_the_host) {
  for (const Program& program : {offloaded(true, true), offloaded(true, true, true), offloaded_full(true, true)})
    for_each_op(program.root, [&](const Op& op, const Region&) {
      if (run_by(op.kind) != RunBy::backend) return;
      for (const Operand& operand : op.operands)
        EXPECT_EQ(program.home_of(operand.tensor), Home::device) << name_of(op.kind) << program.tensor(operand.tensor).name;
    });
}

TEST(Offload, is_refused_where_there_is_nothing_to_move) {
  Recipe recipe;
  recipe.offload_weights = true;
  EXPECT_NO_THROW(validate(recipe));
  recipe.lora.use_dora = true;
  EXPECT_THROW(validate(recipe), Error);
  recipe.lora.use_dora = false;
  EXPECT_THROW(apply(recipe, "offload_activations", "cpu"), Error);
  recipe.offload_gradients = true;
  EXPECT_THROW(validate(recipe), Error);  // of an adapter
  recipe.method = Method::full;
  EXPECT_NO_THROW(validate(recipe));
  recipe.offload_layers = {1};
  EXPECT_THROW(validate(recipe), Error);  // of frozen weights
  recipe.offload_layers = {};
  recipe.optim = Optimizer::adafactor;
  EXPECT_THROW(validate(recipe), Error);
  recipe.optim = Optimizer::adamw;
  recipe.optimizer_in_bwd = true;
  recipe.max_grad_norm = 0;
  EXPECT_THROW(validate(recipe), Error);
  recipe.offload_weights = recipe.offload_gradients = false;
  EXPECT_NO_THROW(validate(recipe));
}

}  // namespace

}  // namespace snug::testing
