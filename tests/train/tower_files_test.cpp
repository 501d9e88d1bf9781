// A Gemma 3 with its vision tower: what is not trained goes along with what is.

#include <gtest/gtest.h>

#include "formats/adapter.h"
#include "formats/checkpoint.h"
#include "run/weight_files.h"
#include "temporary_directory.h"
#include "train/support_golden.h"

namespace snug::testing {

namespace {

namespace fs = std::filesystem;

class TowerFiles : public ::testing::Test {
 protected:
  const fs::path golden_ = golden_directory("gemma3_vision");
  const std::vector<nlohmann::json> window_ = {read_json(golden_ / "batch.json")};
  const test::TemporaryDirectory scratch_;
  const fs::path& directory_ = scratch_.path();
};

TEST_F(TowerFiles, full_fine_tuning_writes_the_whole_model_under_the_names_that_transformers_wrote) {
  Recipe recipe;
  recipe.method = Method::full;
  GoldenRun run(golden_, recipe, window_);
  run.load();
  save_weights(run.executor(), run.plan().model, directory_, {}, golden_);
  const Checkpoint truth(golden_), written(directory_);
  ASSERT_EQ(written.tensors().size(), truth.tensors().size());
  int64_t towers = 0;
  for (const TensorEntry& entry : truth.tensors()) {
    towers += entry.name.find("vision_tower") != std::string::npos ? 1 : 0;
    EXPECT_EQ(written.at(entry.name).shape, entry.shape) << entry.name;
    EXPECT_EQ(read_floats(directory_, entry.name), read_floats(golden_, entry.name)) << entry.name;
  }
  EXPECT_GT(towers, 10);
  save_state(run.executor(), directory_);
  std::vector<std::byte> staging(4096);
  load_state(run.executor(), run.plan().model, directory_, {}, staging);
}

// PEFT adapts every module whose name ends with a target: "q_proj" alone would adapt the tower too.
TEST_F(TowerFiles, an_adapter_names_its_targets_in_full) {
  Recipe recipe;
  recipe.lora.target_modules = {"q_proj", "v_proj"};
  GoldenRun run(golden_, recipe, window_);
  run.load();
  save_weights(run.executor(), run.plan().model, directory_, recipe.lora, golden_);
  const AdapterConfig config = read_adapter_config(directory_);
  EXPECT_EQ(static_cast<int64_t>(config.target_modules.size()), 2 * run.plan().model.layers);
  for (const std::string& target : config.target_modules)
    EXPECT_TRUE(target.starts_with("model.language_model.layers.")) << target;
  EXPECT_NE(std::find(config.target_modules.begin(), config.target_modules.end(),
                      "model.language_model.layers.1.self_attn.v_proj"),
            config.target_modules.end());
}

}  // namespace

}  // namespace snug::testing
