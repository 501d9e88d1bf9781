// What each rank holds and sends, against the figures that ZeRO is known by, and over random runs: parts, replicas and
// padding are all that there is.

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/error.h"
#include "plan/liveness.h"
#include "program/compile.h"
#include "program/rules.h"
#include "program/support_tiny.h"
#include "recipe/keys.h"

namespace snug::testing {

namespace {

// Nothing divides evenly.
ModelSpec small(bool tied, int64_t experts = 0) {
  ModelSpec spec = uneven_decoder();
  spec.tied_embeddings = tied;
  if (experts > 0) {
    spec.experts.count = experts;
    spec.experts.per_token = 2;
    spec.experts.intermediate_size = 40;
  }
  return spec;
}

Recipe recipe_of(Method method, int64_t ranks, int64_t zero_stage) {
  Recipe recipe;
  recipe.method = method;
  recipe.seq_len = 16;
  recipe.parallel = {ranks, zero_stage};
  return recipe;
}

// Bytes that live from load to save, of one rank, by name of their storage.
std::map<std::string, const Storage*> lasting(const Program& program) {
  std::map<std::string, const Storage*> by_name;
  for (const Storage& storage : program.storages)
    if (storage.lifetime == Lifetime::run) by_name[storage.name] = &storage;
  return by_name;
}

// Over all layers, of every weight and what stands beside it: one view each.
std::map<StorageId, int64_t> bytes_of_views(const Program& program) {
  std::map<StorageId, int64_t> sums;
  for (const Weight& weight : program.weights) {
    std::vector<TensorId> views = {weight.tensor};
    if (weight.trainable) views.push_back(weight.gradient);
    for (const OptimizerState& state : weight.states) views.push_back(state.tensor);
    if (weight.quantization)
      for (const TensorId scales :
           {weight.quantization->absmax, weight.quantization->nested_absmax, weight.quantization->absmax_offset})
        if (scales != kNone) views.push_back(scales);
    for (const TensorId view : views)
      sums[program.tensor(view).storage] += program.tensor(view).bytes() * weight.parameter.instances(program.layers);
  }
  return sums;
}

int64_t layers_of(const Storage& storage) {
  int64_t layers = 0;
  for (const Unit& unit : storage.units) layers += unit.layers;
  return layers;
}

TEST(Shard, sums_over_ranks_are_the_unsharded_with_replicas_and_padding_over_600_random_runs) {
  std::mt19937 random(7);
  const auto pick = [&](auto... values) {
    const int64_t all[] = {static_cast<int64_t>(values)...};
    return all[random() % sizeof...(values)];
  };
  for (int i = 0; i < 600; ++i) {
    const bool full = random() % 2 == 0;
    const ModelSpec spec = small(random() % 2 == 0, pick(0, 0, 4));
    Recipe recipe = recipe_of(full ? Method::full : Method::lora, 1, pick(0, 1, 2, 3));
    recipe.bf16 = random() % 2 == 0;
    recipe.optim = static_cast<Optimizer>(pick(Optimizer::adamw, Optimizer::adamw_8bit, Optimizer::lion, Optimizer::sgd));
    if (!full && random() % 2 == 0) recipe.quantize.in_4bit = true;
    if (!full) recipe.lora.target_modules = {"all-linear"};
    const Program alone = compile(spec, recipe);
    recipe.parallel.ranks = 2 + static_cast<int64_t>(random() % 63);
    if (recipe.parallel.zero_stage > 0 && recipe.parallel.ranks % 2 == 0) recipe.parallel.replicas = pick(1, 2);
    const Program shared = compile(spec, recipe);
    const auto before = lasting(alone), after = lasting(shared);
    ASSERT_EQ(before.size(), after.size());
    const std::map<StorageId, int64_t> views = bytes_of_views(shared);
    for (const auto& [name, storage] : after) {
      const int64_t all_ranks = storage->bytes * recipe.parallel.ranks;
      const int64_t copies = storage->ranks == 1 ? recipe.parallel.ranks : recipe.parallel.replicas;
      const int64_t padding = all_ranks - copies * before.at(name)->bytes;
      ASSERT_GE(padding, 0) << name;
      // At most a part of the alignment for each rank, of each layer's unit.
      ASSERT_LE(padding, copies * layers_of(*storage) * recipe.parallel.ranks * 2048 * 4) << name;
      if (storage->units.empty()) {
        ASSERT_EQ(padding, 0) << name;
      }
      const auto id = static_cast<StorageId>(storage - shared.storages.data());
      if (const auto found = views.find(id); found != views.end()) {
        ASSERT_GE(all_ranks, copies * found->second) << name;
      }
    }
  }
}

// Views of a weight, its gradient and its states.
std::vector<TensorId> views_of(const Weight& weight) {
  std::vector<TensorId> views = {weight.tensor};
  if (weight.trainable) views.push_back(weight.gradient);
  for (const OptimizerState& state : weight.states) views.push_back(state.tensor);
  return views;
}

// What one rank of a stage has of each weight, against that of one which has everything: a slice, and parts of that.
// Adds the layers of each to `layers`. Returns how many views are cut.
int compare_weights(const Program& shared, const Program& alone, std::map<std::string, int64_t>& layers) {
  int cut = 0;
  const RankMesh& mesh = shared.mesh;
  for (const Weight& after : shared.weights) {
    const auto before =
        std::ranges::find(alone.weights, after.parameter.name, [](const Weight& weight) { return weight.parameter.name; });
    EXPECT_NE(before, alone.weights.end()) << after.parameter.name;
    layers[after.parameter.name] += after.parameter.instances(shared.layers);
    const std::vector<TensorId> whole = views_of(*before), own = views_of(after);
    EXPECT_EQ(whole.size(), own.size());
    const int64_t slices = after.slice ? mesh.size(after.slice->group) : 1;
    for (size_t i = 0; i < whole.size(); ++i) {
      const Storage& storage = shared.storage(shared.tensor(own[i]).storage);
      cut += storage.ranks > 1 ? 1 : 0;
      // Ranks that together have one copy: those that have slices, and parts of these.
      EXPECT_EQ(mesh.of_stage() % (slices * storage.ranks), 0);
      EXPECT_EQ(shared.tensor(own[i]).bytes() * slices, alone.tensor(whole[i]).bytes()) << after.parameter.name;
      int64_t units = 0;
      for (const Unit& unit : storage.units) units += unit.bytes * unit.layers;
      if (storage.ranks > 1) {
        EXPECT_EQ(units, storage.bytes * storage.ranks) << storage.name;
      }
    }
  }
  return cut;
}

// Whole buffers are views and bounded padding.
void bound_padding(const Program& shared) {
  for (const auto& [id, bytes] : bytes_of_views(shared)) {
    const Storage& storage = shared.storage(id);
    const int64_t padding = storage.bytes * storage.ranks - bytes;
    EXPECT_GE(padding, 0) << storage.name;
    EXPECT_LE(padding, (layers_of(storage) + 60) * (shared.mesh.size(storage.cut_by) + 1) * 2048 * 4) << storage.name;
  }
}

// Of every weight, gradient and state, over all ranks: what one rank alone would have, as many times as it is copied; of a
// tied embedding that the first stage and the last have, twice.
TEST(Shard, sums_over_meshes_of_all_dimensions_are_the_unsharded_with_copies_over_700_random_runs) {
  std::mt19937 random(8);
  const auto pick = [&](auto... values) {
    const int64_t all[] = {static_cast<int64_t>(values)...};
    return all[random() % sizeof...(values)];
  };
  int cut = 0, staged = 0, tied = 0, interleaved = 0;
  for (int i = 0; i < 700 && !HasFailure(); ++i) {
    const bool full = random() % 2 == 0, experts = random() % 3 == 0;
    ModelSpec spec = small(random() % 2 == 0, experts ? 8 : 0);
    spec.heads = 8, spec.kv_heads = 4, spec.head_size = 16, spec.hidden_size = 128, spec.intermediate_size = 192;
    spec.layers = 5;
    Recipe recipe = recipe_of(full ? Method::full : Method::lora, 1, pick(0, 1, 2, 3));
    recipe.seq_len = 32;
    recipe.bf16 = random() % 2 == 0;
    recipe.optim = static_cast<Optimizer>(pick(Optimizer::adamw, Optimizer::lion, Optimizer::sgd));
    if (!full && random() % 2 == 0) recipe.quantize.in_4bit = true;
    if (!full && !experts) recipe.lora.target_modules = {"all-linear"};
    const Program alone = compile(spec, recipe);
    Parallel& parallel = recipe.parallel;
    if (!experts) parallel.tensor = pick(1, 2, 4);
    parallel.context = pick(1, 2, 4);
    if (random() % 2 == 0) parallel.context_comm = ContextComm::p2p;
    parallel.pipeline = pick(1, 1, 2, 3);
    if (parallel.pipeline == 2) parallel.chunks = pick(1, 2);
    recipe.accumulation = parallel.pipeline;
    if (experts) parallel.expert = pick(1, 2, 4);
    parallel.ranks = parallel.pipeline * parallel.tensor * parallel.context * parallel.expert * pick(1, 2, 3, 8);
    if (parallel.zero_stage > 0 && parallel.ranks / parallel.pipeline / parallel.tensor % (2 * parallel.expert) == 0)
      parallel.replicas = pick(1, 2);
    if (parallel.ranks == 1) continue;
    validate(recipe);
    std::map<std::string, int64_t> layers;
    for (parallel.stage = 0; parallel.stage < parallel.pipeline; ++parallel.stage) {
      const Program shared = compile(spec, recipe);
      cut += compare_weights(shared, alone, layers);
      bound_padding(shared);
    }
    staged += parallel.pipeline > 1 ? 1 : 0;
    interleaved += parallel.chunks > 1 ? 1 : 0;
    for (const Weight& weight : alone.weights) {
      const bool twice = parallel.pipeline > 1 && spec.tied_embeddings && weight.parameter.kind == ParameterKind::embedding;
      tied += twice && full ? 1 : 0;
      EXPECT_EQ(layers[weight.parameter.name], weight.parameter.instances(alone.layers) * (twice ? 2 : 1))
          << weight.parameter.name;
    }
  }
  EXPECT_GT(cut, 500);
  EXPECT_GT(staged, 250);
  EXPECT_GT(tied, 50);
  EXPECT_GT(interleaved, 80);
}

// "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", figure 1: with 16-bit weights and gradients and
// K = 12 bytes of states a parameter: 16, 4 + 12/N, 2 + 14/N, 16/N. Gradients here are fp32, so 18, 6 + 12/N, 2 + 16/N,
// 18/N.
TEST(Shard, what_lasts_goes_down_as_zero_says) {
  ModelSpec spec = small(false);
  spec.hidden_size = spec.intermediate_size = 512;
  spec.vocab_size = 4096;
  spec.heads = spec.kv_heads = 8;
  spec.head_size = 64;
  for (const int64_t ranks : {4, 64}) {
    const auto n = static_cast<double>(ranks);
    const double bytes[] = {18, 6 + 12 / n, 2 + 16 / n, 18 / n};
    for (const int64_t stage : {0, 1, 2, 3}) {
      Recipe recipe = recipe_of(Method::full, ranks, stage);
      recipe.bf16 = true;
      const Program program = compile(spec, recipe);
      int64_t sum = 0;
      for (const auto& [name, storage] : lasting(program))
        if (storage->role != Role::batch) sum += storage->bytes;
      const auto parameters = static_cast<double>(program.total_parameters());
      EXPECT_NEAR(static_cast<double>(sum) / parameters, bytes[stage], 0.01 * bytes[stage] + 0.02) << ranks << " " << stage;
    }
  }
}

double sent(const Program& program, const Region& region) {
  double sum = 0;
  for (const Item& item : region.items) {
    if (const Op* op = item.op(); op != nullptr && run_by(op->kind) == RunBy::ranks)
      sum += rule_of(op->kind).work(program, *op).bytes;
    if (const Region* child = item.region()) sum += sent(program, *child);
  }
  return sum * static_cast<double>(region.count);
}

// Section 7 of the paper: twice the parameters in every stage but the last, where it is three times. (A tied embedding would
// be summed, and fetched, where it is looked up and where it is the head.)
TEST(Shard, ranks_send_twice_the_parameters_or_three_times) {
  const ModelSpec spec = small(false);
  for (const int64_t stage : {0, 1, 2, 3}) {
    const Program program = compile(spec, recipe_of(Method::full, 4, stage));
    int64_t buffers = 0;  // with their padding
    for (const Storage& storage : program.storages)
      if (storage.role == Role::weight && storage.lifetime == Lifetime::run) buffers += storage.bytes * storage.ranks;
    const double scalars = (stage > 0 ? 2 : 1) * 2 * 8 * 3.0 / 4;
    const double expected = 3.0 / 4 * static_cast<double>(buffers) * (stage == 3 ? 3 : 2) + scalars;
    const double once = 3.0 / 4 * static_cast<double>(97 * 60 * 4 + 4096);  // backward needs no embedding, and no head
    EXPECT_NEAR(sent(program, program.region(Section::step)), expected, stage == 3 ? 2.1 * once : 0.5) << stage;
  }
}

TEST(Shard, with_one_rank_nothing_changes) {
  for (const int64_t stage : {0, 1, 2, 3}) {
    const Program program = compile(small(true), recipe_of(Method::full, 1, stage));
    for_each_op(program.root, [](const Op& op, const Region&) { EXPECT_NE(run_by(op.kind), RunBy::ranks); });
    for (const Storage& storage : program.storages) EXPECT_TRUE(storage.units.empty());
  }
}

TEST(Shard, what_ranks_cannot_share_is_refused_with_the_reason) {
  const auto refused = [](const auto& change) {
    Recipe recipe = recipe_of(Method::full, 2, 2);
    change(recipe);
    EXPECT_THROW(validate(recipe), Error);
    recipe.parallel.ranks = 1;
    EXPECT_NO_THROW(validate(recipe));
  };
  refused([](Recipe& r) { r.optim = Optimizer::adafactor; });
  refused([](Recipe& r) { r.pages_states = true; });
  refused([](Recipe& r) { r.offload_gradients = true; });
  refused([](Recipe& r) { r.offload_weights = true; });
  refused([](Recipe& r) {  // whatever the stage: weights change before gradients are summed
    r.parallel.zero_stage = 0;
    r.optimizer_in_bwd = true;
    r.max_grad_norm = 0;
  });
  refused([](Recipe& r) {
    r.optimizer_in_bwd = true;
    r.max_grad_norm = 0;
  });
  refused([](Recipe& r) {
    r.method = Method::lora;
    r.lora.use_dora = true;
    r.parallel.zero_stage = 3;
  });
}

TEST(Shard, chunks_that_cannot_take_turns_are_refused_with_what_to_set) {
  const auto said = [](int64_t stages, int64_t chunks, int64_t accumulation) -> std::string {
    Recipe recipe = recipe_of(Method::full, 2, 0);
    recipe.parallel.pipeline = stages;
    recipe.parallel.chunks = chunks;
    recipe.accumulation = accumulation;
    try {
      validate(recipe);
      compile(small(false), recipe);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(said(1, 2, 2).find("vpp_size has no effect without pp_size"), std::string::npos);
  EXPECT_NE(said(2, 2, 3).find("set gradient_accumulation_steps: 4"), std::string::npos);
  EXPECT_NE(said(2, 2, 2).find("set a smaller vpp_size"), std::string::npos) << "three layers";
  EXPECT_EQ(said(2, 1, 3), "");
}

}  // namespace

}  // namespace snug::testing
