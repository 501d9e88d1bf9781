#include "advise/device_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>
#include <random>

#include "base/error.h"
#include "families.h"
#include "model/catalogue.h"
#include "model/config.h"

namespace snug::testing {

namespace {

ModelPart part(std::string name, int64_t weights, int64_t activations = 0, int64_t temporaries = 0, int64_t gradients = 0) {
  return {.name = std::move(name),
          .weights = weights,
          .gradients = gradients,
          .activations = activations,
          .temporaries = temporaries};
}

// Embedding of 4, six layers of 10, norm of 1, head of 4.
ModelParts small_model() {
  ModelParts model;
  model.parts.push_back(part("embedding", 4));
  for (int i = 0; i < 6; ++i) model.parts.push_back(part("layer " + std::to_string(i), 10));
  model.parts.push_back(part("final norm", 1));
  model.parts.push_back(part("head", 4));
  return model;
}

std::vector<size_t> counts(const std::optional<DeviceMap>& map) {
  std::vector<size_t> list;
  if (map)
    for (const DeviceShare& share : map->shares) list.push_back(share.count);
  return list;
}

using Counts = std::vector<size_t>;

std::vector<DeviceRoom> rooms(std::initializer_list<int64_t> accelerators, int64_t host = 0, int64_t disk = 0) {
  std::vector<DeviceRoom> list;
  for (int64_t bytes : accelerators) list.push_back({std::to_string(list.size()), DeviceKind::accelerator, bytes});
  if (host > 0) list.push_back({"cpu", DeviceKind::host, host});
  if (disk > 0) list.push_back({"disk", DeviceKind::disk, disk});
  return list;
}

TEST(DeviceMap, unequal_devices_are_filled_in_the_order_given) {
  EXPECT_EQ(counts(map_devices(small_model(), rooms({24, 100}))), (Counts{3, 6}));
  EXPECT_EQ(counts(map_devices(small_model(), rooms({100, 24}))), (Counts{9, 0}));
  EXPECT_EQ(counts(map_devices(small_model(), rooms({3, 24, 100}))), (Counts{0, 3, 6}));  // the embedding is larger than 3
  EXPECT_FALSE(map_devices(small_model(), rooms({24, 24})).has_value());
}

TEST(DeviceMap, what_does_not_fit_lies_on_the_host_and_keeps_a_window_on_the_device_that_runs_it) {
  const auto map = map_devices(small_model(), rooms({34}, 100));
  EXPECT_EQ(counts(map), (Counts{3, 6}));  // 4 + 10 + 10 and a window of 10
  EXPECT_EQ(map->shares[0].window, 10);
  EXPECT_EQ(map->shares[0].free(), 0);
  EXPECT_EQ(map->far_weights, 45);
}

TEST(DeviceMap, the_disk_comes_last_and_keeps_a_window_on_the_host) {
  const auto map = map_devices(small_model(), rooms({34}, 40, 100));
  EXPECT_EQ(counts(map), (Counts{3, 3, 3}));  // on the host 30 and a window of 10
  EXPECT_EQ(map->shares[1].window, 10);
  EXPECT_EQ(map->shares[1].free(), 0);
}

TEST(DeviceMap, activations_of_far_layers_stay_where_they_run) {
  ModelParts model;
  for (int i = 0; i < 4; ++i) model.parts.push_back(part("layer", 10, 5, 3));
  const auto map = map_devices(model, rooms({48}, 100));
  // n near: 15 n + 3 there; 5 (4 - n) + 10 for the far ones.
  EXPECT_EQ(counts(map), (Counts{1, 3}));
  EXPECT_EQ(map->shares[0].activations, 20);
  EXPECT_EQ(map->shares[0].used(), 43);
  EXPECT_EQ(map->shares[1].used(), 30);
}

TEST(DeviceMap, the_host_computes_only_where_no_accelerator_can) {
  const auto map = map_devices(small_model(), rooms({8}, 69));
  EXPECT_EQ(counts(map), (Counts{0, 9}));
  EXPECT_EQ(map->main, 1U);
  EXPECT_TRUE(map->shares[1].computes);
  EXPECT_EQ(map->far_parts, 0U);
  EXPECT_FALSE(map_devices(small_model(), rooms({8}, 68)).has_value());
  EXPECT_EQ(counts(map_devices(small_model(), rooms({}, 69))), (Counts{9}));
}

TEST(DeviceMap, the_least_room_fits_and_a_MiB_less_does_not) {
  constexpr int64_t kMiB = 1 << 20;
  ModelParts model;
  for (int i = 0; i < 5; ++i) model.parts.push_back(part("layer", 7 * kMiB));
  std::vector<DeviceRoom> given = rooms({15 * kMiB}, 1);
  const auto least = least_room(model, given, 1);
  EXPECT_EQ(least, 28 * kMiB);  // one layer near, with a window for the others
  given.back().bytes = *least;
  EXPECT_TRUE(map_devices(model, given).has_value());
  given.back().bytes -= kMiB;
  EXPECT_FALSE(map_devices(model, given).has_value());
  EXPECT_FALSE(least_room(model, rooms({kMiB}, 0, kMiB), 1).has_value());  // no disk helps where nothing can run
}

// Everything a map must hold, said once more: all cuts of the parts over the rooms are tried.
class BruteForce {
 public:
  BruteForce(const ModelParts& model, const std::vector<DeviceRoom>& devices) : model_(model), rooms_(devices) {}

