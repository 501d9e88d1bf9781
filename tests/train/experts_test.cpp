// Mixtures of experts as whole blocks: against transformers in fp32, in bf16 against fp32, in shadow runs, and their weights
// in files. Golden files: tests/oracle/make_experts.py.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "base/bfloat16.h"
#include "base/cpu_features.h"
#include "base/error.h"
#include "base/philox.h"
#include "formats/checkpoint.h"
#include "plan/workspaces.h"
#include "run/in_place.h"
#include "run/weight_files.h"
#include "temporary_directory.h"
#include "train/support_experts.h"
#include "train/support_golden.h"
#include "train/support_shadow.h"

namespace snug::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

ExpertSizes sizes_of(const Json& json) {
  return {.tokens = json["tokens"],
          .cols = json["hidden_size"],
          .width = json["expert_width"],
          .experts = json["experts"],
          .choices = json["choices"],
          .vocabulary = json["vocab_size"],
          .layers = json["layers"],
          .normalize = json["normalize"]};
}

ExpertNames names_of(const std::string& name) { return name == "experts_mixtral" ? mixtral_names() : qwen3_names(); }

Target cpu_in_fp32() {
  Target target = this_cpu(2);
  target.products = Arithmetic::fp32;
  return target;
}

void load(ExpertRun& run, const fs::path& directory) {
  std::vector<std::byte> staging(4096);
  load_model(*run.executor, ModelSpec{}, Checkpoint(directory), 1, {.staging = staging, .absmax = {}});
}

// What files would call this weight's gradient, expert by expert.
std::map<std::string, std::vector<float>> gradients_of(const ExpertRun& run) {
  std::map<std::string, std::vector<float>> gradients;
  for (const Weight& weight : run.program.weights) {
    if (!weight.trainable) continue;
    const Parameter& parameter = weight.parameter;
    for (int64_t layer = 0; layer < (parameter.per_layer ? run.program.layers : 1); ++layer) {
      const auto all = InPlace::elements<float>(*run.executor, weight.gradient, layer);
      const int64_t parts = std::max<int64_t>(1, parameter.experts);
      const auto size = static_cast<int64_t>(all.size()) / parts;
      for (int64_t expert = 0; expert < parts; ++expert) {
        const auto begin = all.begin() + expert * size;
        gradients[parameter.instance(layer, expert)] = {begin, begin + size};
      }
    }
  }
  return gradients;
}

// Keeps what the loss op reads.
class Hidden : public Observer {
 public:
  void before(const Op& op, const Binding& binding) override {
    if (op.kind != OpKind::head_loss) return;
    const auto* hidden = static_cast<const float*>(binding.address(op.find(Slot::hidden)));
    values.assign(hidden, hidden + binding.program.tensor(op.find(Slot::hidden)).elements());
  }
  void after(const Op&, const Binding&) override {}
  std::vector<float> values;
};

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(double(a[i]) - double(b[i])));
  return largest;
}

class Experts : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(Experts, hidden_loss_and_every_gradient_equal_transformers) {
  const auto& [name, recomputed] = GetParam();
  const fs::path directory = golden_directory(name), expected = directory / "expected.safetensors";
  const Json batch = read_json(directory / "batch.json");
  ExpertOptions options;
  if (recomputed > 0) options.recomputed = recomputed == 1 ? std::vector<int64_t>{1} : std::vector<int64_t>{0, 1};
  ExpertRun run(build_expert_blocks(sizes_of(batch), names_of(name), options), cpu_in_fp32());
  load(run, directory);
  Hidden hidden;
  run.executor->observe(&hidden);
  const double loss = run.forward_backward(batch["targets"]);
  EXPECT_LE(largest_difference(hidden.values, read_floats(expected, "hidden")), 1e-5);
  EXPECT_NEAR(loss, read_floats(expected, "loss").at(0), 1e-5 * loss);
  const auto gradients = gradients_of(run);
  EXPECT_EQ(gradients.size() + 2, Checkpoint(expected).tensors().size());
  for (const auto& [tensor, gradient] : gradients) {
    const auto truth = read_floats(expected, "grad." + tensor);
    EXPECT_LE(largest_difference(gradient, truth), 1e-5) << tensor;
    if (std::any_of(truth.begin(), truth.end(), [](float value) { return value != 0; })) {
      EXPECT_LE(relative_error(std::span(gradient), std::span(truth)), 1e-5) << tensor;
    }
  }
  run.executor->observe(nullptr);
  run.forward_backward(batch["targets"]);
  EXPECT_TRUE(gradients_of(run) == gradients);  // the same bits again
}

