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

// Whoever reads far bytes would read an address that is none.
TEST(Offload, no_op_sees_what_lies_far_but_pages_and_the_host) {
  for (const bool checkpointing : {false, true}) {
    const Program program = offloaded(true, true, checkpointing);
    for_each_op(program.root, [&](const Op& op, const Region&) {
      if (run_by(op.kind) != RunBy::backend) return;
      for (const Operand& operand : op.operands)
        EXPECT_EQ(program.home_of(operand.tensor), Home::device) << name_of(op.kind) << program.tensor(operand.tensor).name;
    });
  }
}

TEST(Offload, is_refused_where_there_is_nothing_to_move) {
  Recipe recipe;
  recipe.offload_weights = true;
  EXPECT_NO_THROW(validate(recipe));
  recipe.lora.use_dora = true;
  EXPECT_THROW(validate(recipe), Error);
  recipe.lora.use_dora = false;
  recipe.method = Method::full;
  EXPECT_THROW(validate(recipe), Error);
  EXPECT_THROW(apply(recipe, "offload_activations", "cpu"), Error);
}

}  // namespace

}  // namespace snug::testing