  // (parts off the accelerators, parts on disk) of the best map with an accelerator as main; none if there is none.
  std::optional<std::pair<size_t, size_t>> best() {
    owner_.assign(model_.parts.size(), 0);
    assign(0, 0);
    return best_;
  }

 private:
  void assign(size_t at, size_t from) {
    if (at == owner_.size()) return consider();
    for (size_t device = from; device < rooms_.size(); ++device) {
      owner_[at] = device;
      assign(at + 1, device);
    }
  }

  void consider() {
    const size_t main = owner_.front();
    if (rooms_[main].kind != DeviceKind::accelerator) return;
    size_t far = 0, disk = 0;
    for (size_t device = 0; device < rooms_.size(); ++device) {
      const bool near = rooms_[device].kind == DeviceKind::accelerator;
      int64_t need = 0, temporaries = 0, window = 0;
      bool computes = false;
      for (size_t i = 0; i < owner_.size(); ++i) {
        const ModelPart& p = model_.parts[i];
        const bool here = owner_[i] == device;
        const bool far_part = rooms_[owner_[i]].kind != DeviceKind::accelerator;
        if (here) need += p.resident();
        if ((here && near) || (device == main && far_part)) {
          need += p.activations;
          temporaries = std::max(temporaries, p.temporaries);
          computes = true;
        }
        const bool passes = device == main
                                ? far_part
                                : rooms_[device].kind == DeviceKind::host && rooms_[owner_[i]].kind == DeviceKind::disk;
        if (passes) window = std::max(window, p.weights + p.gradients);
      }
      if (computes) need += model_.common_bytes;
      if (need + temporaries + window > rooms_[device].bytes) return;
    }
    for (size_t device : owner_) {
      far += rooms_[device].kind != DeviceKind::accelerator ? 1 : 0;
      disk += rooms_[device].kind == DeviceKind::disk ? 1 : 0;
    }
    if (!best_ || std::pair(far, disk) < *best_) best_ = {far, disk};
  }

