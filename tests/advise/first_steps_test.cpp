// The first step of small programs of five families, by loops of their own and by trainers: what real runs held in each
// stage, as bench/laboratory/first_steps.py wrote it down.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "advise/pytorch_engine.h"
#include "eager/from_recipe.h"
#include "model/config.h"
#include "plan/accelerators.h"

namespace snug::eager {
namespace {

using Json = nlohmann::json;

DType dtype_named(const std::string& name) {
  return name == "float32" ? DType::f32 : name == "float16" ? DType::f16 : DType::bf16;
}

Setup setup_of_line(const Json& line, const ModelSpec& spec, const StackProfile& stack) {
  const Json& s = line["settings"];
  const bool own_loop = line["program"] == "plain_loop";
  Recipe recipe;
  recipe.method = s.value("lora", 0) > 0 ? snug::Method::lora : snug::Method::full;
  recipe.lora.r = std::max<int64_t>(1, s.value("lora", 0));
  recipe.lora.dropout = 0;
  recipe.lora.target_modules = {"all-linear"};
  recipe.optim = s["optimizer"] == "sgd" ? snug::Optimizer::sgd : snug::Optimizer::adamw;
  recipe.batch = s["micro_batch"];
  recipe.seq_len = s["length"];
  recipe.accumulation = s.value("accumulation", 1);
  recipe.gradient_checkpointing = s.value("gradient_checkpointing", false);
  recipe.max_grad_norm = own_loop ? 0 : s.value("max_grad_norm", 1.0);
  Setup setup = setup_of(recipe, spec, stack);
  setup.weights = dtype_named(s["dtype"]);
  setup.autocast.reset();
  if (s.contains("amp") && s["amp"].is_string()) setup.autocast = dtype_named(s["amp"]);
  if (s["attention"] == "eager") setup.attention = Attention::eager;
  if (recipe.gradient_checkpointing) setup.checkpointing = Checkpointing::non_reentrant;
  setup.own_loop = own_loop;
  if (own_loop) setup.cache = !recipe.gradient_checkpointing;
  setup.steps = 1;
  return setup;
}

// What the model says, as a share of what was held.
double share_of_line(const Json& line) {
  const auto config = std::filesystem::path(::testing::TempDir()) / "first_step_config.json";
  std::ofstream(config) << line["config"].dump();
  const ModelSpec spec = read_config(config);
  const auto version = [&](const char* library) { return line["versions"].value(library, std::string()); };
  const StackProfile stack =
      stack_profile(version("torch"), version("transformers"), version("peft"), version("bitsandbytes"), version("trl"));
  Target card = pytorch_target(*find_accelerator(line["gpu"].get<std::string>()));
  card.memory_bytes = 0;
  const Plan plan = estimate(spec, setup_of_line(line, spec, stack), stack, card);
  int64_t said = 0, held = 0;
  const std::array<std::pair<const char*, Phase>, 3> phases{
      {{"forward", Phase::forward}, {"backward", Phase::backward}, {"optimizer", Phase::optimizer}}};
  for (const auto& [name, phase] : phases) {
    said = std::max(said, plan.phases[static_cast<size_t>(phase)].allocated_bytes);
    held = std::max(held, line["peaks"].value(name, int64_t{0}));
  }
  return static_cast<double>(said) / static_cast<double>(held);
}

TEST(FirstSteps, AreAsRealProgramsTookThem) {
  std::ifstream file(SNUG_SOURCE_DIR "/tests/golden/eager_first_steps.jsonl");
  ASSERT_TRUE(file);
  int lines = 0, near = 0;
  for (std::string text; std::getline(file, text);) {
    const Json line = Json::parse(text);
    const double off = std::abs(share_of_line(line) - 1);
    ++lines;
    near += off <= 0.01 ? 1 : 0;
    if (off > 0.01) fmt::print("{:+.2f} %: {}\n", 100 * (share_of_line(line) - 1), text.substr(0, 620));
    EXPECT_LE(off, 0.03) << text;
  }
  fmt::print("{} first steps: {} within 1 %\n", lines, near);
  EXPECT_GE(lines, 60);
  EXPECT_GE(near * 100, lines * 90);
}

}  // namespace
}  // namespace snug::eager
