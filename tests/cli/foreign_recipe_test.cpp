// Recipes of other trainers, handed to plan, fit and train as they are.

#include <gtest/gtest.h>

#include "cli/support_process.h"
#include "cli/support_workspace.h"
#include "formats/support_files.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

class ForeignRecipe : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    put(directory_ / name, text);
    return (directory_ / name).string();
  }

  const Scratch directory_;
};

const std::string kAxolotl =
    "base_model: Qwen/Qwen2.5-0.5B\nadapter: lora\nlora_r: 8\nlora_target_linear: true\nsequence_len: "
    "256\nmicro_batch_size: 2\n"
    "datasets:\n  - path: some/data\n    type: alpaca\n";

// Eight GPUs where nobody says how many share it; what the answer is of is not called unplanned.
TEST_F(ForeignRecipe, ThatSharesARunIsPlannedForAMachinesGpus) {
  const std::string path = file("r.yml", kAxolotl + "deepspeed: zero2.json\n");
  const auto result = run_program({"plan", path, "--gpu", "RTX 4090"});
  EXPECT_NE(result.error.find("how many GPUs share the run by DeepSpeed is not said: 8 are taken (--gpus N)"),
            std::string::npos)
      << result.error;
  EXPECT_EQ(result.error.find("are not planned"), std::string::npos) << result.error;
  EXPECT_NE(result.output.find("each of 8 GPUs by ZeRO-2"), std::string::npos) << result.output;
  const auto said = run_program({"plan", path, "--gpu", "RTX 4090", "--gpus", "2"});
  EXPECT_EQ(said.error.find("are taken"), std::string::npos) << said.error;
  EXPECT_NE(said.output.find("each of 2 GPUs by ZeRO-2"), std::string::npos) << said.output;
}