  const ModelParts& model_;
  const std::vector<DeviceRoom>& rooms_;
  std::vector<size_t> owner_;
  std::optional<std::pair<size_t, size_t>> best_;
};

TEST(DeviceMap, no_map_has_fewer_parts_off_the_accelerators_nor_then_on_disk) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  int mapped = 0, with_far = 0, with_disk = 0;
  for (int trial = 0; trial < 8000; ++trial) {
    ModelParts model{.common_bytes = draw(0, 2)};
    for (int64_t i = 0, n = draw(1, 6); i < n; ++i)
      model.parts.push_back(part("part", draw(1, 12), draw(0, 6), draw(0, 6), draw(0, 3)));
    std::vector<DeviceRoom> devices = draw(0, 1) == 0 ? rooms({draw(20, 50)}) : rooms({draw(10, 40), draw(5, 30)});
    if (draw(0, 2) > 0) devices.push_back({"cpu", DeviceKind::host, draw(5, 40)});
    if (draw(0, 2) > 0) devices.push_back({"disk", DeviceKind::disk, draw(5, 40)});
    const auto best = BruteForce(model, devices).best();
    const auto map = map_devices(model, devices);
    const bool on_accelerator = map && map->shares[map->main].room.kind == DeviceKind::accelerator;
    ASSERT_EQ(on_accelerator, best.has_value()) << "trial " << trial;
    if (!best) continue;
    const DeviceShare& last = map->shares.back();
    const size_t disk = last.room.kind == DeviceKind::disk ? last.count : 0;
    ASSERT_EQ(std::pair(map->far_parts, disk), *best) << "trial " << trial;
    for (const DeviceShare& share : map->shares) ASSERT_GE(share.free(), 0);
    ++mapped;
    with_far += map->far_parts > 0 ? 1 : 0;
    with_disk += disk > 0 ? 1 : 0;
  }
  EXPECT_GT(mapped, 1000);
  EXPECT_GT(with_far, 300);
  EXPECT_GT(with_disk, 100);
}

Plan plan_of(const char* model, const std::function<void(Recipe&)>& change) {
  Recipe recipe;
  recipe.bf16 = true;
  recipe.batch = 2;
  const std::string directory = std::string(SNUG_SOURCE_DIR "/tests/golden/") + model;
  ModelSpec spec;
  for (const auto& [family, config] : test::unlike_layers(1000))
    if (family == model) spec = parse_config(config.dump(), model);
  if (spec.layers == 0) spec = std::filesystem::exists(directory) ? read_config(directory) : find_model(model).value();
  recipe.seq_len = std::min<int64_t>(256, spec.max_position);
  change(recipe);
  return make_plan(spec, recipe, {.threads = 2, .memory_bytes = int64_t{1} << 40});
}

struct PartsCase {
  const char* model;
  std::function<void(Recipe&)> change;
};

const PartsCase kPartsCases[] = {
    {"HuggingFaceTB/SmolLM2-135M", [](Recipe&) {}},
    {"HuggingFaceTB/SmolLM2-135M", [](Recipe& r) { r.method = Method::full; }},
    {"HuggingFaceTB/SmolLM2-135M", [](Recipe& r) { r.gradient_checkpointing = true; }},
    {"HuggingFaceTB/SmolLM2-135M",
     [](Recipe& r) {
       r.gradient_checkpointing = true;
       r.checkpoint_layers = {2, 3, 11};
     }},
    {"HuggingFaceTB/SmolLM2-135M",
     [](Recipe& r) {
       r.method = Method::full;
       r.optimizer_in_bwd = true;
       r.max_grad_norm = 0;
     }},
    {"HuggingFaceTB/SmolLM2-135M",
     [](Recipe& r) {
       r.method = Method::full;
       r.optim = Optimizer::adamw_8bit;
     }},
    {"HuggingFaceTB/SmolLM2-135M", [](Recipe& r) { r.lora.modules_to_save = {"lm_head"}; }},
    {"meta-llama/Llama-3.1-8B", [](Recipe&) {}},
    {"meta-llama/Llama-3.1-8B", [](Recipe& r) { r.quantize.in_4bit = true; }},
    {"qwen3_moe", [](Recipe& r) { r.quantize.in_8bit = true; }},
    {"gpt2", [](Recipe& r) { r.method = Method::full; }},
    {"gemma2", [](Recipe& r) { r.lora.target_modules = {"all-linear"}; }},
    {"deepseek_v2", [](Recipe& r) { r.lora.target_modules = {"all-linear"}; }},
    {"deepseek_v3", [](Recipe& r) { r.quantize.in_4bit = r.quantize.double_quant = true; }},
    {"deepseek_v3", [](Recipe& r) { r.method = Method::full; }},
};

// No second formula: what the parts hold is what the Program's storages are, to the byte.
TEST(DeviceParts, their_weights_gradients_and_states_are_the_storages_of_the_program) {
  for (const PartsCase& c : kPartsCases) {
    const Plan plan = plan_of(c.model, c.change);
    std::array<int64_t, kRoleCount> whole{};
    for (const Storage& s : plan.program.storages)
      if (s.lifetime == Lifetime::run && s.home == Home::device) whole[static_cast<size_t>(s.role)] += s.bytes;
    const ModelParts model = parts_of(plan);
    int64_t weights = 0, gradients = 0, optimizer = 0;
    for (const ModelPart& p : model.parts) {
      weights += p.weights;
      gradients += p.gradients;
      optimizer += p.optimizer;
    }
    EXPECT_EQ(weights, whole[static_cast<size_t>(Role::weight)] + whole[static_cast<size_t>(Role::adapter)]) << c.model;
    EXPECT_EQ(gradients, whole[static_cast<size_t>(Role::gradient)]) << c.model;
    EXPECT_EQ(optimizer, whole[static_cast<size_t>(Role::optimizer)]) << c.model;
  }
}

TEST(DeviceParts, one_device_for_all_needs_what_the_plan_needs) {
  for (const PartsCase& c : kPartsCases) {
    const Plan plan = plan_of(c.model, c.change);
    const auto map = map_devices(parts_of(plan), rooms({int64_t{1} << 45}));
    ASSERT_TRUE(map.has_value());
    const int64_t exact = plan.layout.device().run_bytes + plan.layout.device().peak_live_bytes;
    EXPECT_GE(map->shares[0].used() + 64 * 64, exact) << c.model;  // a buffer starts on a cache line
    EXPECT_LE(static_cast<double>(map->shares[0].used()), 1.02 * static_cast<double>(exact)) << c.model;
  }
}

TEST(DeviceParts, a_tied_head_stays_with_the_embedding_and_each_layer_has_the_same_weights) {
  const ModelParts tied = parts_of(plan_of("HuggingFaceTB/SmolLM2-135M", [](Recipe&) {}));
  ASSERT_EQ(tied.parts.size(), 32U);
  EXPECT_EQ(tied.parts[0].modules, (std::vector<std::string>{"model.embed_tokens", "lm_head"}));
  EXPECT_GT(tied.parts[0].temporaries, 0);  // the loss runs there
  for (size_t i = 2; i <= 30; ++i) EXPECT_EQ(tied.parts[i].weights, tied.parts[1].weights);
  const ModelParts apart = parts_of(plan_of("meta-llama/Llama-3.1-8B", [](Recipe&) {}));
  EXPECT_EQ(apart.parts.back().modules, std::vector<std::string>{"lm_head"});
  EXPECT_EQ(apart.parts.back().weights, int64_t{128256} * 4096 * 2);
  EXPECT_EQ(apart.everywhere, std::vector<std::string>{"model.rotary_emb"});
}

TEST(DeviceParts, layers_that_are_recomputed_keep_less_than_their_neighbours) {
  const ModelParts model = parts_of(plan_of("HuggingFaceTB/SmolLM2-135M", kPartsCases[3].change));
  EXPECT_LT(5 * model.parts[1 + 2].activations, model.parts[1 + 5].activations);
  EXPECT_EQ(model.parts[1 + 2].activations, model.parts[1 + 11].activations);
}

TEST(DeviceParts, quantized_weights_are_counted_as_codes_and_scales) {
  const ModelParts plain = parts_of(plan_of("meta-llama/Llama-3.1-8B", [](Recipe&) {}), true);
  const ModelParts codes = parts_of(plan_of("meta-llama/Llama-3.1-8B", [](Recipe& r) { r.quantize.in_4bit = true; }), true);
  EXPECT_EQ(codes.parts[0].weights, plain.parts[0].weights);
  const int64_t linears = 4096LL * (4096 + 1024 + 1024 + 4096) + 3LL * 4096 * 14336;
  const int64_t scales = linears / 64 + linears / 64 / 256 * 4;  // a byte for 64, and 4 for 256 of those
  EXPECT_EQ(plain.parts[1].weights, 2 * linears + 2 * 2 * 4096);
  EXPECT_NEAR(static_cast<double>(codes.parts[1].weights), static_cast<double>(linears / 2 + scales + 2 * 2 * 4096), 4096);
}

TEST(DeviceParts, too_many_layers_are_refused) {
  ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  model.layers = 1025;
  Recipe recipe;
  recipe.seq_len = 16;
  EXPECT_THROW(parts_of(make_plan(model, recipe, {.memory_bytes = 1})), Error);
}

}  // namespace

}  // namespace snug::testing
