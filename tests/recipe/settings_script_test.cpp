// Settings that name no model: what the script says that reads them.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "recipe/support_dialects.h"

namespace snug::testing {

namespace {

constexpr const char* kWithoutModel =
    "training:\n  batch_size: 3\n  grad_accum: 16\n  max_seq_length: 640\n  epochs: 1\nlora:\n  r: 24\n  alpha: 48\n";

std::string trainer_of(const std::string& model, const std::string& says = "") {
  return "import yaml\n" + says + "model = AutoModelForCausalLM.from_pretrained('" + model +
         "', quantization_config=BitsAndBytesConfig(load_in_4bit=True))\nmodel = get_peft_model(model, LoraConfig(r=8))\n"
         "Trainer(model=model, args=TrainingArguments('out', per_device_train_batch_size=9)).train()\n";
}

class SettingsScript : public RecipeFolder {};

TEST_F(SettingsScript, that_speaks_of_the_file_says_its_model) {
  put("README.md", "");
  put("configs/dpo.yaml", kWithoutModel);
  put("src/tune/train.py", trainer_of("Qwen/Qwen2.5-0.5B", "settings = yaml.safe_load(open('configs/dpo.yaml'))\n"));
  put("src/other.py", trainer_of("google/gemma-2b"));
  const ForeignRecipe recipe = read("configs/dpo.yaml");
  ASSERT_FALSE(recipe.models.empty());
  EXPECT_EQ(recipe.models.front(), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.method, Method::lora);
  EXPECT_TRUE(recipe.recipe.quantize.in_4bit);
  // The file's own values hold.
  EXPECT_EQ(recipe.recipe.batch, 3);
  EXPECT_EQ(recipe.recipe.lora.r, 24);
  EXPECT_EQ(recipe.recipe.seq_len, 640);
  const std::string script = (directory_ / "src/tune/train.py").lexically_normal().string();
  EXPECT_TRUE(says(recipe, "it names no model: taken from " + script + ", which reads it"));
}

TEST_F(SettingsScript, that_alone_trains_beside_it_is_the_one) {
  put("run.json",
      R"({"per_device_train_batch_size": 4, "gradient_accumulation_steps": 8, "learning_rate": 1e-3, "output_dir": "o"})");
  put("tune.py", trainer_of("THUDM/chatglm-6b"));
  put("data.py", "print('reads nothing')\n");
  const ForeignRecipe recipe = read("run.json");
  ASSERT_FALSE(recipe.models.empty());
  EXPECT_EQ(recipe.models.front(), "THUDM/chatglm-6b");
  EXPECT_EQ(recipe.recipe.batch, 4);
  put("second.py", trainer_of("google/gemma-2b"));
  EXPECT_TRUE(read("run.json").models.empty());
}

TEST_F(SettingsScript, none_is_taken_of_several_that_differ_and_where_the_file_names_its_model) {
  put("README.md", "");
  put("configs/dpo.yaml", kWithoutModel);
  put("a.py", trainer_of("Qwen/Qwen2.5-0.5B", "path = 'configs/dpo.yaml'\n"));
  put("b.py", trainer_of("google/gemma-2b", "path = 'dpo.yaml'\n"));
  EXPECT_TRUE(read("configs/dpo.yaml").models.empty());
  put("configs/dpo.yaml", std::string("model:\n  name: EleutherAI/pythia-70m\n") + kWithoutModel);
  EXPECT_EQ(read("configs/dpo.yaml").models.front(), "EleutherAI/pythia-70m");
}

// TrlParser's scripts: the adapter stands in the script, the rest in the file that names the model.
TEST_F(SettingsScript, says_how_it_is_trained_where_the_file_leaves_that_open) {
  const std::string script =
      "@dataclass\nclass ScriptArguments:\n    model_id: str = field(default=None)\n    max_seq_len: int = "
      "field(default=512)\n"
      "parser = TrlParser((ScriptArguments, TrainingArguments))\nscript_args, training_args = "
      "parser.parse_args_and_config()\n"
      "model = AutoModelForCausalLM.from_pretrained(script_args.model_id)\n"
      "trainer = SFTTrainer(model=model, args=training_args, peft_config=LoraConfig(r=24, target_modules='all-linear'),\n"
      "                     max_seq_length=script_args.max_seq_len)\ntrainer.train()\n";
  const std::string settings =
      "model_id: Qwen/Qwen2.5-0.5B\ndataset_path: data\nmax_seq_len: 768\nper_device_train_batch_size: 3\noutput_dir: o\n"
      "learning_rate: 2e-4\n";
  put("README.md", "");
  put("run.yaml", settings);
  EXPECT_EQ(read("run.yaml").recipe.method, Method::full);
  put("train.py", script);
  const ForeignRecipe recipe = read("run.yaml");
  EXPECT_EQ(model_of(recipe), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.method, Method::lora);
  EXPECT_EQ(recipe.recipe.lora.r, 24);
  EXPECT_EQ(recipe.recipe.seq_len, 768);
  EXPECT_EQ(recipe.recipe.batch, 3);
  EXPECT_TRUE(says(recipe, "it does not say how the model is trained: taken from " +
                               (directory_ / "train.py").lexically_normal().string() +
                               ", which is the only script beside it that trains"));
  // The file's word holds; a script of another model is not its.
  put("run.yaml", settings + "use_peft: false\n");
  EXPECT_EQ(read("run.yaml").recipe.method, Method::full);
  put("run.yaml", settings);
  put("train.py", trainer_of("google/gemma-2b"));
  EXPECT_EQ(read("run.yaml").recipe.method, Method::full);
}

// An adapter is told of here, its bits and precision in the script.
TEST_F(SettingsScript, says_in_which_precision_where_the_file_leaves_that_open) {
  put("README.md", "");
  put("sft.yaml", "base_model: Qwen/Qwen2.5-0.5B\nmax_seq_len: 768\nbatch_size: 3\nlora_r: 24\nlearning_rate: 1e-4\n");
  const std::string loads =
      "s = yaml.safe_load(open('sft.yaml'))\nbits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype="
      "torch.bfloat16)\nmodel = AutoModelForCausalLM.from_pretrained(s['base_model'], quantization_config=bits)\n"
      "model = get_peft_model(model, LoraConfig(r=s['lora_r']))\n"
      "Trainer(model=model, args=TrainingArguments('o', bf16=True, per_device_train_batch_size=9)).train()\n";
  put("tune.py", loads);
  const ForeignRecipe recipe = read("sft.yaml");
  EXPECT_EQ(model_of(recipe), "Qwen/Qwen2.5-0.5B");
  EXPECT_TRUE(recipe.recipe.quantize.in_4bit);
  EXPECT_TRUE(recipe.recipe.bf16);
  EXPECT_EQ(recipe.recipe.lora.r, 24);
  EXPECT_EQ(recipe.recipe.batch, 3);
  EXPECT_EQ(recipe.recipe.seq_len, 768);
  EXPECT_TRUE(says(recipe, "it does not say in which precision: taken from " +
                               (directory_ / "tune.py").lexically_normal().string() + ", which reads it"));
  put("sft.yaml", "base_model: Qwen/Qwen2.5-0.5B\nbatch_size: 3\nlora_r: 24\nlearning_rate: 1e-4\nfp16: true\n");
  EXPECT_FALSE(read("sft.yaml").recipe.quantize.in_4bit);
}

// … as does the command that hands it to a script, which knows it by no name; also where its keys are TRL's alone.
TEST_F(SettingsScript, is_found_by_the_command_that_hands_it_on) {
  put("README.md", "");
  put("sft/tune.py",
      "args, training = parser.parse_json_file(json_file=sys.argv[1])\n"
      "model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path, load_in_8bit=args.train_in_8bit)\n"
      "model = get_peft_model(model, LoraConfig(r=12, target_modules='all-linear'))\n"
      "Trainer(model=model, args=training).train()\n");
  put("sft/run.sh", "cd sft\npython tune.py configs/boolq.json\n");
  put("sft/configs/boolq.json",
      R"({"model_name_or_path": "facebook/opt-1.3b", "dataset_name": "boolq", "train_in_8bit": true, "output_dir": "o",
          "per_device_train_batch_size": 32, "fp16": true})");
  const ForeignRecipe recipe = read("sft/configs/boolq.json");
  EXPECT_EQ(model_of(recipe), "facebook/opt-1.3b");
  EXPECT_EQ(recipe.recipe.method, Method::lora);
  EXPECT_EQ(recipe.recipe.lora.r, 12);
  EXPECT_EQ(recipe.recipe.batch, 32);
  EXPECT_TRUE(says(recipe, "it does not say how the model is trained: taken from " +
                               (directory_ / "sft/run.sh").lexically_normal().string() + ", which hands it to its trainer"));
}

// A group of Hydra's stands beside others, which the file above takes in.
TEST_F(SettingsScript, a_group_is_read_with_the_file_that_takes_it_in) {
  put("conf/config.yaml", "defaults:\n  - hf: base\n  - override /training: sft\n  - _self_\nseed: 3\n");
  put("conf/hf/base.yaml", "model:\n  name: Qwen/Qwen2.5-0.5B\n");
  put("conf/training/sft.yaml", kWithoutModel);
  put("conf/training/other.yaml", kWithoutModel);
  const ForeignRecipe recipe = read("conf/training/sft.yaml");
  EXPECT_EQ(model_of(recipe), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.lora.r, 24);
  EXPECT_TRUE(says(recipe, "it is a group of " + (directory_ / "conf/config.yaml").lexically_normal().string() +
                               ": read with all that takes in"));
  EXPECT_EQ(model_of(read("conf/training/other.yaml")), "none");
  put("conf/second.yaml", "defaults:\n  - training: sft\n");
  EXPECT_EQ(model_of(read("conf/training/sft.yaml")), "none");
}

// One script reads both; what reads them is not to be found, or not to be read.
TEST_F(SettingsScript, a_file_of_the_model_beside_it_says_the_model) {
  put("README.md", "");
  put("configs/sft.yaml", kWithoutModel);
  put("configs/eval.yaml", "model_name_or_path: google/gemma-2b\n");
  EXPECT_EQ(model_of(read("configs/sft.yaml")), "none");
  put("configs/model.json", R"({"hidden_size": 64})");
  EXPECT_EQ(model_of(read("configs/sft.yaml")), "none");
  put("configs/model.yaml",
      "model_name_or_path: Qwen/Qwen2.5-0.5B\ntorch_dtype: bfloat16\nmax_seq_length: 512\nlearning_rate: 9\n");
  const ForeignRecipe recipe = read("configs/sft.yaml");
  EXPECT_EQ(model_of(recipe), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.seq_len, 640);
  EXPECT_NE(recipe.recipe.learning_rate, 9);
  EXPECT_TRUE(says(recipe, "it names no model: taken from " +
                               (directory_ / "configs/model.yaml").lexically_normal().string() +
                               ", which lies beside it and names one"));
}

// All of its names are the Trainer's; the method is the model's settings'.
TEST_F(SettingsScript, the_trainers_names_alone_leave_the_model_to_others) {
  put("README.md", "");
  put("configs/training_config.yaml", "output_dir: o\nper_device_train_batch_size: 3\nfp16: true\nlearning_rate: 2e-4\n");
  EXPECT_FALSE(read_foreign_recipe("output_dir: o\nper_device_train_batch_size: 3\n", "lonely.yaml"));
  put("configs/model_config.yaml", "base_model: Qwen/Qwen2.5-0.5B\nquantization:\n  load_in_4bit: true\nlora:\n  r: 8\n");
  const ForeignRecipe recipe = read("configs/training_config.yaml");
  EXPECT_EQ(model_of(recipe), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.batch, 3);
  EXPECT_TRUE(recipe.recipe.quantize.in_4bit);
  EXPECT_EQ(recipe.recipe.lora.r, 8);
}

TEST_F(SettingsScript, of_what_is_not_on_disk_or_reads_itself_has_an_end) {
  EXPECT_TRUE(foreign(kWithoutModel, (directory_ / "gone.yaml").string()).models.empty());
  put("README.md", "");
  put("conf.yaml", kWithoutModel);
  put("broken.py", "x = 'conf.yaml\n");
  for (int i = 0; i < 300; ++i) put("p" + std::to_string(i) + "/m.py", "import m\nopen('conf.yaml')\n");
  EXPECT_TRUE(read("conf.yaml").models.empty());
}

}  // namespace

}  // namespace snug::testing