std::string name_of_case(const ::testing::TestParamInfo<std::tuple<std::string, int>>& test) {
  constexpr const char* kHow[] = {"_kept", "_mixed", "_recomputed"};
  return std::get<0>(test.param) + kHow[std::get<1>(test.param)];
}

INSTANTIATE_TEST_SUITE_P(golden, Experts,
                         ::testing::Combine(::testing::Values("experts_mixtral", "experts_qwen3", "experts_qwen3_plain"),
                                            ::testing::Values(0, 1, 2)),
                         name_of_case);

// Larger, so that experts have several tiles and products on bf16 tiles several blocks.
constexpr ExpertSizes kMiddle = {
    .tokens = 300, .cols = 64, .width = 48, .experts = 5, .choices = 2, .vocabulary = 301, .layers = 2, .normalize = false};

std::vector<int32_t> some_targets(const ExpertSizes& sizes) {
  std::vector<int32_t> targets;
  for (int64_t i = 0; i < sizes.tokens; ++i) targets.push_back(static_cast<int32_t>(i * 7919 % sizes.vocabulary));
  return targets;
}

// The same numbers in either dtype.
void fill_weights(ExpertRun& run) {
  for (size_t w = 0; w < run.program.weights.size(); ++w) {
    const Weight& weight = run.program.weights[w];
    for (int64_t layer = 0; layer < (weight.parameter.per_layer ? run.program.layers : 1); ++layer) {
      const Philox random{.seed = 3, .stream = w * 100 + static_cast<uint64_t>(layer)};
      const int64_t size = weight.parameter.elements();
      for (int64_t i = 0; i < size; ++i) {
        const uint16_t bits = f32_to_bf16(0.15F * random.normal(static_cast<uint64_t>(i)));
        if (run.program.tensor(weight.tensor).dtype == DType::bf16) {
          InPlace::elements<uint16_t>(*run.executor, weight.tensor, layer)[static_cast<size_t>(i)] = bits;
        } else {
          InPlace::elements<float>(*run.executor, weight.tensor, layer)[static_cast<size_t>(i)] = bf16_to_f32(bits);
        }
      }
    }
  }
}

TEST(ExpertBlocks, products_in_bf16_and_in_fp32_give_the_same_gradients_to_two_roundings) {
  if (!multiplies_bf16()) GTEST_SKIP() << "no bf16 arithmetic here";
  Target target = this_cpu(2);
  if (!multiplies_bf16_faster()) target.products = Arithmetic::bf16;
  const ExpertOptions options{.dtype = DType::bf16};
  ExpertRun bf16(build_expert_blocks(kMiddle, mixtral_names(), options), target);
  ExpertRun fp32(build_expert_blocks(kMiddle, mixtral_names(), options), cpu_in_fp32());
  ExpertRun full(build_expert_blocks(kMiddle, mixtral_names(), {}), cpu_in_fp32());
  double losses[3];
  size_t i = 0;
  for (ExpertRun* run : {&bf16, &fp32, &full}) {
    fill_weights(*run);
    losses[i++] = run->forward_backward(some_targets(kMiddle));
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-3 * losses[1]);
  EXPECT_NEAR(losses[0], losses[2], 5e-3 * losses[2]);
  const auto truth = gradients_of(fp32);
  bool differs = false;
  for (const auto& [name, gradient] : gradients_of(bf16)) {
    EXPECT_LE(relative_error(std::span(gradient), std::span(truth.at(name))), 0x1p-8) << name;
    differs = differs || gradient != truth.at(name);
  }
  EXPECT_TRUE(differs);  // they were computed differently
}

// Every storage is NaN before it is born and after it dies: nothing is read that was not written.
TEST(ExpertBlocks, shadow_runs_change_no_bit) {
  for (const bool train_experts : {true, false}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const std::vector<int64_t>& recomputed : {std::vector<int64_t>{}, {0}, {0, 1}}) {
        const ExpertOptions options{.recomputed = recomputed, .dtype = dtype, .train_experts = train_experts};
        ExpertRun plain(build_expert_blocks(kMiddle, qwen3_names(), options), this_cpu(2));
        ExpertRun shadowed(build_expert_blocks(kMiddle, qwen3_names(), options), this_cpu(2), 64);
        fill_weights(plain);
        const double loss = plain.forward_backward(some_targets(kMiddle));
        Shadow shadow(*shadowed.executor, 64);  // poisons the weights too
        fill_weights(shadowed);
        shadowed.executor->observe(&shadow);
        EXPECT_EQ(shadowed.forward_backward(some_targets(kMiddle)), loss);
        EXPECT_EQ(shadow.zones_touched(), 0);
        EXPECT_GT(shadow.zones_checked(), 0);
        EXPECT_TRUE(std::isfinite(loss));
        EXPECT_TRUE(gradients_of(shadowed) == gradients_of(plain));
      }
    }
  }
}

