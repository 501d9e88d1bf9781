// Python scripts whose values stand in a file of settings, however they come to it; Hydra's and verl's words.

#include <gtest/gtest.h>

#include "recipe/support_dialects.h"

namespace snug::testing {

namespace {

class PythonSettings : public RecipeFolder {
 protected:
  ForeignRecipe read(const std::string& script, const std::string& name = "scripts/train.py") const {
    put(name, script);
    return foreign(script, (directory_ / name).string());
  }
};

const std::string kSettings = "model:\n  name: google/gemma-2b\n  load_in_4bit: true\ntraining:\n  rows: 3\n  steps: 5\n";
const std::string kTraining =
    "model = AutoModelForCausalLM.from_pretrained(cfg['model']['name'])\n"
    "t = cfg['training']\n"
    "trainer = Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=t['rows'], "
    "gradient_accumulation_steps=t.get('steps', 1)))\n"
    "with open(run / 'used.json', 'w') as f:\n  json.dump(cfg, f)\n";

void is_of_the_settings(const ForeignRecipe& recipe, const std::string& how) {
  ASSERT_FALSE(recipe.models.empty()) << how;
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b") << how;
  EXPECT_EQ(recipe.recipe.batch, 3) << how;
  EXPECT_EQ(recipe.recipe.accumulation, 5) << how;
}

TEST_F(PythonSettings, are_followed_through_functions_paths_and_handles) {
  put("configs/run.yaml", kSettings);
  const std::string parser = "p = argparse.ArgumentParser()\np.add_argument('--config', default='configs/run.yaml')\n";
  const std::string by_function = "def load(path):\n  with open(path) as f:\n    return yaml.safe_load(f)\n" + parser +
                                  "args = p.parse_args()\ncfg = load(args.config)\n";
  const std::string by_steps =
      "def load(path):\n  with open(path, 'r') as f:\n    cfg = yaml.safe_load(f.read())\n  return cfg\n" + parser +
      "cfg = load(p.parse_args().config)\ncfg = load(args.config)\n";
  for (const std::string& head :
       {by_function, by_steps, std::string("cfg = yaml.safe_load((ROOT / 'configs' / 'run.yaml').read_text())\n"),
        std::string(
            "CONFIG = Path(__file__).resolve().parents[1] / 'configs' / 'run.yaml'\ncfg = yaml.safe_load(CONFIG.open())\n"),
        std::string("with Path(os.path.join(here, 'configs', 'run.yaml')).open() as f:\n  cfg = yaml.load(f, Loader=L)\n"),
        std::string("def both():\n  return yaml.safe_load(open('configs/run.yaml')), 1\ncfg, n = both()\n")})
    is_of_the_settings(read(head + kTraining), head);
}

// What a function returns is of the call: its file, its conditions; by way of another function, and asked from a module.
TEST_F(PythonSettings, are_of_the_call_that_asks) {
  put("configs/model.yaml", "base: google/gemma-2b\n");
  put("configs/training.yaml", "per_device_train_batch_size: 3\nlogging_dir: x\n");
  put("lab/load.py",
      "def load(name):\n  with open(os.path.join('configs', f'{name}.yaml')) as f:\n    return yaml.safe_load(f)\n"
      "def rows(kind):\n  if kind == 'large':\n    return 7\n  return 2\n");
  put("lab/model.py",
      "from lab.load import load\ndef build():\n  return AutoModelForCausalLM.from_pretrained(load('model')['base'])\n");
  const std::string head =
      "from lab.load import load, rows\nfrom lab.model import build\nmodel = build()\nt = load('training')\n";
  const ForeignRecipe whole = read(head + "Trainer(model=model, args=TrainingArguments(**t)).train()\n");
  EXPECT_EQ(model_of(whole), "google/gemma-2b");
  EXPECT_EQ(whole.recipe.batch, 3);
  for (const auto& [words, batch] : std::initializer_list<std::pair<const char*, int64_t>>{
           {"**{k: v for k, v in t.items() if k not in ['logging_dir']}", 3},
           {"**{key: value for key, value in t.items() if key in ('logging_dir',)}", 8},
           {"**{k: v for k, v in t.items() if v is not None}", 3},
           {"**{k: v for k, v in t.items() if k in supported}", 3},
           {"**{'per_device_train_batch_size': 5, **t}", 3},
           {"**{**t, 'per_device_train_batch_size': 5}", 5},
           {"per_device_train_batch_size=rows('small'), gradient_accumulation_steps=rows('large')", 2}}) {
    const ForeignRecipe recipe = read(head + "Trainer(model=model, args=TrainingArguments('o', " + words + ")).train()\n");
    EXPECT_EQ(recipe.recipe.batch, batch) << words;
    EXPECT_EQ(recipe.recipe.accumulation, batch == 2 ? 7 : 1) << words;
  }
}

TEST_F(PythonSettings, make_objects) {
  put("configs/run.yaml", "base: google/gemma-2b\nrows: 3\n");
  put("src/lab/settings.py",
      "@dataclass\nclass Cfg:\n  base: str\n  rows: int = 1\n  steps: int = 5\n  @classmethod\n  def of(cls, path):\n"
      "    return cls(**yaml.safe_load(open(path)))\n");
  const std::string train =
      "model = AutoModelForCausalLM.from_pretrained(cfg.base)\n"
      "Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=cfg.rows, "
      "gradient_accumulation_steps=cfg.steps))\n";
  is_of_the_settings(read("from lab.settings import Cfg\ncfg = Cfg(**yaml.safe_load(open('configs/run.yaml')))\n" + train),
                     "");
  const ForeignRecipe made = read("from lab.settings import Cfg\ncfg = Cfg.of('configs/run.yaml')\n" + train);
  ASSERT_FALSE(made.models.empty());
  EXPECT_EQ(made.models.front(), "google/gemma-2b");
  EXPECT_EQ(made.recipe.batch, 3);
}

// Where only the command line says which file: the one that lies there, which is told; of two neither.
TEST_F(PythonSettings, that_the_command_names_are_the_only_ones_beside_it) {
  const std::string head =
      "p = argparse.ArgumentParser()\np.add_argument('--config', required=True)\nargs = p.parse_args()\n"
      "cfg = yaml.safe_load(open(args.config))\n";
  put("config/run.yaml", kSettings);
  put("config/ds_config.json", R"({"model": "a/b-1b", "zero_optimization": {"stage": 2}})");
  const ForeignRecipe recipe = read(head + kTraining);
  is_of_the_settings(recipe, "");
  EXPECT_TRUE(says(recipe,
                   "which file of settings is meant the script does not say: the only one beside it is taken, "
                   "../config/run.yaml"));
  put("config/other.yaml", "model:\n  name: google/gemma-7b\n");
  EXPECT_TRUE(read(head + kTraining).models.empty());
}

// What the script makes of them is not seen: by the names that they have.
TEST_F(PythonSettings, are_taken_by_their_names_where_the_calls_say_no_model) {
  put("configs/run.yaml", "base_model: google/gemma-2b\nlora_r: 4\nbatch_size: 3\nmax_length: 96\n");
  const ForeignRecipe recipe = read(
      "CONFIG = 'configs/run.yaml'\nbuilt = builders[kind](CONFIG)\n"
      "trainer = Trainer(model=built.model, args=TrainingArguments('o', per_device_train_batch_size=built.rows))\n");
  ASSERT_FALSE(recipe.models.empty());
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.lora.r, 4);
  EXPECT_EQ(recipe.recipe.batch, 3);
  EXPECT_EQ(recipe.recipe.seq_len, 96);
  EXPECT_TRUE(says(recipe,
                   "what the script makes of its settings is not seen: taken by the names that they have in "
                   "configs/run.yaml"));
}

// The file that the text above the code shows, or Hydra's, with its groups.
TEST_F(PythonSettings, are_those_that_the_script_shows) {
  put("configs/gpu/run.yaml", "model_name: google/gemma-2b\nlora_r: 4\nbatch_size: 3\n");
  const std::string train = "trainer = Trainer(model=build(config), args=TrainingArguments('o', seed=1))\n";
  ForeignRecipe recipe =
      read("\"\"\"Trains.\n\n    python scripts/train.py --config configs/gpu/run.yaml\n\"\"\"\n" + train);
  ASSERT_FALSE(recipe.models.empty());
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 3);
  put("conf/sft.yaml", "defaults:\n  - model: small\nlora_r: 4\nbatch_size: 5\n");
  put("conf/model/small.yaml", "model_name_or_path: google/gemma-7b\n");
  recipe = read("@hydra.main(version_base=None, config_path='../conf', config_name='sft')\ndef main(cfg):\n  " + train,
                "src/train.py");
  ASSERT_FALSE(recipe.models.empty());
  EXPECT_EQ(recipe.models.front(), "google/gemma-7b");
  EXPECT_EQ(recipe.recipe.batch, 5);
}

