// What files around a recipe say that it leaves open: the command that starts a script, the stage that writes its model.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "recipe/dialects/earlier_stage.h"
#include "recipe/support_dialects.h"

namespace snug::testing {

namespace {

class Neighbours : public RecipeFolder {
 protected:
  std::optional<dialects::EarlierStage> stage(const std::string& model) const {
    return dialects::stage_that_writes(path("dpo.yaml"), model);
  }
};

constexpr const char* kScript =
    "parser.add_argument('--base', required=True)\nparser.add_argument('--rows', type=int, default=2)\n"
    "args = parser.parse_args()\nmodel = AutoModelForCausalLM.from_pretrained(args.base)\n"
    "Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=args.rows)).train()\n";

TEST_F(Neighbours, a_script_without_a_model_is_read_with_the_command_that_starts_it) {
  put("README.md", "");
  put("src/train.py", kScript);
  put("jobs/small.sh", "python src/train.py --base Qwen/Qwen2.5-0.5B --rows 6\n");
  const ForeignRecipe recipe = read("src/train.py");
  EXPECT_EQ(model_of(recipe), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.batch, 6);
  EXPECT_TRUE(says(recipe, "its command says its model: read with " + path("jobs/small.sh") + ", which starts it"));
  // Another script of that name is none of its own.
  put("other/train.py", kScript);
  put("other/run.sh", "python train.py --base google/gemma-2b\n");
  EXPECT_EQ(model_of(read("src/train.py")), "Qwen/Qwen2.5-0.5B");
  // Nor is one outside of the project, wherever the command is given.
  put("src/README.md", "");
  EXPECT_TRUE(read("src/train.py").models.empty());
  std::filesystem::remove(directory_ / "src/README.md");
  // Of two that differ neither is taken.
  put("jobs/large.sh", "python src/train.py --base Qwen/Qwen2.5-7B\n");
  EXPECT_TRUE(read("src/train.py").models.empty());
}

TEST_F(Neighbours, a_stage_that_writes_the_model_is_found_by_what_it_writes) {
  put("README.md", "");
  put("dpo.yaml", "model_name_or_path: models/merged-sft\nstage: dpo\n");
  EXPECT_FALSE(stage("models/merged-sft"));
  put("conf/merge.yaml",
      "model_name_or_path: Qwen/Qwen2.5-Coder-7B\nadapter_name_or_path: out/a\nexport_dir: models/merged-sft\n");
  ASSERT_TRUE(stage("models/merged-sft"));
  EXPECT_EQ(stage("models/merged-sft")->model, "Qwen/Qwen2.5-Coder-7B");
  EXPECT_EQ(stage("../models/merged-sft/checkpoint-400")->file,
            std::filesystem::path(path("conf/merge.yaml")).lexically_normal());
  EXPECT_FALSE(stage("models/merged-dpo"));
  EXPECT_FALSE(stage("merged"));
  EXPECT_FALSE(stage("merged-sft"));  // anybody's, by its last part alone
  EXPECT_TRUE(stage("/data/run/models/merged-sft"));
  // A stage that goes on from there itself is not the one that made it; one that begins elsewhere leaves it open.
  put("conf/again.yaml", "model_name_or_path: models/merged-sft\noutput_dir: models/merged-sft\n");
  EXPECT_TRUE(stage("models/merged-sft"));
  put("conf/second.yaml", "model_name_or_path: google/gemma-2b\nexport_dir: models/merged-sft\n");
  EXPECT_FALSE(stage("models/merged-sft"));
}

TEST_F(Neighbours, a_run_of_a_shell_script_or_of_json_leaves_its_output) {
  put("README.md", "");
  put("dpo.yaml", "model_name_or_path: out/sft\n");
  put("scripts/sft.sh", "trl sft --model_name_or_path Qwen/Qwen2.5-7B --output_dir ./out/sft --bf16\n");
  ASSERT_TRUE(stage("out/sft"));
  EXPECT_EQ(stage("out/sft")->model, "Qwen/Qwen2.5-7B");
  put("conf/kto.json", R"({"model": "Qwen/Qwen2.5-7B", "output_dir": "checkpoints/kto", "learning_rate": 1e-5})");
  EXPECT_EQ(stage("checkpoints/kto")->model, "Qwen/Qwen2.5-7B");
}

}  // namespace

}  // namespace snug::testing