TEST(ExpertBlocks, the_plan_counts_the_products_that_are_made) {
  Target target = cpu_in_fp32();
  ExpertSizes odd = kMiddle;
  odd.cols = 72, odd.width = 56;
  Program program = build_expert_blocks(odd, mixtral_names(), {});
  ExpertRun run(std::move(program), target);
  // One may be off: a loss whose head is trained makes three where the plan counts two.
  EXPECT_NEAR(static_cast<double>(run.executor->prepared_products()), static_cast<double>(distinct_products(run.program)),
              1.0);
  const int64_t made = run.executor->prepared_products();
  fill_weights(run);
  run.forward_backward(some_targets(odd));
  EXPECT_EQ(run.executor->prepared_products(), made);
}

class ExpertFiles : public ::testing::Test {
 protected:
  const test::TemporaryDirectory scratch_;
  const fs::path& directory_ = scratch_.path();
};

TEST_F(ExpertFiles, weights_are_written_as_transformers_wrote_them_and_states_come_back) {
  for (const std::string name : {"experts_mixtral", "experts_qwen3"}) {
    const fs::path golden = golden_directory(name);
    const ExpertSizes sizes = sizes_of(read_json(golden / "batch.json"));
    ExpertRun run(build_expert_blocks(sizes, names_of(name), {}), cpu_in_fp32());
    load(run, golden);
    save_weights(*run.executor, {}, directory_, {}, "");
    const Checkpoint truth(golden), written(directory_);
    ASSERT_EQ(written.tensors().size(), truth.tensors().size());
    for (const TensorEntry& entry : truth.tensors()) {
      EXPECT_EQ(written.at(entry.name).shape, entry.shape) << entry.name;
      EXPECT_EQ(read_floats(directory_, entry.name), read_floats(golden, entry.name)) << entry.name;
    }
    // Moments under the names of the tensors they belong to.
    for (const Weight& weight : run.program.weights)
      for (int64_t layer = 0; layer < (weight.parameter.per_layer ? sizes.layers : 1); ++layer) {
        float next = static_cast<float>(weight.state(Slot::first_moment));
        for (TensorId moment : {weight.state(Slot::first_moment), weight.state(Slot::second_moment)})
          for (float& value : InPlace::elements<float>(*run.executor, moment, layer)) value = next += 1.0F;
      }
    save_state(*run.executor, directory_);
    EXPECT_EQ(Checkpoint(directory_ / "optimizer.safetensors").tensors().size(), 2 * truth.tensors().size());
    ExpertRun again(build_expert_blocks(sizes, names_of(name), {}), cpu_in_fp32());
    std::vector<std::byte> staging(4096);
    load_state(*again.executor, {}, directory_, {}, staging);
    for (const Weight& weight : run.program.weights)
      for (TensorId tensor : {weight.tensor, weight.state(Slot::first_moment), weight.state(Slot::second_moment)}) {
        const auto one = InPlace::elements(*run.executor, tensor, sizes.layers - 1),
                   other = InPlace::elements(*again.executor, tensor, sizes.layers - 1);
        EXPECT_EQ(std::memcmp(one.data(), other.data(), one.size()), 0) << weight.parameter.name;
      }
  }
}

TEST_F(ExpertFiles, an_expert_that_is_missing_or_misshapen_is_refused_by_name) {
  const fs::path golden = golden_directory("experts_mixtral");
  ExpertSizes sizes = sizes_of(read_json(golden / "batch.json"));
  const auto refusal = [&] {
    ExpertRun run(build_expert_blocks(sizes, mixtral_names(), {}), cpu_in_fp32());
    try {
      load(run, golden);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal(), "accepted");
  sizes.experts += 1;
  EXPECT_NE(refusal().find("experts.6.w"), std::string::npos) << refusal();
  sizes.experts -= 2;  // one is left over: the router's shape, or the expert, says so
  EXPECT_NE(refusal(), "accepted");
  sizes.experts += 1, sizes.width += 1;
  EXPECT_NE(refusal().find("experts.0.w"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace snug::testing
