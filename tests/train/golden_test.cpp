// Against transformers and PEFT in fp32: logits, loss and every gradient of tiny random models. Golden files: tests/oracle.

#include <gtest/gtest.h>

#include <cmath>

#include "base/cpu_features.h"
#include "formats/adapter.h"
#include "formats/checkpoint.h"
#include "recipe/keys.h"
#include "run/in_place.h"
#include "train/schedule.h"
#include "train/support_golden.h"

namespace snug::testing {

namespace {

using Json = nlohmann::json;

std::vector<Json> window_of(const Json& json) {
  if (json.contains("micro_batches")) return json["micro_batches"];
  return {json};
}

// Logits from what the loss op reads, in fp64: the op itself never holds them all.
class Logits : public Observer {
 public:
  void before(const Op& op, const Binding& binding) override {
    if (op.kind != OpKind::head_loss) return;
    const Program& p = binding.program;
    const auto* hidden = static_cast<const float*>(binding.address(op.find(Slot::hidden)));
    const auto* weight = static_cast<const float*>(binding.address(op.find(Slot::weight)));
    const auto* low = static_cast<const float*>(binding.address(op.find(Slot::low)));
    const auto* low_weight = static_cast<const float*>(binding.address(op.find(Slot::low_weight)));
    const int64_t V = p.tensor(op.find(Slot::weight)).dim(0), C = p.tensor(op.find(Slot::weight)).dim(1);
    const int64_t R = low == nullptr ? 0 : p.tensor(op.find(Slot::low_weight)).dim(1);
    const int64_t M = p.tensor(op.find(Slot::hidden)).elements() / C;
    for (int64_t m = 0; m < M; ++m)
      for (int64_t v = 0; v < V; ++v) {
        double sum = 0;
        for (int64_t c = 0; c < C; ++c) sum += double(hidden[m * C + c]) * double(weight[v * C + c]);
        for (int64_t r = 0; r < R; ++r) sum += double(low[m * R + r]) * double(low_weight[v * R + r]);
        const double cap = op.attributes.softcap;
        values.push_back(static_cast<float>(cap > 0 ? cap * std::tanh(sum / cap) : sum));
      }
  }
  void after(const Op&, const Binding&) override {}
  std::vector<float> values;
};

Recipe full_recipe() {
  Recipe recipe;
  recipe.method = Method::full;
  recipe.max_grad_norm = 0;
  return recipe;
}

// Compares every trained weight's gradient with its golden tensor; returns how many there were.
int64_t compare_gradients(GoldenRun& run, const std::filesystem::path& expected, const std::string& prefix) {
  int64_t compared = 0;
  const Program& program = run.program();
  for (const Weight& weight : program.weights) {
    if (!weight.trainable) continue;
    for (int64_t layer = 0; layer < (weight.parameter.per_layer ? program.layers : 1); ++layer) {
      const auto all = InPlace::elements<float>(run.executor(), weight.gradient, layer);
      const int64_t parts = std::max<int64_t>(1, weight.parameter.experts);
      for (int64_t expert = 0; expert < parts; ++expert) {
        const std::string name = prefix + weight.parameter.instance(layer, expert);
        const size_t size = all.size() / static_cast<size_t>(parts);
        const std::span<const float> part = all.subspan(static_cast<size_t>(expert) * size, size);
        const auto truth = read_floats(expected, "grad." + name);
        const bool unused = std::all_of(truth.begin(), truth.end(), [](float x) { return x == 0; });
        if (unused) {  // an expert without tokens
          EXPECT_TRUE(std::all_of(part.begin(), part.end(), [](float x) { return x == 0; })) << name;
        } else {
          EXPECT_LE(relative_error(part, truth), 1e-4) << name;
        }
        ++compared;
      }
    }
  }
  return compared;
}

int64_t count_golden_gradients(const std::filesystem::path& expected) {
  const Checkpoint file(expected);
  int64_t count = 0;
  for (const TensorEntry& entry : file.tensors()) count += entry.name.starts_with("grad.") ? 1 : 0;
  return count;
}

enum class Way { kept, recomputed, in_a_bucket };  // of the blocks' activations; a shorter Program in a longer one's arena

const char* name_of(Way way) { return way == Way::kept ? "kept" : way == Way::recomputed ? "recomputed" : "in_a_bucket"; }

class Forward : public ::testing::TestWithParam<std::tuple<std::string, Way>> {};

TEST_P(Forward, logits_loss_and_every_gradient_equal_transformers) {
  const auto& [name, way] = GetParam();
  const auto directory = golden_directory(name);
  const auto window = window_of(read_json(directory / "batch.json"));
  Recipe recipe = full_recipe();
  recipe.gradient_checkpointing = way == Way::recomputed;
  GoldenRun run(directory, recipe, window);
  if (way == Way::in_a_bucket) {
    run.run_in_a_bucket();
    EXPECT_LT(run.program().seq_len, run.plan().program.seq_len);
  }
  run.load();
  Logits logits;
  run.executor().observe(&logits);
  const double loss = run.forward_backward(window);
  const auto expected = directory / "expected.safetensors";
  EXPECT_LE(relative_error(logits.values, read_floats(expected, "logits")), 1e-4);
  EXPECT_NEAR(loss, read_floats(expected, "loss").at(0), 1e-4 * loss);
  EXPECT_EQ(compare_gradients(run, expected, ""), count_golden_gradients(expected));
  const Json figures = read_json(directory / "expected.json");
  if (figures.contains("denominators")) {
    const double other = run.forward_backward(window, figures["denominators"]["huggingface"].get<double>());
    EXPECT_NEAR(other, read_floats(expected, "loss_huggingface").at(0), 1e-4 * other);
  }
}

INSTANTIATE_TEST_SUITE_P(golden, Forward,
                         ::testing::Combine(::testing::Values("untied", "tied", "rope_llama3", "packed", "window", "mistral",
                                                              "mistral_window", "qwen2", "qwen2_yarn", "qwen3",
                                                              "qwen3_window", "gemma", "gemma2", "gemma3", "gemma3_vision",
                                                              "phi3", "phi3_longrope", "gpt2", "mixtral", "qwen3_moe"),
                                            ::testing::Values(Way::kept, Way::recomputed, Way::in_a_bucket)),
                         [](const auto& test) { return std::get<0>(test.param) + "_" + name_of(std::get<1>(test.param)); });

TEST(Bf16, the_loss_with_bf16_weights_and_activations_is_within_half_a_percent_of_fp32_arithmetic) {
  const auto directory = golden_directory("bf16");
  const auto window = window_of(read_json(directory / "batch.json"));
  Recipe recipe = full_recipe();
  recipe.bf16 = true;
  GoldenRun run(directory, recipe, window);
  run.load();
  const double loss = run.forward_backward(window);
  const double truth = read_floats(directory / "expected.safetensors", "loss").at(0);
  EXPECT_NEAR(loss, truth, 5e-3 * truth);
}

// Where the CPU multiplies bf16 faster, the plan does; elsewhere products are in fp32. Both must train alike: what rounding
// the gradients for products adds is less than half of what rounding the saved activations has cost already.
TEST(Bf16, products_in_bf16_move_gradients_less_than_activations_in_bf16_do) {
  if (!multiplies_bf16()) GTEST_SKIP() << "no bf16 arithmetic here";
  Target target = this_cpu(2);
  if (!multiplies_bf16_faster()) target.products = Arithmetic::bf16;
  const auto directory = golden_directory("bf16");
  const auto window = window_of(read_json(directory / "batch.json"));
  Recipe recipe = full_recipe();
  recipe.bf16 = true;
  GoldenRun bf16(directory, recipe, window, 0, target);
  target.products = Arithmetic::fp32;
  GoldenRun fp32(directory, recipe, window, 0, target);
  bf16.load();
  fp32.load();
  const double truth = read_floats(directory / "expected.safetensors", "loss").at(0);
  EXPECT_NEAR(fp32.forward_backward(window), truth, 5e-3 * truth);
  EXPECT_NEAR(bf16.forward_backward(window), truth, 5e-3 * truth);
  double largest = 0;
  for (const Weight& weight : bf16.program().weights) {
    for (int64_t layer = 0; layer < (weight.parameter.per_layer ? bf16.program().layers : 1); ++layer) {
      const std::string name = weight.parameter.instance(layer);
      const std::span<const float> rounded = InPlace::elements<float>(bf16.executor(), weight.gradient, layer);
      const std::span<const float> products_in_fp32 = InPlace::elements<float>(fp32.executor(), weight.gradient, layer);
      const double of_activations =
          relative_error(products_in_fp32, read_floats(directory / "expected.safetensors", "grad." + name));
      const double of_products = relative_error(rounded, products_in_fp32);
      EXPECT_LT(of_products, of_activations / 2) << name;
      largest = std::max(largest, of_products);
    }
  }
  EXPECT_GT(largest, 0.0);  // they were computed differently
}

Recipe recipe_of(const Json& json) {
  Recipe recipe;
  for (const auto& [key, value] : json.items()) {
    if (find_key(key) == nullptr) continue;
    if (value.is_array()) {
      std::vector<std::string> list = value;
      apply_list(recipe, key, list, "golden");
    } else {
      apply(recipe, key, value.is_string() ? value.get<std::string>() : value.dump(), "golden");
    }
  }
  return recipe;
}

class Training : public ::testing::TestWithParam<std::string> {};

TEST_P(Training, twenty_steps_equal_pytorch) {
  const auto directory = golden_directory(GetParam());
  const Json expected = read_json(directory / "expected.json");
  const Json batches = read_json(directory / "batch.json");
  Recipe recipe = recipe_of(expected["recipe"]);
  const bool lora = std::filesystem::exists(directory / "adapter");
  recipe.method = lora ? Method::lora : Method::full;
  if (lora) {
    const AdapterConfig adapter = read_adapter_config(directory / "adapter");
    recipe.adapter = (directory / "adapter").string();
    recipe.lora = {.r = adapter.r,
                   .alpha = adapter.lora_alpha,
                   .target_modules = adapter.target_modules,
                   .modules_to_save = adapter.modules_to_save};
  }
  GoldenRun run(directory, recipe, window_of(batches["steps"][0]));
  run.load();
  if (lora) {
    Logits logits;
    run.executor().observe(&logits);
    run.forward_backward(window_of(batches["steps"][0]));
    run.executor().observe(nullptr);
    const auto file = directory / "expected.safetensors";
    EXPECT_LE(relative_error(logits.values, read_floats(file, "logits")), 1e-4);
    EXPECT_EQ(compare_gradients(run, file, "base_model.model."), count_golden_gradients(file));
  }
  const auto steps = static_cast<int64_t>(expected["steps"].size());
  for (int64_t step = 0; step < steps; ++step) {
    const Json& truth = expected["steps"][static_cast<size_t>(step)];
    const double loss = run.forward_backward(window_of(batches["steps"][static_cast<size_t>(step)]));
    const double rate = truth["learning_rate"];
    if (expected["recipe"].contains("lr_scheduler_type")) {
      EXPECT_NEAR(learning_rate(recipe, step, steps), rate, 1e-12) << "step " << step;
    }
    run.update(rate, step + 1);
    EXPECT_NEAR(loss, truth["loss"].get<double>(), 1e-3 * loss) << "step " << step;
    EXPECT_NEAR(run.executor().scalar(Scalar::gradient_norm), truth["grad_norm"].get<double>(),
                1e-3 * truth["grad_norm"].get<double>());
  }
  const Program& program = run.program();
  const auto finals = lora ? directory / "adapter_final" / "adapter_model.safetensors" : directory / "expected.safetensors";
  for (const Weight& weight : program.weights) {
    if (!weight.trainable) continue;
    for (int64_t layer = 0; layer < (weight.parameter.per_layer ? program.layers : 1); ++layer) {
      const std::string name = (lora ? "base_model.model." : "final.") + weight.parameter.instance(layer);
      EXPECT_LE(relative_error(InPlace::elements<float>(run.executor(), weight.tensor, layer), read_floats(finals, name)),
                1e-4)
          << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(golden, Training,
                         ::testing::Values("adamw_linear", "adamw_cosine", "adafactor", "lora", "lora_tied_head",
                                           "lora_save_head", "lora_phi3", "lora_gpt2", "lora_gemma2"),
                         [](const auto& test) { return test.param; });

}  // namespace

}  // namespace snug::testing
