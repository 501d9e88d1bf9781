// Variants of LoRA: rsLoRA, ranks and alphas by pattern, DoRA and dropout against PEFT (tests/oracle/make_adapters.py), and
// what dropout promises: one mask wherever it is drawn, another in every step, micro-batch, layer and module.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "formats/adapter.h"
#include "formats/checkpoint.h"
#include "run/in_place.h"
#include "train/support_golden.h"

namespace snug::testing {

namespace {

using Json = nlohmann::json;
const std::string kCases[] = {"rslora_patterns", "dora_llama", "dora_qwen2", "dora_phi3", "dora_gpt2"};

struct Golden {
  explicit Golden(const std::string& name) : directory(golden_directory("adapters") / name) {
    expected = read_json(directory / "expected.json");
    base = golden_directory(expected["base"]);
    Json batch = read_json(base / "batch.json");
    if (batch.contains("steps")) batch = batch["steps"][0];
    if (batch.contains("micro_batches")) {
      for (const Json& each : batch["micro_batches"]) window.push_back(each);
    } else {
      window.push_back(batch);
    }
    const AdapterConfig adapter = read_adapter_config(directory / "adapter");
    recipe.adapter = (directory / "adapter").string();
    recipe.lora = {.r = adapter.r,
                   .alpha = adapter.lora_alpha,
                   .target_modules = adapter.target_modules,
                   .use_rslora = adapter.use_rslora,
                   .use_dora = adapter.use_dora,
                   .rank_pattern = adapter.rank_pattern,
                   .alpha_pattern = adapter.alpha_pattern};
  }

  std::unique_ptr<GoldenRun> run(double dropout, bool recomputed = false, const Target& target = this_cpu(2)) {
    recipe.lora.dropout = dropout;
    recipe.gradient_checkpointing = recomputed;
    auto run = std::make_unique<GoldenRun>(base, recipe, window, 0, target);
    run->load();
    run->executor().set_scalar(Scalar::step, expected["step"].get<double>());
    return run;
  }

  double dropout() const { return expected["dropout"]; }