TEST_F(PythonSettings, of_verl_and_hydra_are_words_of_the_command) {
  const ForeignRecipe grpo = foreign(
      "M=Qwen/Qwen2.5-0.5B\npython3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.max_prompt_length=512 "
      "data.max_response_length=1024 actor_rollout_ref.model.path=$M actor_rollout_ref.actor.optim.lr=1e-6 "
      "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 +trainer.n_gpus_per_node=8 "
      "actor_rollout_ref.model.enable_gradient_checkpointing=True reward_model.path=a/judge-7b\n",
      "run.sh");
  ASSERT_FALSE(grpo.models.empty());
  EXPECT_EQ(grpo.models.front(), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(grpo.recipe.batch, 4);
  EXPECT_EQ(grpo.recipe.seq_len, 1536);
  EXPECT_EQ(grpo.recipe.method, Method::full);
  EXPECT_EQ(grpo.gpus, 8);
  EXPECT_TRUE(grpo.recipe.gradient_checkpointing);
  const ForeignRecipe sft = foreign(
      "torchrun --nproc_per_node=2 -m verl.trainer.fsdp_sft_trainer data.micro_batch_size_per_gpu=4 data.max_length=2048 "
      "model.partial_pretrain=Qwen/Qwen2.5-0.5B model.lora_rank=16 optim.lr=1e-5\n",
      "run.sh");
  ASSERT_FALSE(sft.models.empty());
  EXPECT_EQ(sft.models.front(), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(sft.recipe.lora.r, 16);
  EXPECT_EQ(sft.recipe.batch, 4);
  EXPECT_EQ(sft.recipe.seq_len, 2048);
}

// verl/workers/fsdp_workers.py: weights in fp32, bf16 by FSDP over all GPUs; a micro-batch without "per_gpu" is all GPUs'.
TEST_F(PythonSettings, of_verl_have_its_workers_defaults) {
  const std::string start =
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B data.max_prompt_length=512 "
      "data.max_response_length=1024 actor_rollout_ref.actor.ppo_micro_batch_size=64 trainer.nnodes=2 ";
  const ForeignRecipe many = foreign(start + "trainer.n_gpus_per_node=8\n", "run.sh");
  EXPECT_TRUE(many.recipe.bf16);
  EXPECT_EQ(many.recipe.batch, 4);
  EXPECT_EQ(key_named(many, "torch_dtype").value, "float32");
  EXPECT_EQ(key_named(many, "fsdp").value, "full_shard");
  EXPECT_TRUE(says(many, "verl: weights in fp32, gathered by FSDP in bf16, as it does where nothing says otherwise"));
  const ForeignRecipe megatron =
      foreign(start + "trainer.n_gpus_per_node=8 actor_rollout_ref.actor.strategy=megatron\n", "run.sh");
  EXPECT_TRUE(std::ranges::none_of(megatron.keys, [](const ForeignKey& key) { return key.name == "fsdp"; }));
}

// What Hydra gives the function that it starts, through a function of the script's own.
TEST_F(PythonSettings, hydras_are_the_first_parameters) {
  put("scripts/config/run.yaml", "family: small\nrows: 6\n");
  put("scripts/config/models.yaml", "small: {key: google/gemma-2b}\nlarge: {key: google/gemma-7b}\n");
  const ForeignRecipe recipe = read(
      "def of_family(name):\n    with open('config/models.yaml') as f:\n        all = yaml.safe_load(f)\n"
      "    return all[name]\n@hydra.main(version_base=None, config_path='config', config_name='run')\ndef main(cfg):\n"
      "    key = of_family(cfg.family)['key']\n    model = AutoModelForCausalLM.from_pretrained(key)\n"
      "    Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=cfg.rows)).train()\nmain()\n");
  ASSERT_FALSE(recipe.models.empty());
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 6);
}

// "model=large" of the command chooses another file of Hydra's group, "rows=6" another value of a key: whether the script's
// use of them is seen or not.
TEST_F(PythonSettings, of_hydras_groups_are_those_that_the_command_chooses) {
  put("conf/run.yaml", "defaults:\n  - _self_\n  - model: blank\nrows: 2\nmax_length: 96\n");
  put("conf/model/blank.yaml", "name: ???\n");
  put("conf/model/large.yaml", "name: google/gemma-7b\nlora_r: 12\n");
  put("conf/tune/small.yaml", "r: 3\n");
  const std::string main = "@hydra.main(version_base=None, config_path='conf', config_name='run')\ndef main(cfg):\n  ";
  put("train.py", main +
                      "model = AutoModelForCausalLM.from_pretrained(cfg.model.name)\n"
                      "  model = get_peft_model(model, LoraConfig(r=cfg.tune.r))\n"
                      "  Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=cfg.rows)).train()\n"
                      "main()\n");
  put("seen.py", main + "build(cfg)\n  Trainer(model=make(cfg), args=arguments_of(cfg)).train()\nmain()\n");
  const auto started = [&](const std::string& command) { return foreign(command, (directory_ / "run.sh").string()); };
  const ForeignRecipe recipe = started("python -u train.py model=large rows=6 +tune=small\n");
  EXPECT_EQ(model_of(recipe), "google/gemma-7b");
  EXPECT_EQ(recipe.recipe.batch, 6);
  EXPECT_EQ(recipe.recipe.lora.r, 3);
  const ForeignRecipe unseen = started("python seen.py model=large max_length=48\n");
  EXPECT_EQ(model_of(unseen), "google/gemma-7b");
  EXPECT_EQ(unseen.recipe.seq_len, 48);
  EXPECT_EQ(unseen.recipe.lora.r, 12);
  EXPECT_EQ(model_of(started("python -u train.py model=none rows=6\n")), "none");
}

// "experiment=ft/x" takes other files of other groups, but where the command chooses one; nothing of the script is seen to
// train.
TEST_F(PythonSettings, of_hydras_experiments_stand_at_the_top) {
  put("README.md", "");
  put("src/train.py",
      "import hydra\n@hydra.main(version_base=None, config_path='../configs', config_name='train')\ndef main(cfg):\n  "
      "go(cfg)\n"
      "main()\n");
  put("configs/train.yaml",
      "defaults:\n  - _self_\n  - model: a\n  - trainer: t\n  - experiment: null\nseed: 3\nmax_length: 128\n");
  put("configs/model/a.yaml", "model_args:\n  pretrained_model_name_or_path: google/gemma-2b\n");
  put("configs/model/b.yaml", "model_args:\n  pretrained_model_name_or_path: google/gemma-7b\n");
  put("configs/trainer/t.yaml", "args:\n  per_device_train_batch_size: 8\n  gradient_accumulation_steps: 4\n  bf16: true\n");
  put("configs/experiment/ft/x.yaml",
      "# @package _global_\ndefaults:\n  - override /model: b\ntrainer:\n  args:\n    per_device_train_batch_size: 6\n"
      "max_length: 96\n");
  const auto started = [&](const std::string& words) {
    return foreign("python src/train.py " + words + " task_name=x\n", (directory_ / "run.sh").string());
  };
  const ForeignRecipe plain = started("seed=1");
  EXPECT_EQ(model_of(plain), "google/gemma-2b");
  EXPECT_EQ(plain.recipe.batch, 8);
  EXPECT_EQ(plain.recipe.accumulation, 4);
  EXPECT_TRUE(plain.recipe.bf16);
  EXPECT_TRUE(says(plain,
                   "what train.py makes of its settings is not seen: taken by the names that they have in "
                   "configs/train.yaml"));
  const ForeignRecipe recipe = started("experiment=ft/x trainer.args.gradient_accumulation_steps=2");
  EXPECT_EQ(model_of(recipe), "google/gemma-7b");
  EXPECT_EQ(recipe.recipe.batch, 6);
  EXPECT_EQ(recipe.recipe.accumulation, 2);
  EXPECT_EQ(recipe.recipe.seq_len, 96);
  EXPECT_EQ(model_of(started("experiment=ft/x model=a")), "google/gemma-2b");
  EXPECT_EQ(model_of(started("experiment=ft/none model=b")), "google/gemma-7b");
  // The same where the script is seen to train.
  put("src/train.py",
      "@hydra.main(version_base=None, config_path='../configs', config_name='train')\ndef main(cfg):\n"
      "  model = AutoModelForCausalLM.from_pretrained(cfg.model.model_args.pretrained_model_name_or_path)\n"
      "  Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=cfg.trainer.args."
      "per_device_train_batch_size, gradient_accumulation_steps=cfg.trainer.args.gradient_accumulation_steps)).train()\n"
      "main()\n");
  const ForeignRecipe seen = started("experiment=ft/x model=a");
  EXPECT_EQ(model_of(seen), "google/gemma-2b");
  EXPECT_EQ(seen.recipe.batch, 6);
  EXPECT_EQ(seen.recipe.accumulation, 4);
  EXPECT_EQ(started("experiment=ft/x trainer.args.gradient_accumulation_steps=2").recipe.accumulation, 2);
}

// Of several commands that which is called so trains, however many flags another has.
TEST_F(PythonSettings, commands_that_are_called_so_train) {
  put("finetune.py",
      "model = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\nTrainer(model=model, "
      "args=TrainingArguments('o'))\n");
  const std::string script =
      "python finetune.py\npython make_shards.py --model_name a/b-7b --out o --size 2GB --push --private\n";
  EXPECT_EQ(foreign(script, (directory_ / "run.sh").string()).models.front(), "google/gemma-2b");
}

}  // namespace

}  // namespace snug::testing