// Modules as an author's own code of the model calls them; what is not covered of a model whose step is not modelled.
TEST_F(ForeignRecipe, ThatNamesOtherModulesOrOffloadsHasAnAnswer) {
  const auto result = run_program(
      {"plan", file("r.yml", "base_model: Qwen/Qwen2.5-0.5B\nadapter: lora\ndatasets: []\nlora_target_modules: [Wqkv]\n"),
       "--gpu", "RTX 4090"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("has no Wqkv: all linear layers are taken"), std::string::npos) << result.error;
  const std::string script =
      file("r.sh",
           "deepspeed --num_gpus 4 train.py --model_name_or_path EleutherAI/pythia-1b --per_device_train_batch_size 1 "
           "--learning_rate 1e-5 --deepspeed ds_z3_offload.json\n");
  const auto offloads = run_program({"plan", script, "--gpu", "RTX 4090"});
  EXPECT_NE(offloads.output.find("not known: offload to the host is not modelled yet"), std::string::npos)
      << offloads.output << offloads.error;
}

// What PEFT would not find in the model, and a classifier's head, which its task brings.
TEST_F(ForeignRecipe, ThatTrainsModulesWholeThatTheModelLacksHasAnAnswer) {
  const auto result =
      run_program({"plan",
                   file("r.yml",
                        "base_model: Qwen/Qwen2.5-7B\nadapter: lora\ndatasets: []\nlora_target_modules: [q_proj, Wqkv]\n"
                        "lora_modules_to_save: [score, embed_token, lm_head]\n"),
                   "--gpu", "RTX 4090", "--json"});
  EXPECT_EQ(Json::parse(result.output)["recipe"]["lora_modules_to_save"], "lm_head") << result.error;
  for (const char* told : {"modules_to_save: score is a classifier's head: its few weights are not planned",
                           "modules_to_save: Qwen/Qwen2.5-7B has no embed_token, which PEFT passes over",
                           "lora_target_modules: Qwen/Qwen2.5-7B has no Wqkv, which PEFT passes over"})
    EXPECT_NE(result.error.find(told), std::string::npos) << told << result.error;
}

TEST_F(ForeignRecipe, IsPlannedWithItsOwnDefaultsAndNamed) {
  const auto result = run_program({"plan", file("r.yml", kAxolotl + "relora: true\n"), "--gpu", "RTX 4090", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("r.yml: axolotl recipe; touch memory and are not planned: relora"), std::string::npos)
      << result.error;
  EXPECT_NE(result.output.find("\"packing\": \"false\""), std::string::npos) << result.output.substr(0, 2000);
  EXPECT_NE(result.output.find("\"max_length\": \"256\""), std::string::npos);
}

TEST_F(ForeignRecipe, FlagsChangeWhatTheFileSays) {
  const auto result =
      run_program({"plan", file("r.yml", kAxolotl), "--gpu", "RTX 4090", "--per-device-train-batch-size", "4", "--json"});
  EXPECT_NE(result.output.find("\"per_device_train_batch_size\": \"4\""), std::string::npos);
}

TEST_F(ForeignRecipe, AScriptAndAJsonAreRecipesToo) {
  const std::string script =
      "swift sft --model unsloth/Llama-3.2-1B-Instruct-bnb-4bit --train_type lora --dataset a/b --max_length 128 "
      "--quant_bits 4\n";
  EXPECT_EQ(run_program({"plan", file("train.sh", script), "--gpu", "RTX 4090"}).exit_code, 0);
  const std::string json =
      "{\"model\": \"Qwen/Qwen2.5-0.5B\", \"tuner_type\": \"lora\", \"dataset\": [\"a/b\"], \"max_length\": 128}\n";
  EXPECT_EQ(run_program({"plan", file("args.json", json), "--gpu", "RTX 4090"}).exit_code, 0);
  const auto none = run_program({"plan", file("other.sh", "echo hello\n")});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.error.find("no command of the script trains a model"), std::string::npos);
}

TEST_F(ForeignRecipe, FitTakesIt) {
  const auto result = run_program({"fit", file("r.yml", kAxolotl), "--gpu", "RTX 4090"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("axolotl recipe"), std::string::npos);
}

// What saves memory is searched though the file sets it; the answer is a change of the file itself.
TEST_F(ForeignRecipe, FitChangesWhatTheFileSetsButNotWhatIsTrained) {
  const std::string text = kAxolotl + "optimizer: adamw_torch\ngradient_checkpointing: true\nload_in_4bit: true\n";
  const std::string where = file("r.yml", text);
  const auto result = run_program({"fit", where, "--gpu", "RTX-4090", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("searched, although the file sets them: per_device_train_batch_size, gradient_checkpointing, "
                              "optim, load_in_4bit; method, rank, targets and length stay"),
            std::string::npos)
      << result.error;
  const Json answer = Json::parse(result.output);
  EXPECT_EQ(answer["method"], "LoRA");  // there is room for 16 bits
  for (const Json& choice : answer["methods"][0]["front"])
    for (const char* key : {"method", "lora_r", "lora_target_modules", "max_length", "checkpoint_layers"})
      EXPECT_FALSE(choice["settings"].contains(key)) << key;
  const std::string diff = answer["diff"];
  EXPECT_NE(diff.find("-load_in_4bit: true"), std::string::npos) << diff;
  EXPECT_NE(diff.find("+load_in_4bit: false"), std::string::npos) << diff;
  const auto kept = run_program({"fit", where, "--gpu", "RTX-4090", "--json", "--load-in-4bit", "true"});
  EXPECT_EQ(Json::parse(kept.output)["method"], "QLoRA") << kept.error;
}

TEST_F(ForeignRecipe, WhatIsNoRecipeIsCalledByItsName) {
  const auto deepspeed = run_program({"plan", file("ds_z3_config.json", "{\"zero_optimization\": {\"stage\": 3}}")});
  EXPECT_EQ(deepspeed.exit_code, 1);
  EXPECT_NE(deepspeed.error.find("it is a DeepSpeed configuration"), std::string::npos) << deepspeed.error;
  const auto accelerate = run_program({"plan", file("fsdp.yaml", "distributed_type: FSDP\nnum_processes: 2\n")});
  EXPECT_NE(accelerate.error.find("it is an accelerate configuration"), std::string::npos) << accelerate.error;
  const auto handed = run_program({"plan", file("run.sh", "accelerate launch train.py keys.yaml\n")});
  EXPECT_EQ(handed.exit_code, 1);
  EXPECT_NE(handed.error.find("the script's keys are in keys.yaml"), std::string::npos) << handed.error;
}

// Planned as what its name tells of, on the command line as in a file, and said; trained only by its own weights.
TEST_F(ForeignRecipe, AModelOfSomebodysOwnIsPlannedByItsNameAndNeverTrainedSo) {
  const std::string said = "'somebody/Qwen2.5-0.5B-support' is taken for Qwen/Qwen2.5-0.5B, by its name";
  std::string text = kAxolotl;
  text.replace(text.find("Qwen/Qwen2.5-0.5B"), 17, "somebody/Qwen2.5-0.5B-support");
  const std::string recipe = file("r.yml", text);
  for (const char* command : {"plan", "fit"}) {
    const auto by_name = run_program({command, "somebody/Qwen2.5-0.5B-support", "--gpu", "RTX 4090", "--method", "lora"});
    EXPECT_EQ(by_name.exit_code, 0) << by_name.error;
    EXPECT_NE(by_name.error.find("snug: " + said), std::string::npos) << by_name.error;
    const auto by_recipe = run_program({command, recipe, "--gpu", "RTX 4090"});
    EXPECT_EQ(by_recipe.exit_code, 0) << by_recipe.error;
    EXPECT_NE(by_recipe.error.find("its model " + said), std::string::npos) << by_recipe.error;
  }
  for (const std::string& what : {recipe, std::string("somebody/Qwen2.5-0.5B-support")}) {
    const auto train = run_program(
        {"train", what, "--data", file("d.jsonl", "{\"text\": \"a\"}\n"), "--output-dir", (directory_ / "out").string()});
    EXPECT_EQ(train.exit_code, 1);
    EXPECT_EQ(train.error.find("is taken for"), std::string::npos) << train.error;
    EXPECT_NE(train.error.find("somebody/Qwen2.5-0.5B-support"), std::string::npos) << train.error;
  }
}

// A run that goes on from a directory that is not here; a name that nobody knows is not a tokenizer's.
TEST_F(ForeignRecipe, ACheckpointOfSomebodysIsPlannedByItsTokenizer) {
  const std::string keys =
      ", \"tokenizer_name_or_path\": \"Qwen/Qwen2.5-0.5B\", \"per_device_train_batch_size\": 2, \"dataset_name\": \"a\"}";
  const auto plan =
      run_program({"plan", file("dpo.json", "{\"model_name_or_path\": \"./output/sft\"" + keys), "--gpu", "RTX 4090"});
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
  EXPECT_NE(plan.error.find("its model './output/sft' is taken for Qwen/Qwen2.5-0.5B, whose tokenizer it has"),
            std::string::npos)
      << plan.error;
  const auto named = run_program({"plan", file("sft.json", "{\"model_name_or_path\": \"nobody/Nothing-1B\"" + keys)});
  EXPECT_EQ(named.exit_code, 1);
  EXPECT_EQ(named.error.find("is taken for"), std::string::npos) << named.error;
}

// … or from what another recipe beside it leaves, stage by stage.
TEST_F(ForeignRecipe, AStageIsPlannedByTheModelThatTheFirstBeganWith) {
  file("README.md", "");
  const std::string sft = file("sft.yaml", "base_model: Qwen/Qwen2.5-0.5B\nadapter: lora\noutput_dir: ./out/sft\n");
  const std::string merge = file("merge.yaml", "model_name_or_path: out/sft\nexport_dir: models/merged\n");
  const std::string dpo = file("dpo.json", R"({"model_name_or_path": "models/merged", "per_device_train_batch_size": 2,
                                              "dataset_name": "a"})");
  const auto plan = run_program({"plan", dpo, "--gpu", "RTX 4090"});
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
  const std::string said = "its model 'models/merged' is made by " + merge + ", 'out/sft' is made by " + sft +
                           " from Qwen/Qwen2.5-0.5B: planned as that";
  EXPECT_NE(plan.error.find(said), std::string::npos) << plan.error;
}

TEST_F(ForeignRecipe, AModelThatIsNotKnownLeavesTheKeysTold) {
  std::string text = kAxolotl + "relora: true\n";
  text.replace(text.find("Qwen/Qwen2.5-0.5B"), 17, "nobody/Nothing-1B");
  const std::string where = file("r.yml", text);
  const auto result = run_program({"plan", where, "--gpu", "RTX-4090"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.error.find("not planned: relora"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("give the model's own config.json"), std::string::npos) << result.error;
  EXPECT_EQ(run_program({"plan", where, "Qwen/Qwen2.5-0.5B", "--gpu", "RTX-4090"}).exit_code, 0);
}

TEST_F(ForeignRecipe, TheJsonTellsTheFateOfEachKey) {
  const auto result = run_program(
      {"plan", file("r.yml", kAxolotl + "relora: true\nmine: 1\nwandb_project: x\n"), "--gpu", "RTX-4090", "--json"});
  const Json json = Json::parse(result.output);
  const Json& of = json["file"];
  EXPECT_EQ(of["trainer"], "axolotl");
  EXPECT_EQ(of["not_planned"], Json::array({"relora"}));
  EXPECT_EQ(of["not_known"], Json::array({"mine"}));
  EXPECT_EQ(of["assumed"]["packing"], "false");
  const auto fate = [&](const std::string& name) {
    for (const Json& key : of["keys"])
      if (key["name"] == name) return key["fate"].get<std::string>();
    return std::string("not there");
  };
  EXPECT_EQ(fate("sequence_len"), "understood");
  EXPECT_EQ(fate("wandb_project"), "without effect");
}

// A template of the trainer's own words conversations otherwise than the model's does.
TEST_F(ForeignRecipe, TrainTellsThatATemplateIsNotFollowed) {
  const std::string recipe = file(
      "lf.yaml",
      "model_name_or_path: meta-llama/Llama-3.2-1B\nstage: sft\nfinetuning_type: lora\ntemplate: llama3\ncutoff_len: 64\n");
  const std::string data = file("data.jsonl", "{\"text\": \"a\"}\n");
  EXPECT_NE(run_program({"train", recipe, "--data", data}).error.find("template llama3 is not followed"), std::string::npos);
  EXPECT_EQ(run_program({"train", recipe, "--data", data, "--chat-template", "chatml"}).error.find("not followed"),
            std::string::npos);
  EXPECT_EQ(run_program({"plan", recipe}).error.find("not followed"), std::string::npos);
}

TEST_F(ForeignRecipe, TrainRefusesByNameWhatItCannotDo) {
  const std::string data = file("data.jsonl", "{\"text\": \"a\"}\n");
  const auto result = run_program({"train", file("r.yml", kAxolotl + "relora: true\nmine: 1\n"), "--data", data});
  EXPECT_EQ(result.exit_code, 1);
  for (const char* part : {"snug: relora: ", "snug: mine: not known", "this axolotl recipe asks for what snug does not do"})
    EXPECT_NE(result.error.find(part), std::string::npos) << part << "\n" << result.error;
  EXPECT_EQ(result.error.find("datasets: "), std::string::npos) << result.error;
}

}  // namespace

}  // namespace snug::cli_tests
