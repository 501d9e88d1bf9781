// Attention whose keys and values go round a ring of ranks, beside attention to what is gathered of them.

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/layout.h"
#include "plan/ranks.h"
#include "plan/workspaces.h"
#include "program/compile.h"
#include "program/rules.h"
#include "program/support_tiny.h"
#include "recipe/keys.h"

namespace snug::testing {

namespace {

constexpr int64_t kRingTokens = 192;

Recipe ring_recipe(int64_t ranks, ContextComm comm, Method method = Method::full) {
  Recipe recipe;
  recipe.method = method;
  recipe.seq_len = kRingTokens;
  recipe.parallel.ranks = recipe.parallel.context = ranks;
  recipe.parallel.context_comm = comm;
  return recipe;
}

std::vector<const Op*> ops_of(const Program& program, OpKind kind) {
  std::vector<const Op*> found;
  for_each_op(program.root, [&](const Op& op, const Region&) {
    if (op.kind == kind) found.push_back(&op);
  });
  return found;
}

// Of all that a step computes.
int64_t longest_of(const Program& program) {
  int64_t longest = 0;
  for_each_op(program.region(Section::step), [&](const Op& op, const Region&) {
    if (run_by(op.kind) != RunBy::backend && run_by(op.kind) != RunBy::ranks) return;
    for (const Operand& operand : op.operands) {
      const Tensor& tensor = program.tensor(operand.tensor);
      if (tensor.shape.size() == 4) longest = std::max(longest, tensor.dim(1));
    }
  });
  return longest;
}

ModelSpec ring_decoder() {
  ModelSpec spec = uneven_decoder();
  spec.max_position = 1 << 20;
  return spec;
}

TEST(RingAttention, no_rank_has_more_than_its_stretch_of_keys_and_values) {
  const ModelSpec spec = ring_decoder();
  for (const int64_t ranks : {2, 3, 4, 8})
    for (const Method method : {Method::full, Method::lora})
      for (const bool recomputes : {false, true}) {
        Recipe recipe = ring_recipe(ranks, ContextComm::all_gather, method);
        recipe.gradient_checkpointing = recomputes;
        const Program gathered = compile(ring_decoder(), recipe);
        recipe.parallel.context_comm = ContextComm::p2p;
        const Program ring = compile(ring_decoder(), recipe);
        EXPECT_EQ(longest_of(gathered), kRingTokens);
        EXPECT_EQ(longest_of(ring), kRingTokens / ranks);
        EXPECT_TRUE(ops_of(ring, OpKind::all_gather).empty());
        for (const StorageId id : ring.blocks.at(0).saved) {
          const Storage& storage = ring.storage(id);
          if (storage.name.ends_with("key") || storage.name.ends_with("value")) {
            EXPECT_EQ(storage.bytes, kRingTokens / ranks * spec.kv_heads * spec.head_size * 4) << storage.name;
          }
        }
      }
}

// A block comes to every other rank, and its gradients pass as many and come home.
TEST(RingAttention, sends_what_gathering_sends) {
  for (const int64_t ranks : {2, 3, 4, 8})
    for (const Method method : {Method::full, Method::lora}) {
      const Program gathered = compile(ring_decoder(), ring_recipe(ranks, ContextComm::all_gather, method));
      const Program ring = compile(ring_decoder(), ring_recipe(ranks, ContextComm::p2p, method));
      for (int64_t rank = 0; rank < ranks; ++rank) EXPECT_EQ(sent_to_ranks(ring, rank), sent_to_ranks(gathered, rank));
    }
}

// Steps and loops of a program in which each rank of a mesh does the same.
TEST(RingAttention, has_a_step_for_each_rank_and_the_work_of_all_keys) {
  const auto flops = [](const Program& program, OpKind kind) {
    double sum = 0;
    const auto add = [&](const Region& region, double runs, const auto& below) -> void {
      for (const Item& item : region.items) {
        if (const Op* op = item.op(); op != nullptr && op->kind == kind)
          sum += runs * rule_of(kind).work(program, *op).flops;
        if (const Region* child = item.region()) below(*child, runs * static_cast<double>(child->count), below);
      }
    };
    add(program.root, 1, add);
    return sum;
  };
  for (const int64_t ranks : {2, 3, 8})
    for (const OpKind kind : {OpKind::attention, OpKind::attention_backward}) {
      const Program gathered = compile(ring_decoder(), ring_recipe(ranks, ContextComm::all_gather));
      const Program ring = compile(ring_decoder(), ring_recipe(ranks, ContextComm::p2p));
      EXPECT_NEAR(flops(ring, kind) / flops(gathered, kind), 1.0, 1e-9) << ranks;
      const std::vector<const Op*> steps = ops_of(ring, kind);
      ASSERT_EQ(steps.size(), ranks > 2 ? 3u : 2u);
      EXPECT_EQ(steps.front()->attributes.ring_step, 0);
      EXPECT_EQ(steps.back()->attributes.ring_step, ranks - 1);
    }
}

// Longer sequences, and more ranks that split them: what is gathered grows with the whole, blocks with a stretch.
TEST(RingAttention, takes_less_memory_the_longer_the_sequence) {
  int64_t before = 0;
  for (const int64_t tokens : {1024, 4096, 16384}) {
    const auto peak = [&](ContextComm comm) {
      Recipe recipe = ring_recipe(8, comm);
      recipe.seq_len = tokens;
      recipe.bf16 = recipe.gradient_checkpointing = true;
      Program program = compile(ring_decoder(), recipe);
      fit_to_target(program, {.threads = 2});
      return lay_out(program).device().bytes;
    };
    const int64_t saved = peak(ContextComm::all_gather) - peak(ContextComm::p2p);
    EXPECT_GT(saved, before) << tokens;
    before = saved;
  }
}

TEST(RingAttention, changes_nothing_where_nobody_splits_sequences) {
  const Program alone = compile(ring_decoder(), ring_recipe(1, ContextComm::all_gather));
  const Program ring = compile(ring_decoder(), ring_recipe(1, ContextComm::p2p));
  EXPECT_EQ(alone.tensors.size(), ring.tensors.size());
  EXPECT_EQ(ops_of(alone, OpKind::attention).size(), ops_of(ring, OpKind::attention).size());
}

}  // namespace

}  // namespace snug::testing
