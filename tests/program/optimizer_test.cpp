// What each optimizer keeps, to the byte, and where.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "base/scalars.h"
#include "program/compile.h"
#include "program/passes/pages.h"
#include "program/support_tiny.h"

namespace snug::testing {

namespace {

Recipe recipe_of(Optimizer optim) {
  Recipe recipe;
  recipe.method = Method::full;
  recipe.seq_len = 16;
  recipe.optim = optim;
  return recipe;
}

Program compiled(Optimizer optim, double momentum = 0.0) {
  Recipe recipe = recipe_of(optim);
  recipe.momentum = momentum;
  return compile(uneven_decoder(), recipe);
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
  const auto is_matrix_of_layers = [](const Parameter& p) { return p.per_layer && p.shape.size() > 1; };
  const auto padded_of = [&](const Parameter& p) { return align_up(p.elements(), is_matrix_of_layers(p) ? 2048 : 32); };
  const int64_t padded = over_weights(adamw, padded_of);
  EXPECT_EQ(state_bytes(adamw), 8 * padded);
  EXPECT_EQ(state_bytes(compiled(Optimizer::adamw_bf16)), 4 * padded);
  EXPECT_EQ(state_bytes(compiled(Optimizer::lion)), 4 * padded);
  EXPECT_EQ(state_bytes(compiled(Optimizer::sgd)), 0);
  EXPECT_EQ(state_bytes(compiled(Optimizer::sgd, 0.9)), 4 * padded);
  const auto eight_bit = [&](int64_t states) {
    return over_weights(adamw, [&](const Parameter& p) {
      const int64_t blocks = align_up(padded_of(p), kStateBlock) / kStateBlock;
      return states * (p.elements() >= 4096 ? blocks * (kStateBlock + 4) : 4 * padded_of(p));
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
    if (region.name == "optimizer.layers") {
      EXPECT_EQ(region.count, program.layers);
    }
  });
  int64_t once = 0, layered = 0;
  for (const Weight& weight : program.weights) ++(weight.parameter.per_layer ? layered : once);
  EXPECT_EQ(ops["optimizer"], once);
  EXPECT_EQ(ops["optimizer.layers"], layered);
}

// ---- Paged states

int64_t bytes_at(const Program& program, Home home) {
  int64_t sum = 0;
  for (const Storage& storage : program.storages)
    if (storage.home == home && storage.role == Role::optimizer) sum += storage.bytes;
  return sum;
}

TEST(PagedStates, lie_in_the_far_home_with_their_master_copies_and_nothing_else_does) {
  for (const Optimizer optim : {Optimizer::adamw, Optimizer::adamw_8bit, Optimizer::lion, Optimizer::lion_8bit}) {
    Recipe recipe = recipe_of(optim);
    recipe.bf16 = true;
    int64_t states = 0;  // each buffer of them on pages of its own
    for (const Storage& storage : compile(uneven_decoder(), recipe).storages)
      if (storage.role == Role::optimizer) states += align_up(storage.bytes, kFarAlignment);
    recipe.pages_states = true;
    const Program paged = compile(uneven_decoder(), recipe);
    EXPECT_EQ(bytes_at(paged, Home::disk), states);
    for (const Storage& storage : paged.storages) {
      EXPECT_EQ(storage.home == Home::disk, storage.role == Role::optimizer && storage.lifetime == Lifetime::run)
          << storage.name;
    }
  }
}

struct Bytes {
  StorageId storage;
  int64_t begin, end;
  auto operator<=>(const Bytes&) const = default;
};

// What an op of a loop over chunks touches in each, of one operand.
std::vector<Bytes> touched(const Program& program, const Op& op, Slot slot, const Region& region) {
  std::vector<Bytes> list;
  const Tensor& tensor = program.tensor(op.find(slot));
  for (int64_t chunk = 0; chunk < (region.axis == Axis::chunk ? region.count : 1); ++chunk) {
    const int64_t begin = tensor.offset + chunk * tensor.chunk_stride;
    list.push_back({tensor.storage, begin, begin + tensor.bytes()});
  }
  return list;
}

// That `list` holds every byte of each storage once, and nothing more.
void expect_each_byte_once(const Program& program, std::vector<Bytes> list) {
  std::sort(list.begin(), list.end());
  std::map<StorageId, int64_t> reached;
  for (const Bytes& bytes : list) {
    EXPECT_EQ(bytes.begin, reached[bytes.storage]) << program.storage(bytes.storage).name;
    reached[bytes.storage] = bytes.end;
  }
  for (const auto& [storage, end] : reached) EXPECT_EQ(end, program.storage(storage).bytes) << program.storage(storage).name;
}

TEST(PagedStates, come_and_go_in_chunks_that_hold_every_byte_once_and_no_part_of_a_block) {
  ModelSpec wide = uneven_decoder();
  wide.vocab_size = 30011;  // 1.8 million elements: several chunks and a rest
  Recipe recipe = recipe_of(Optimizer::adamw_8bit);
  recipe.pages_states = true;
  const Program program = compile(wide, recipe);
  std::vector<Bytes> in, out, parameters;
  for_each_op(program.region(Section::optimizer), [&](const Op& op, const Region& region) {
    const auto append = [&](std::vector<Bytes>& to, Slot slot) {
      for (const Bytes& bytes : touched(program, op, slot, region)) to.push_back(bytes);
    };
    if (op.kind == OpKind::page_in) append(in, Slot::far);
    if (op.kind == OpKind::page_out) append(out, Slot::far);
    if (op.kind == OpKind::page_in) {
      const Storage& window = program.storage(program.tensor(op.find(Slot::window)).storage);
      EXPECT_EQ(window.lifetime, Lifetime::computed);
      EXPECT_LE(window.bytes, 4 * kPagedElements);
    }
    if (op.kind != OpKind::adamw) return;
    append(parameters, Slot::parameter);
    EXPECT_LE(program.tensor(op.find(Slot::parameter)).elements(), kPagedElements);
    EXPECT_EQ(program.tensor(op.find(Slot::parameter)).offset / 4 % kStateBlock, 0);
  });
  expect_each_byte_once(program, in);
  expect_each_byte_once(program, out);
  expect_each_byte_once(program, parameters);
  int64_t held = 0;
  for (const Bytes& bytes : in) held += bytes.end - bytes.begin;
  EXPECT_EQ(held, bytes_at(program, Home::disk));
  EXPECT_EQ(bytes_at(program, Home::device), 0);
}

// ---- The optimizer in backward

// Ops in the order of one step, with the layer of each.
struct Executed {
  const Op* op;
  int64_t layer;
};

void unfold(const Region& region, int64_t layer, std::vector<Executed>& list) {
  for (int64_t i = 0; i < (region.axis == Axis::layer ? region.count : 1); ++i) {
    const int64_t here = region.axis == Axis::layer ? region.layer_of(i) : layer;
    for (const Item& item : region.items) {
      if (const Op* op = item.op()) list.push_back({op, here});
      if (const Region* child = item.region()) unfold(*child, here, list);
    }
  }
}

bool is_update(OpKind kind) {
  return kind == OpKind::adamw || kind == OpKind::sgd || kind == OpKind::lion || kind == OpKind::adafactor;
}

void expect_updates_after_last_use(const Program& program) {
  std::vector<Executed> ops;
  unfold(program.region(Section::step), 0, ops);
  for (const Weight& weight : program.weights) {
    for (int64_t layer = 0; weight.trainable && layer < (weight.parameter.per_layer ? program.layers : 1); ++layer) {
      int updates = 0;
      std::set<TensorId> cleared;  // gradients, in this layer
      for (const auto& [op, at] : ops) {
        if (weight.parameter.per_layer && at != layer) continue;
        const bool reads = std::any_of(op->operands.begin(), op->operands.end(),
                                       [&](const Operand& operand) { return operand.tensor == weight.tensor; });
        if (reads && !is_update(op->kind)) {
          EXPECT_EQ(updates, 0) << weight.parameter.name << " is read after its update";
        }
        if (reads && is_update(op->kind)) {
          EXPECT_TRUE(cleared.contains(op->find(Slot::gradient))) << weight.parameter.name;
          ++updates;
        }
        if (op->kind == OpKind::zero) cleared.insert(op->find(Slot::gradient));
      }
      EXPECT_EQ(updates, 1) << weight.parameter.name << " in layer " << layer;
    }
  }
}

TEST(OptimizerInBackward, updates_each_weight_once_and_after_its_last_use) {
  for (const Method method : {Method::full, Method::lora})
    for (const bool tied : {false, true})
      for (const std::vector<int64_t>& recomputed : {std::vector<int64_t>(), {0, 1, 2}, {1}})
        for (const Optimizer optim : {Optimizer::adamw, Optimizer::adamw_8bit, Optimizer::adafactor}) {
          ModelSpec spec = uneven_decoder();
          spec.tied_embeddings = tied;
          Recipe recipe = recipe_of(optim);
          recipe.method = method;
          recipe.lora.target_modules = {"all-linear"};
          recipe.gradient_checkpointing = !recomputed.empty();
          recipe.checkpoint_layers = recomputed;
          recipe.optimizer_in_bwd = true;
          recipe.max_grad_norm = 0;
          expect_updates_after_last_use(compile(spec, recipe));
        }
}

TEST(OptimizerInBackward, keeps_no_gradient_throughout_the_run_and_counts_each_in_the_norm) {
  Recipe recipe = recipe_of(Optimizer::adamw);
  recipe.optimizer_in_bwd = true;
  const Program program = compile(uneven_decoder(), recipe);
  for (const Storage& storage : program.storages) {
    if (storage.role != Role::gradient) continue;
    EXPECT_EQ(storage.lifetime, Lifetime::computed) << storage.name;
    EXPECT_EQ(storage.instances, 1) << storage.name;
  }
  std::set<TensorId> zeroed, squared, updated;
  for_each_op(program.region(Section::micro_batch), [&](const Op& op, const Region&) {
    if (op.kind == OpKind::zero) zeroed.insert(op.find(Slot::gradient));
    if (op.kind == OpKind::square_sum) squared.insert(op.find(Slot::gradient));
    if (op.kind == OpKind::adamw) updated.insert(op.find(Slot::gradient));
  });
  EXPECT_EQ(zeroed.size(), program.weights.size());
  EXPECT_EQ(squared, zeroed);
  EXPECT_EQ(updated, zeroed);
}

}  // namespace

}  // namespace snug::testing
