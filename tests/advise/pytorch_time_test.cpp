// Seconds of PyTorch's steps against what an H100 took for them.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "advise/support_pytorch.h"
#include "model/catalogue.h"
#include "plan/accelerator_target.h"
#include "recipe/keys.h"

namespace snug::testing {

namespace {

struct Row {
  std::string model, what;
  int64_t rows = 0;
  double seconds = 0;
  std::vector<std::string> keys, beside;  // of `what`; of PyTorch
};

std::vector<Row> measured() {
  std::ifstream file(SNUG_SOURCE_DIR "/tests/golden/h100_seconds.csv");
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.starts_with("model")) continue;
    std::istringstream cells(line);
    std::string count, seconds, word;
    Row row;
    std::getline(cells, row.model, ',');
    std::getline(cells, count, ',');
    std::getline(cells, seconds, ',');
    std::getline(cells, row.what);
    row.rows = std::stoll(count);
    row.seconds = std::stod(seconds);
    for (std::istringstream words(row.what); words >> word;)
      word.starts_with('+') ? row.beside.push_back(word) : row.keys.push_back(word);
    rows.push_back(std::move(row));
  }
  return rows;
}

void set_beside(eager::Setup& setup, const std::string& word) {
  if (word == "+non_reentrant") setup.checkpointing = eager::Checkpointing::non_reentrant;
  if (word == "+eager") setup.attention = eager::Attention::eager;
  if (word == "+liger") setup.liger = {.norm = true, .rope = true, .mlp = true, .linear_loss = true};
  if (word == "+no_autocast") setup.autocast.reset();
  if (word == "+fp32_weights") setup.weights = DType::f32;
}

double planned(const Row& row) {
  const ModelSpec model = resolve_model(row.model);
  const Accelerator& card = *find_accelerator("H100");
  const Target target = target_of(card);
  Recipe recipe;
  recipe.bf16 = true;
  recipe.seq_len = 1024;
  recipe.batch = row.rows;
  recipe.lora.r = 16;
  recipe.lora.target_modules = {"q_proj", "k_proj", "v_proj", "o_proj"};
  for (const std::string& key : row.keys)
    apply(recipe, key.substr(0, key.find('=')), key.substr(key.find('=') + 1), row.what);
  PyTorchSide side{
      .stack = eager::stack_profile("2.11.0", "5.17.0", "0.21.2", "0.50.2"), .card = pytorch_target(card), .setup = {}};
  side.setup = [&, stack = side.stack](const Recipe& of) {
    eager::Setup setup = eager::setup_of(of, model, stack);
    for (const std::string& word : row.beside) set_beside(setup, word);
    return setup;
  };
  return PyTorchEngine(model, target, std::move(side)).step_seconds(recipe);
}

// Liger's kernels work in place, where tensors do not tell what they move.
TEST(PyTorchTime, of_most_of_26_recipes_is_within_15_percent_of_an_H100s) {
  int near = 0, count = 0;
  for (const Row& row : measured()) {
    const double ratio = planned(row) / row.seconds;
    const bool in_place = row.what.ends_with("+liger");
    near += std::abs(ratio - 1) <= 0.15 ? 1 : 0;
    ++count;
    EXPECT_NEAR(ratio, 1, in_place ? 0.45 : 0.25) << row.model << " " << row.what;
  }
  EXPECT_EQ(count, 26);
  EXPECT_GE(near, 22);
}

// A host that starts kernels for four micro-batches of one row needs nearly three times as long as for one of four.
TEST(PyTorchTime, small_micro_batches_wait_for_the_host) {
  Row row{.model = "llama-3.2-1b", .what = "", .rows = 4, .keys = {"method=lora"}};
  const double together = planned(row);
  row.rows = 1;
  row.keys.emplace_back("gradient_accumulation_steps=4");
  EXPECT_GT(planned(row) / together, 2.4);
}

}  // namespace

}  // namespace snug::testing
