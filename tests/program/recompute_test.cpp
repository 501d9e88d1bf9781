// What blocks keep for backward, by a derivation of each op's gradient on paper; and what is made again when some of it is
// let go of.

#include "program/passes/recompute.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

#include "plan/layout.h"
#include "program/adjoint.h"
#include "program/passes/optimizer.h"
#include "program/support_tiny.h"

namespace snug::testing {

namespace {

Program differentiated(const ModelSpec& spec = tiny_decoder()) {
  Program program = tiny_forward(spec);
  for (Weight& weight : program.weights) weight.trainable = true;
  differentiate(program);
  return program;
}

std::vector<std::string> names_of(const Program& program, const std::vector<StorageId>& storages) {
  std::vector<std::string> names;
  for (StorageId id : storages) names.push_back(program.storage(id).name);
  std::sort(names.begin(), names.end());
  return names;
}

StorageId storage_named(const Program& program, const std::string& name) {
  for (StorageId id : program.blocks.front().saved)
    if (program.storage(id).name == name) return id;
  throw std::logic_error("nothing saved is called " + name);
}

SavedChoice released_in(int64_t layers, const std::set<StorageId>& storages) {
  SavedChoice choice;
  for (int64_t layer = 0; layer < layers; ++layer) choice.released[layer] = storages;
  return choice;
}

// Kinds of the ops that backward has more than before.
std::map<OpKind, int64_t> done_again(const std::vector<std::string>& names) {
  Program program = differentiated();
  const std::vector<Op> before = ops_of_block(program, Section::blocks_backward);
  std::set<StorageId> storages;
  for (const std::string& name : names) storages.insert(storage_named(program, name));
  recompute(program, released_in(4, storages));
  EXPECT_EQ(program.blocks.front().saved.size(), 13 - names.size());
  std::map<OpKind, int64_t> more;
  const std::vector<Op> after = ops_of_block(program, Section::blocks_backward);
  for (const Op& op : after) {
    const int64_t added = count_of(after, op.kind) - count_of(before, op.kind);
    if (added > 0) more[op.kind] = added;
  }
  return more;
}

// The inputs of products are needed for their weights' gradients; gates and ups, queries, keys, values and what attention
// gave for those of activation and attention; norms need their input, which for the first is the residual stream, and one
// number a row. What projections hand to a residual sum is not needed. Floats a token: 32 + 1 + 32 + 16 + 16 + 32 + 4 + 32 +
// 32 + 1 + 3 x 80 = 438.
TEST(SavedByBlocks, is_what_gradients_read_and_nothing_else) {
  const Program program = differentiated();
  ASSERT_EQ(program.blocks.size(), 1U);
  const std::vector<StorageId>& saved = program.blocks.front().saved;
  EXPECT_EQ(names_of(program, saved),
            (std::vector<std::string>{"attended", "attention_norm", "attention_norm.rstd", "gate", "gated", "key", "lse",
                                      "mlp_norm", "mlp_norm.rstd", "query", "up", "value", "x_mid"}));
  int64_t bytes = 0;
  for (StorageId id : saved) {
    EXPECT_EQ(program.storage(id).instances, 4);
    EXPECT_EQ(program.storage(id).role, Role::activation);
    bytes += program.storage(id).bytes;
  }
  EXPECT_EQ(bytes, 438 * 32 * 4);
}

TEST(SavedByBlocks, is_listed_for_each_kind_of_block) {
  ModelSpec spec = tiny_decoder();
  spec.naming = TensorNaming::glm4_moe;
  spec.experts = {.count = 4, .per_token = 2, .intermediate_size = 16, .shared = 1, .shared_size = 16, .dense_layers = 1};
  const Program program = differentiated(spec);
  ASSERT_EQ(program.blocks.size(), 2U);
  EXPECT_EQ(program.region(Section::blocks, 0).count, 1);
  EXPECT_EQ(program.region(Section::blocks_backward, 1).count, 3);
  const std::vector<std::string> dense = names_of(program, program.blocks[0].saved),
                                 sparse = names_of(program, program.blocks[1].saved);
  EXPECT_EQ(std::count(dense.begin(), dense.end(), "route_weights"), 0);
  EXPECT_EQ(std::count(sparse.begin(), sparse.end(), "route_weights"), 1);
}

TEST(RecomputePass, makes_again_what_was_let_go_of_from_what_is_kept) {
  using Kinds = std::map<OpKind, int64_t>;
  EXPECT_EQ(done_again({"gated"}), (Kinds{{OpKind::activation, 1}}));
  EXPECT_EQ(done_again({"gate", "up", "gated"}), (Kinds{{OpKind::matmul, 2}, {OpKind::activation, 1}}));
  EXPECT_EQ(done_again({"mlp_norm"}), (Kinds{{OpKind::rms_norm, 1}}));
  EXPECT_EQ(done_again({"query"}), (Kinds{{OpKind::matmul, 1}, {OpKind::rope, 1}}));
  EXPECT_EQ(done_again({"x_mid"}), (Kinds{{OpKind::matmul, 1}, {OpKind::add, 1}}));
  EXPECT_EQ(done_again({"attended", "lse"}), (Kinds{{OpKind::attention, 1}}));
}

// The norm of queries is done again for its statistics alone: what it gave has been rotated since, and is kept.
TEST(RecomputePass, writes_nothing_over_what_is_kept) {
  ModelSpec spec = tiny_decoder();
  spec.query_key_norms = true;
  spec.naming = TensorNaming::gemma;
  Program program = differentiated(spec);
  const StorageId rstd = storage_named(program, "query_norm.rstd"), kept = storage_named(program, "query_norm");
  recompute(program, released_in(4, {rstd}));
  const std::vector<Op> backward = ops_of_block(program, Section::blocks_backward);
  EXPECT_EQ(count_of(backward, OpKind::rms_norm), 1);
  for (const Op& op : backward)
    for (const Operand& operand : op.operands)
      EXPECT_TRUE(operand.access == Access::read || program.tensor(operand.tensor).storage != kept) << name_of(op.kind);
}

// All but the last product, the last sum and nothing else: 6 of 7 products, both norms, both rotations.
TEST(RecomputePass, of_whole_blocks_keeps_their_input_alone) {
  Program program = differentiated();
  const std::vector<StorageId> saved = program.blocks.front().saved;
  const std::vector<Op> before = ops_of_block(program, Section::blocks_backward);
  recompute_blocks(program, {0, 1, 2, 3});
  EXPECT_TRUE(program.blocks.front().saved.empty());
  const std::vector<Op> after = ops_of_block(program, Section::blocks_backward);
  const std::map<OpKind, int64_t> expected = {{OpKind::matmul, 6},    {OpKind::rms_norm, 2},   {OpKind::rope, 2},
                                              {OpKind::attention, 1}, {OpKind::activation, 1}, {OpKind::add, 1}};
  int64_t all = 0;
  for (const auto& [kind, count] : expected) {
    EXPECT_EQ(count_of(after, kind) - count_of(before, kind), count) << name_of(kind);
    all += count;
  }
  EXPECT_EQ(static_cast<int64_t>(after.size() - before.size()), all);
  for (const Section section : {Section::blocks, Section::blocks_backward})
    for (const Op& op : ops_of_block(program, section))
      for (const Operand& operand : op.operands)
        EXPECT_EQ(std::count(saved.begin(), saved.end(), program.tensor(operand.tensor).storage), 0);
}

TEST(RecomputePass, splits_layers_into_runs_with_lists_of_their_own) {
  Program program = differentiated();
  const StorageId gated = storage_named(program, "gated");
  SavedChoice choice;
  choice.released[0] = choice.released[1] = {gated};
  choice.released[3] = std::set<StorageId>(program.blocks.front().saved.begin(), program.blocks.front().saved.end());
  recompute(program, choice);
  ASSERT_EQ(program.blocks.size(), 3U);
  EXPECT_EQ(program.count(Section::blocks_backward), 3);
  const struct {
    int64_t first, count;
    size_t saved;
  } runs[] = {{0, 2, 12}, {2, 1, 13}, {3, 1, 0}};
  for (int32_t i = 0; i < 3; ++i) {
    for (const Section section : {Section::blocks, Section::blocks_backward}) {
      EXPECT_EQ(program.region(section, i).first, runs[i].first);
      EXPECT_EQ(program.region(section, i).count, runs[i].count);
    }
    EXPECT_EQ(program.blocks[static_cast<size_t>(i)].saved.size(), runs[i].saved);
  }
  // Backward goes from the last run to the first.
  std::vector<int32_t> order;
  for (const Item& item : program.region(Section::backward).items)
    if (const Region* loop = item.region()) order.push_back(loop->index);
  EXPECT_EQ(order, (std::vector<int32_t>{2, 1, 0}));
}

TEST(RecomputePass, lets_go_of_the_parts_that_are_named) {
  const struct {
    BlockPart part;
    std::set<std::string> tensors;
  } parts[] = {{BlockPart::norms, {"attention_norm", "attention_norm.rstd", "mlp_norm", "mlp_norm.rstd"}},
               {BlockPart::activations, {"gated"}},
               {BlockPart::attention, {"attended", "lse"}},
               {BlockPart::projections, {"query", "key", "value", "x_mid", "gate", "up"}}};
  for (const auto& [part, tensors] : parts) {
    Program program = differentiated();
    std::set<std::string> let_go;
    for (StorageId id : program.blocks.front().saved) let_go.insert(program.storage(id).name);
    recompute_blocks(program, {0, 1, 2, 3}, {part});
    for (StorageId id : program.blocks.front().saved) let_go.erase(program.storage(id).name);
    EXPECT_EQ(let_go, tensors) << name_of(part);
  }
}

// Three layers' gates [M, F] fp32 are gone; the fourth's is there when its backward makes it again.
TEST(RecomputePass, saves_the_bytes_of_all_layers_but_the_one_at_work) {
  Program kept = differentiated(), program = differentiated();
  recompute(program,
            released_in(4, {storage_named(program, "gate"), storage_named(program, "up"), storage_named(program, "gated")}));
  int64_t live[2];
  for (int i = 0; i < 2; ++i) {
    Program& of = i == 0 ? kept : program;
    place_weights(of, {});
    add_optimizer(of, {});
    live[i] = lay_out(of).device().peak_live_bytes;
  }
  EXPECT_GE(live[0] - live[1], 3 * 3 * 32 * 80 * 4 - 3 * 32 * 80 * 4);
  EXPECT_LE(live[0] - live[1], 4 * 3 * 32 * 80 * 4);
}

TEST(RecomputePass, refuses_what_no_block_saves_and_what_was_not_differentiated) {
  Program program = differentiated();
  const StorageId stream = program.tensor(program.region(Section::blocks).carries.front().in).storage;
  EXPECT_THROW(recompute(program, released_in(4, {stream})), std::logic_error);
  Program forward = tiny_forward();
  EXPECT_THROW(recompute(forward, released_in(4, {0})), std::logic_error);
}

// u is made, v is made from it, then u is changed in place: v cannot be made again from the u that is kept.
TEST(RecomputePass, refuses_to_read_what_has_been_changed_since) {
  for (const bool both : {false, true}) {
    Program program;
    const TensorId u = program.make("u", DType::f32, {8}, Role::activation);
    const TensorId v = program.make("v", DType::f32, {8}, Role::activation);
    const TensorId bias = program.make("bias", DType::f32, {8}, Role::weight, Lifetime::run);
    for (TensorId id : {u, v}) program.storage(program.tensor(id).storage).instances = 2;
    for (TensorId id : {u, v}) program.tensor(id).instance_by_layer = true;
    Region ahead{.name = "blocks", .section = Section::blocks, .axis = Axis::layer, .count = 2};
    ahead.add(Op{OpKind::add}.reads(Slot::a, bias).reads(Slot::b, bias).writes(Slot::out, u));
    ahead.add(Op{OpKind::add}.reads(Slot::a, u).reads(Slot::b, u).writes(Slot::out, v));
    ahead.add(Op{OpKind::add_bias}.updates(Slot::x, u).reads(Slot::bias, bias));
    Region back{.name = "back", .section = Section::blocks_backward, .axis = Axis::layer, .count = 2, .reverse = true};
    back.add(Op{OpKind::add_bias}.updates(Slot::x, v).reads(Slot::bias, u));
    Region forward{.name = "forward", .section = Section::forward}, backward{.name = "backward"};
    backward.section = Section::backward;
    forward.add(std::move(ahead));
    backward.add(std::move(back));
    program.root.add(std::move(forward));
    program.root.add(std::move(backward));
    const StorageId of_u = program.tensor(u).storage, of_v = program.tensor(v).storage;
    program.blocks = {{.saved = {of_u, of_v}}};
    if (both) {
      recompute(program, released_in(2, {of_u, of_v}));
      EXPECT_EQ(ops_of_block(program, Section::blocks_backward).size(), 4U);
    } else {
      EXPECT_THROW(recompute(program, released_in(2, {of_v})), std::logic_error);
    }
  }
}

}  // namespace

}  // namespace snug::testing