  std::filesystem::path directory, base;
  Json expected;
  std::vector<Json> window;
  Recipe recipe;
};

// visit(name as in files, values, gradient) of every trained tensor.
template <class Visit>
void for_each_trained(GoldenRun& run, const Visit& visit) {
  const Program& program = run.program();
  for (const Weight& weight : program.weights)
    for (int64_t layer = 0; weight.trainable && layer < (weight.parameter.per_layer ? program.layers : 1); ++layer)
      visit("base_model.model." + weight.parameter.instance(layer),
            InPlace::elements<float>(run.executor(), weight.tensor, layer),
            InPlace::elements<float>(run.executor(), weight.gradient, layer));
}

std::map<std::string, std::vector<float>> gradients(GoldenRun& run) {
  std::map<std::string, std::vector<float>> all;
  for_each_trained(run, [&](const std::string& name, auto, auto gradient) {
    all[name] = std::vector<float>(gradient.begin(), gradient.end());
  });
  return all;
}

class Adapters : public ::testing::TestWithParam<std::tuple<std::string, bool, bool>> {};

TEST_P(Adapters, loss_and_every_gradient_equal_peft) {
  const auto& [name, with_dropout, recomputed] = GetParam();
  Golden golden(name);
  const auto run = golden.run(with_dropout ? golden.dropout() : 0.0, recomputed);
  const std::string prefix = with_dropout ? "dropout." : "";
  const auto file = golden.directory / "expected.safetensors";
  const double loss = run->forward_backward(golden.window), truth = read_floats(file, prefix + "loss").at(0);
  EXPECT_NEAR(loss, truth, 1e-4 * truth);
  size_t compared = 0;
  for (const auto& [tensor, gradient] : gradients(*run)) {
    const std::vector<float> peft = read_floats(file, prefix + "grad." + tensor);
    EXPECT_LE(relative_error(std::span(gradient), std::span(peft)), 1e-4) << tensor;
    ++compared;
  }
  size_t there = 0;
  const Checkpoint checkpoint(file);
  for (const TensorEntry& entry : checkpoint.tensors()) there += entry.name.starts_with(prefix + "grad.") ? 1 : 0;
  EXPECT_EQ(compared, there);
}

INSTANTIATE_TEST_SUITE_P(golden, Adapters,
                         ::testing::Combine(::testing::ValuesIn(kCases), ::testing::Bool(), ::testing::Bool()),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + (std::get<1>(test.param) ? "_dropout" : "") +
                                  (std::get<2>(test.param) ? "_recomputed" : "");
                         });

// Slopes of the loss with the masks as they are, along every trained tensor.
TEST(Dropout, gradients_are_the_slopes_of_the_loss_under_the_same_masks) {
  for (const char* name : {"rslora_patterns", "dora_gpt2"}) {
    Golden golden(name);
    const auto run = golden.run(0.4);
    run->forward_backward(golden.window);
    std::map<std::string, double> along;
    for (const auto& [tensor, gradient] : gradients(*run)) {
      double norm = 0;
      for (const float g : gradient) norm += static_cast<double>(g) * static_cast<double>(g);
      along[tensor] = std::sqrt(norm);
    }
    const auto slopes = gradients(*run);
    for (const auto& [tensor, gradient] : slopes) {
      // The norms of DoRA are constants for its gradients, so only the magnitudes' slopes are the loss's.
      if (golden.recipe.lora.use_dora && !tensor.ends_with("magnitude_vector")) continue;
      const auto moved = [&](double step) {
        for_each_trained(*run, [&](const std::string& which, std::span<float> values, auto) {
          for (size_t i = 0; which == tensor && i < values.size(); ++i)
            values[i] += static_cast<float>(step * static_cast<double>(gradient[i]) / along[tensor]);
        });
      };
      constexpr double kStep = 4e-3;
      moved(kStep);
      const double ahead = run->forward_backward(golden.window);
      moved(-2 * kStep);
      const double behind = run->forward_backward(golden.window);
      moved(kStep);
      EXPECT_NEAR((ahead - behind) / (2 * kStep), along[tensor], 2e-2 * along[tensor] + 1e-4) << name << " " << tensor;
    }
  }
}

TEST(Dropout, recomputing_blocks_and_another_number_of_threads_change_no_mask) {
  for (const char* name : {"rslora_patterns", "dora_qwen2"}) {
    Golden golden(name);
    const auto kept = golden.run(0.3), recomputed = golden.run(0.3, true), alone = golden.run(0.3, false, this_cpu(1));
    EXPECT_EQ(kept->forward_backward(golden.window), recomputed->forward_backward(golden.window));
    EXPECT_EQ(gradients(*kept), gradients(*recomputed));
    alone->forward_backward(golden.window);
    const auto truth = gradients(*kept);
    for (const auto& [tensor, gradient] : gradients(*alone))
      EXPECT_LE(relative_error(std::span(gradient), std::span(truth.at(tensor))), 1e-5) << tensor;
  }
}

// Which elements each dropout op leaves out, by op output and layer, in the order in which they are drawn.
class Masks : public Observer {
 public:
  void before(const Op&, const Binding&) override {}
  void after(const Op& op, const Binding& binding) override {
    if (op.kind != OpKind::dropout || op.find(Slot::out) == kNone || op.attributes.accumulate) return;
    const Program& program = binding.program;
    const auto* x = static_cast<const float*>(binding.address(op.find(Slot::x)));
    const auto* out = static_cast<const float*>(binding.address(op.find(Slot::out)));
    std::vector<bool> mask;
    for (int64_t i = 0; i < program.tensor(op.find(Slot::x)).elements(); ++i) {
      const bool left_out = op.attributes.complement ? out[i] == x[i] : out[i] == 0.0F;
      mask.push_back(left_out && x[i] != 0.0F);
      ++elements;
      left += left_out ? 1 : 0;
    }
    masks[{op.attributes.noise_stream, binding.layer}].push_back(std::move(mask));
  }
  std::map<std::pair<uint64_t, int64_t>, std::vector<std::vector<bool>>> masks;
  double elements = 0, left = 0;
};

TEST(Dropout, draws_one_mask_for_each_module_layer_step_and_micro_batch) {
  Golden golden("rslora_patterns");
  golden.window.push_back(golden.window.front());
  const auto run = golden.run(0.3);
  std::set<std::vector<bool>> seen;
  size_t drawn = 0;
  for (const int step : {3, 4}) {
    Masks masks;
    run->executor().observe(&masks);
    run->executor().set_scalar(Scalar::step, step);
    run->forward_backward(golden.window);
    EXPECT_EQ(masks.masks.size(), 7U * 2U);
    for (const auto& [key, list] : masks.masks) {
      ASSERT_EQ(list.size(), 4U);  // forward and backward of two micro-batches
      EXPECT_EQ(list[0], list[1]) << "forward and backward";
      EXPECT_EQ(list[2], list[3]) << "forward and backward";
      seen.insert({list[0], list[2]});
      drawn += 2;
    }
    EXPECT_NEAR(masks.left / masks.elements, 0.3, 0.01);
  }
  EXPECT_EQ(seen.size(), drawn);
}

TEST(Dropout, evaluation_has_none) {
  Golden golden("dora_gpt2");
  golden.recipe.eval_data = "rows.jsonl";
  const auto with = golden.run(0.9), without = golden.run(0.0);
  Masks masks;
  with->executor().observe(&masks);
  const auto loss_of = [&](GoldenRun& run) { return run.evaluate(golden.window.front()); };
  EXPECT_EQ(loss_of(*with), loss_of(*without));
  EXPECT_EQ(masks.elements, 0);
  EXPECT_NE(with->forward_backward(golden.window), without->forward_backward(golden.window));
  EXPECT_GT(masks.elements, 0);
}

// What is dropped is drawn anew in backward: the plan holds one tensor of it, not one for each layer.
TEST(Dropout, keeps_nothing_for_backward) {
  Golden golden("rslora_patterns");
  const auto run = golden.run(0.3);
  int found = 0;
  for (const Storage& storage : run->program().storages)
    if (storage.name.ends_with(".dropped") && !storage.name.starts_with("d_")) {
      EXPECT_EQ(storage.instances, 1) << storage.name;
      ++found;
    }
  EXPECT_EQ(found, 14);  // drawn in forward and in backward, each module
}

}  // namespace

}  // namespace snug::testing
