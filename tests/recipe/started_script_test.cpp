// Shell scripts whose command starts a Python script that lies beside them: its parser, its defaults and its calls say what
// the flags do.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "recipe/dialects/changes.h"
#include "recipe/support_dialects.h"
#include "sanitized.h"

namespace snug::testing {

namespace {

class StartedScript : public RecipeFolder {
 protected:
  std::string where() const { return (directory_ / "run.sh").string(); }
  ForeignRecipe read(const std::string& script) const { return foreign(script, where()); }
};

// A parser of the author's own words, all of which go somewhere.
const std::string kOwnParser = R"(
import argparse
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
from peft import LoraConfig, get_peft_model
parser = argparse.ArgumentParser()
parser.add_argument("--base", type=str, default="Qwen/Qwen2.5-0.5B")
parser.add_argument("--rank", "--lora-rank", type=int, default=24)
parser.add_argument("--bs", type=int, default=3)
parser.add_argument("--accum", type=int, default=2, dest="accumulation")
parser.add_argument("--max_len", type=int, default=640)
parser.add_argument("--no_checkpointing", action="store_false", dest="checkpointing")
parser.add_argument("--full", action="store_true")
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(args.base, torch_dtype="bfloat16")
tokenizer = AutoTokenizer.from_pretrained(args.base, model_max_length=args.max_len)
if not args.full:
    model = get_peft_model(model, LoraConfig(r=args.rank, lora_alpha=2 * args.rank, target_modules=["q_proj", "v_proj"]))
trainer = Trainer(model=model, args=TrainingArguments("out", per_device_train_batch_size=args.bs, bf16=True,
                  gradient_accumulation_steps=args.accumulation, gradient_checkpointing=args.checkpointing))
trainer.train()
)";

TEST_F(StartedScript, its_own_defaults_hold_where_no_flag_says) {
  put("train.py", kOwnParser);
  const ForeignRecipe recipe = read("python train.py --bs 5\n");
  EXPECT_EQ(recipe.models.front(), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.method, Method::lora);
  EXPECT_EQ(recipe.recipe.lora.r, 24);
  EXPECT_EQ(recipe.recipe.lora.alpha, 48);
  EXPECT_EQ(recipe.recipe.batch, 5);
  EXPECT_EQ(recipe.recipe.accumulation, 2);
  EXPECT_EQ(recipe.recipe.seq_len, 640);
  EXPECT_TRUE(recipe.recipe.gradient_checkpointing);
  EXPECT_TRUE(says(recipe, "read beside it: train.py"));
  EXPECT_TRUE(recipe.named(KeyFate::unknown).empty()) << recipe.named(KeyFate::unknown).front();
}

TEST_F(StartedScript, flags_go_where_its_parser_puts_them) {
  put("src/train.py", kOwnParser);
  const ForeignRecipe recipe = read(
      "cd ..\nMODEL=google/gemma-2b\ntorchrun --nproc_per_node 2 src/train.py --base $MODEL --lora-rank=8 --accum 7 \\\n"
      "  --no_checkpointing --max_len 96\n");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.lora.r, 8);
  EXPECT_EQ(recipe.recipe.lora.alpha, 16);
  EXPECT_EQ(recipe.recipe.accumulation, 7);
  EXPECT_EQ(recipe.recipe.seq_len, 96);
  EXPECT_FALSE(recipe.recipe.gradient_checkpointing);
  EXPECT_EQ(recipe.gpus, 2);
  EXPECT_EQ(read("python src/train.py --full --bs 1\n").recipe.method, Method::full);
}

TEST_F(StartedScript, what_only_the_shell_knows_is_not_the_default) {
  put("train.py", kOwnParser);
  const ForeignRecipe recipe = read("python train.py --base google/gemma-2b --bs $1 --rank 8\n");
  EXPECT_EQ(recipe.recipe.batch, 8);  // the Trainer's, and said:
  EXPECT_TRUE(says(recipe, "only a shell knows $1: what it stands for is not read"));
  EXPECT_EQ(recipe.recipe.lora.r, 8);
}

// As Alpaca-LoRA's: parameters of a function are the flags, and another function takes one of them by its own name.
TEST_F(StartedScript, parameters_of_a_function_are_flags_of_fire) {
  put("finetune.py", R"(
import os, fire, transformers
def train(base_model: str = "", batch_size: int = 128, micro_batch_size: int = 4, cutoff_len: int = 256, add_eos_token: bool = True,
          lora_r: int = 8, lora_target_modules=["q_proj"]):
    accumulation = batch_size // micro_batch_size
    ddp = int(os.environ.get("WORLD_SIZE", 1)) != 1
    if ddp:
        accumulation = accumulation // int(os.environ["WORLD_SIZE"])
    model = LlamaForCausalLM.from_pretrained(base_model, load_in_8bit=True)
    def tokenize(prompt, add_eos_token=True):
        return tokenizer(prompt, truncation=True, max_length=cutoff_len)
    def one(a): return tokenize(a, add_eos_token=add_eos_token)
    def two(a): return tokenize(a, add_eos_token=add_eos_token)
    def three(a): return tokenize(a, add_eos_token=add_eos_token)
    model = get_peft_model(model, LoraConfig(r=lora_r, target_modules=lora_target_modules))
    trainer = transformers.Trainer(model=model, args=transformers.TrainingArguments(
        per_device_train_batch_size=micro_batch_size, gradient_accumulation_steps=accumulation, fp16=True))
    trainer.train()
fire.Fire(train)
)");
  const std::string flags =
      " finetune.py --base_model huggyllama/llama-7b --batch_size 64 --micro_batch_size 2 --lora_target_modules "
      "'[q_proj,k_proj]'\n";
  ForeignRecipe recipe = read("python" + flags);
  EXPECT_EQ(recipe.recipe.batch, 2);
  EXPECT_EQ(recipe.recipe.accumulation, 32);
  EXPECT_EQ(recipe.recipe.seq_len, 256);
  EXPECT_EQ(recipe.recipe.lora.r, 8);
  EXPECT_EQ(recipe.recipe.lora.target_modules, (std::vector<std::string>{"q_proj", "k_proj"}));
  EXPECT_TRUE(recipe.recipe.quantize.in_8bit);
  EXPECT_EQ(read("torchrun --nproc_per_node=4" + flags).recipe.accumulation, 8);
  EXPECT_EQ(read("export WORLD_SIZE=2\npython" + flags).recipe.accumulation, 16);
}

// transformers' HfArgumentParser: the Trainer's flags by their own names, and what a class of the script's makes of
// defaults.
TEST_F(StartedScript, classes_of_arguments_have_defaults_of_their_own) {
  put("train.py", R"(
from dataclasses import dataclass, field
import transformers
@dataclass
class ModelArguments:
    model_name_or_path: str = field(default="google/gemma-2b")
@dataclass
class TrainingArguments(transformers.TrainingArguments):
    model_max_length: int = field(default=384, metadata={"help": "longest"})
    optim: str = field(default="adamw_torch")
    per_device_train_batch_size: int = field(default=6)
    use_lora: bool = False
@dataclass
class LoraArguments:
    lora_r: int = 64
    q_lora: bool = False
parser = transformers.HfArgumentParser((ModelArguments, TrainingArguments, LoraArguments))
model_args, training_args, lora_args = parser.parse_args_into_dataclasses()
model = transformers.AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path,
    quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4") if training_args.use_lora and lora_args.q_lora else None)
tokenizer = transformers.AutoTokenizer.from_pretrained(model_args.model_name_or_path, model_max_length=training_args.model_max_length)
if training_args.use_lora:
    model = get_peft_model(model, LoraConfig(r=lora_args.lora_r, target_modules=["c_attn", "q_proj"]))
trainer = Trainer(model=model, args=training_args)
)");
  ForeignRecipe recipe = read("python train.py --use_lora --gradient_accumulation_steps 9 --bf16 True\n");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.method, Method::lora);
  EXPECT_EQ(recipe.recipe.lora.r, 64);
  EXPECT_FALSE(recipe.recipe.quantize.any());
  EXPECT_EQ(recipe.recipe.batch, 6);
  EXPECT_EQ(recipe.recipe.accumulation, 9);
  EXPECT_EQ(recipe.recipe.seq_len, 384);
  EXPECT_TRUE(recipe.recipe.bf16);
  recipe = read("python train.py --use_lora True --q_lora True --model_max_length 512 --per_device_train_batch_size 1\n");
  EXPECT_TRUE(recipe.recipe.quantize.in_4bit);
  EXPECT_EQ(recipe.recipe.batch, 1);
  EXPECT_EQ(recipe.recipe.seq_len, 512);
  EXPECT_EQ(read("python train.py --learning_rate 1e-4\n").recipe.method, Method::full);
}

// TRL's own scripts: get_peft_config(model_args) is an adapter only where --use_peft says so.
TEST_F(StartedScript, options_of_trl_decide_whether_there_is_an_adapter) {
  put("sft.py", R"(
from trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser, get_peft_config
script_args, training_args, model_args = TrlParser((ScriptArguments, SFTConfig, ModelConfig)).parse_args_and_config()
trainer = SFTTrainer(model=model_args.model_name_or_path, args=training_args, peft_config=get_peft_config(model_args))
)");
  const std::string flags =
      "python sft.py --model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name a --per_device_train_batch_size 2";
  EXPECT_EQ(read(flags + "\n").recipe.method, Method::full);
  const ForeignRecipe recipe = read(flags + " --use_peft --lora_r 48\n");
  EXPECT_EQ(recipe.dialect, Dialect::trl);
  EXPECT_EQ(recipe.recipe.method, Method::lora);
  EXPECT_EQ(recipe.recipe.lora.r, 48);
  EXPECT_EQ(recipe.recipe.seq_len, 1024);  // SFTConfig's
}

TEST_F(StartedScript, parts_of_it_may_stand_in_modules) {
  put("code/train.py", R"(
from arguments import get_args
from lib.loading import load, adapt
from lib.running import run
args = get_args()
run(adapt(load(args)), args, rows=args.bs)
)");
  put("code/arguments.py", R"(
import argparse
def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument('--name', default='Qwen/Qwen2.5-0.5B')
    parser.add_argument('--bs', type=int, default=4)
    parser.add_argument('--r', type=int, default=12)
    return parser.parse_args()
)");
  put("code/lib/loading.py", R"(
def load(args):
    return AutoModelForCausalLM.from_pretrained(args.name, torch_dtype='auto')
def adapt(model):
    return get_peft_model(model, LoraConfig(r=args.r, target_modules=['q_proj']))
def never_used(model):
    return BitsAndBytesConfig(load_in_4bit=True)
)");
  put("code/lib/running.py", R"(
def run(model, args, rows):
    Trainer(model=model, args=TrainingArguments('out', per_device_train_batch_size=rows, bf16=True)).train()
)");
  const ForeignRecipe recipe = read("cd code\npython train.py --bs 11\n");
  EXPECT_EQ(recipe.models.front(), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.method, Method::lora);
  EXPECT_EQ(recipe.recipe.lora.r, 12);
  EXPECT_EQ(recipe.recipe.batch, 11);
  EXPECT_FALSE(recipe.recipe.quantize.any());
}

TEST_F(StartedScript, a_file_that_it_loads_by_a_flag_is_read_by_its_words) {
  put("train.py", R"(
parser.add_argument('--config')
args = parser.parse_args()
with open(args.config) as f:
    config = yaml.safe_load(f)
model = AutoModelForCausalLM.from_pretrained(config['model']['name'])
Trainer(model=model, args=TrainingArguments('out', per_device_train_batch_size=config['run']['rows']))
)");
  put("conf/a.yaml", "model: {name: google/gemma-2b}\nrun: {rows: 7}\n");
  const ForeignRecipe recipe = read("python train.py --config conf/a.yaml\n");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 7);
}

// A class of settings is filled from the file that a flag names: what stands there holds over the class's defaults.
TEST_F(StartedScript, keys_of_a_file_hold_over_defaults_of_a_class) {
  put("train.py", R"(
@dataclass
class ModelConfig:
    model_name: str = 'Qwen/Qwen2.5-0.5B'
    rows: int = 2
config = Settings.load(args.config)
model = AutoModelForCausalLM.from_pretrained(config.model.model_name)
Trainer(model=model, args=TrainingArguments('out', per_device_train_batch_size=config.model.rows))
)");
  put("run.yaml", "model:\n  model_name: google/gemma-2b\n");
  const ForeignRecipe recipe = read("python train.py --config run.yaml\n");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.batch, 2);
}

TEST_F(StartedScript, a_loop_of_its_own_is_planned_as_what_it_loads_and_said) {
  put("train.py", R"(
from torch.optim import SGD  # which nothing calls
accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=3)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
model.gradient_checkpointing_enable()
model = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj"]))
teacher = AutoModelForCausalLM.from_pretrained("google/gemma-7b")
val_loader = DataLoader(held_out, batch_size=64)
loader = DataLoader(data, 5, shuffle=True)
optimizer = bnb.optim.PagedAdamW8bit(model.parameters())
rows = tokenizer(texts, truncation=True, max_length=192)
for batch in loader:
    accelerator.backward(model(**batch).loss)
)");
  for (const ForeignRecipe& recipe : {read("accelerate launch train.py --seed 1\n"),
                                      foreign(text_of(directory_ / "train.py"), (directory_ / "train.py").string())}) {
    EXPECT_EQ(recipe.models.front(), "Qwen/Qwen2.5-0.5B");
    EXPECT_EQ(recipe.recipe.method, Method::lora);
    EXPECT_EQ(recipe.recipe.lora.r, 4);
    EXPECT_EQ(recipe.recipe.batch, 5);
    EXPECT_EQ(recipe.recipe.accumulation, 3);
    EXPECT_EQ(recipe.recipe.seq_len, 192);
    EXPECT_TRUE(recipe.recipe.bf16);
    EXPECT_TRUE(recipe.recipe.gradient_checkpointing);
    EXPECT_EQ(value_of(recipe.recipe, "optim"), "paged_adamw_8bit");
    EXPECT_TRUE(says(recipe, "it trains in a loop of its own: planned as the Trainer's, with what it loads"));
  }
}

TEST_F(StartedScript, a_loop_that_divides_its_loss_accumulates) {
  const std::string head =
      "import argparse\np = argparse.ArgumentParser()\np.add_argument('--ga', type=int, default=6)\n"
      "a = p.parse_args()\nmodel = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\n"
      "for i, batch in enumerate(DataLoader(data, batch_size=2)):\n    loss = model(**batch).loss\n";
  for (const char* divides : {"    (loss / a.ga).backward()\n", "    loss /= a.ga\n    loss.backward()\n"}) {
    put("train.py", head + divides);
    EXPECT_EQ(read("python train.py\n").recipe.accumulation, 6) << divides;
    EXPECT_EQ(read("python train.py --ga 4\n").recipe.accumulation, 4) << divides;
  }
  put("train.py", head + "    loss.backward()\n    mean_loss / len(loader)\n");
  EXPECT_EQ(read("python train.py\n").recipe.accumulation, 1);
}

TEST_F(StartedScript, a_loop_under_autocast_computes_in_its_type) {
  const auto under = [&](const std::string& cast) {
    put("train.py", "model = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\nfor batch in data:\n  with " + cast +
                        ":\n    loss = model(**batch).loss\n  loss.backward()\n");
    const Recipe recipe = read("python train.py\n").recipe;
    return recipe.bf16 ? "bf16" : recipe.fp16 ? "fp16" : "none";
  };
  EXPECT_STREQ(under("torch.autocast('cuda', dtype=torch.bfloat16)"), "bf16");
  EXPECT_STREQ(under("torch.autocast('cuda', torch.bfloat16)"), "bf16");
  EXPECT_STREQ(under("torch.cuda.amp.autocast()"), "fp16");
  EXPECT_STREQ(under("torch.cuda.amp.autocast(enabled=False)"), "none");
}

TEST_F(StartedScript, short_names_of_options_end_the_values_before_them) {
  put("train.py", R"(
p.add_argument('-m', '--model', default='Qwen/Qwen2.5-0.5B')
p.add_argument('--rank', type=int, default=8)
p.add_argument('-b', type=int, default=1)
a = p.parse_args()
model = get_peft_model(AutoModelForCausalLM.from_pretrained(a.model), LoraConfig(r=a.rank, target_modules=['q_proj']))
Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=a.b))
)");
  const ForeignRecipe recipe = read("python train.py -m google/gemma-2b --rank 16 -b 4 -v\n");
  EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
  EXPECT_EQ(recipe.recipe.lora.r, 16);
  EXPECT_EQ(recipe.recipe.batch, 4);
}

TEST_F(StartedScript, truth_is_what_the_parser_makes_of_it) {
  put("train.py",
      "p.add_argument('--lora', type=bool, default=False)\np.add_argument('--gc', action=argparse.BooleanOptionalAction, "
      "default=True)\na = p.parse_args()\nmodel = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\nif a.lora:\n"
      "    model = get_peft_model(model, LoraConfig(r=4))\n"
      "Trainer(model=model, args=TrainingArguments('o', gradient_checkpointing=a.gc))\n");
  EXPECT_EQ(read("python train.py\n").recipe.method, Method::full);
  EXPECT_TRUE(read("python train.py\n").recipe.gradient_checkpointing);
  EXPECT_EQ(read("python train.py --lora False\n").recipe.method, Method::lora);  // bool("False")
  EXPECT_FALSE(read("python train.py --no-gc\n").recipe.gradient_checkpointing);
}

// A reference model stands before the settings; arguments that a whole namespace gives are defaults and flags.
TEST_F(StartedScript, settings_are_found_at_their_place_or_in_a_namespace) {
  put("dpo.py",
      "m = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\nr = "
      "AutoModelForCausalLM.from_pretrained('google/gemma-2b')\n"
      "DPOTrainer(m, r, DPOConfig('o', per_device_train_batch_size=2, max_length=333)).train()\n");
  const ForeignRecipe dpo = read("python dpo.py\n");
  EXPECT_EQ(dpo.stage, "dpo");
  EXPECT_EQ(dpo.recipe.batch, 2);
  EXPECT_EQ(dpo.recipe.seq_len, 333);
  put("train.py",
      "p.add_argument('--per_device_train_batch_size', default=2)\np.add_argument('--gradient_accumulation_steps', "
      "default=16)\n"
      "a = p.parse_args()\nmodel = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\n"
      "Trainer(model=model, args=TrainingArguments('o', **vars(a)))\n");
  const ForeignRecipe recipe = read("python train.py --gradient_accumulation_steps 4\n");
  EXPECT_EQ(recipe.recipe.batch, 2);
  EXPECT_EQ(recipe.recipe.accumulation, 4);
}

// What only Python knows is told though the plan has to take something; so is what is frozen.
TEST_F(StartedScript, what_only_python_knows_is_told) {
  put("train.py",
      "model = AutoModelForCausalLM.from_pretrained(a.name)\nif a.lora == wanted():\n"
      "    model = get_peft_model(model, LoraConfig(r=4))\nfor p in model.parameters():\n    p.requires_grad = False\n"
      "Trainer(model=model, args=TrainingArguments('o'))\n");
  const ForeignRecipe recipe = read("python train.py --name google/gemma-2b --lora no\n");
  EXPECT_TRUE(says(recipe, "only Python knows use_peft: what it stands for is not read"));
  put("train.py",
      "model = AutoModelForCausalLM.from_pretrained(a.name)\nfor p in model.parameters():\n    p.requires_grad = False\n"
      "Trainer(model=model, args=TrainingArguments('o'))\n");
  const ForeignRecipe spread = foreign(
      "model = AutoModelForCausalLM.from_pretrained('google/gemma-2b', **config.model_dump())\n"
      "Trainer(model=model, args=TrainingArguments('o'))\n",
      "t.py");
  EXPECT_TRUE(says(spread, "only Python knows load_in_4bit: what it stands for is not read"));
  EXPECT_TRUE(says(read("python train.py --name google/gemma-2b\n"),
                   "it freezes weights: which of them only Python knows; planned as if all were trained"));
}

// What the script does with it is not seen.
TEST_F(StartedScript, a_flag_that_names_a_model_is_its_model) {
  put("run.py",
      "parser.add_argument('--pretrained_model')\nmodel = AutoModelForCausalLM.from_pretrained(params['pretrained_model'])\n"
      "Trainer(model=model, args=TrainingArguments('o')).train()\n");
  const ForeignRecipe recipe = read("python run.py --pretrained_model meta-llama/Llama-2-7b-hf\n");
  ASSERT_FALSE(recipe.models.empty());
  EXPECT_EQ(recipe.models.front(), "meta-llama/Llama-2-7b-hf");
}

// … and verl's words are its own, whatever a file of defaults beside its module says.
TEST_F(StartedScript, verls_words_hold_over_defaults_of_its_module) {
  put("tune/sft.py",
      "@hydra.main(config_path='.', config_name='sft')\ndef main(config):\n"
      "    model = AutoModelForCausalLM.from_pretrained(copied(config.model.partial_pretrain))\n    loss.backward()\n");
  put("tune/sft.yaml", "model:\n  partial_pretrain: google/gemma-2b\n  lora_rank: 8\n");
  const ForeignRecipe recipe = read(
      "torchrun -m tune.sft model.partial_pretrain=Qwen/Qwen3-8B model.lora_rank=32 data.micro_batch_size_per_gpu=4 "
      "data.max_length=2048\n");
  ASSERT_FALSE(recipe.models.empty());
  EXPECT_EQ(recipe.models.front(), "Qwen/Qwen3-8B");
  EXPECT_EQ(recipe.recipe.batch, 4);
}

// Words without dashes are arguments by their place, behind the command that is one of them; sys.argv has them too.
TEST_F(StartedScript, words_are_arguments_by_their_place) {
  put("my_config.yaml", "base_model: google/gemma-2b\nbatch_size: 9\nepochs: 2\nlr: 1e-5\n");  // beside it, another's
  put("train.py",
      "parser.add_argument('model_name')\nparser.add_argument('rows', type=int, nargs='?', default=5)\n"
      "parser.add_argument('--rank', type=int, default=12)\nargs = parser.parse_args()\n"
      "model = AutoModelForCausalLM.from_pretrained(args.model_name)\n"
      "model = get_peft_model(model, LoraConfig(r=args.rank))\n"
      "Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=args.rows)).train()\n");
  const ForeignRecipe one = read("source env/bin/activate\npython3 train.py Qwen/Qwen2.5-0.5B --rank 20\n");
  EXPECT_EQ(model_of(one), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(one.recipe.batch, 5);
  EXPECT_EQ(one.recipe.lora.r, 20);
  EXPECT_EQ(read("python3 train.py Qwen/Qwen2.5-0.5B 7\n").recipe.batch, 7);
  put("plain.py",
      "model = AutoModelForCausalLM.from_pretrained(sys.argv[2])\n"
      "Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=int(sys.argv[1]))).train()\n");
  const ForeignRecipe plain = read("python plain.py 3 Qwen/Qwen2.5-0.5B\n");
  EXPECT_EQ(model_of(plain), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(plain.recipe.batch, 3);
  EXPECT_EQ(model_of(read("python plain.py 3\n")), "none");
}

TEST_F(StartedScript, the_launcher_may_say_the_precision) {
  put("train.py",
      "model = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\nTrainer(model=model, "
      "args=TrainingArguments('o'))\n");
  EXPECT_FALSE(read("python train.py\n").recipe.bf16);
  EXPECT_TRUE(read("accelerate launch --mixed_precision bf16 train.py\n").recipe.bf16);
  EXPECT_TRUE(read("accelerate launch --mixed_precision=fp16 train.py\n").recipe.fp16);
}

// A flag is changed where it stands, by the name that its parser knows; none is added that it does not.
TEST_F(StartedScript, changes_go_into_its_own_flags) {
  put("train.py", kOwnParser);
  const std::string script = "python train.py \\\n  --base google/gemma-2b \\\n  --rank 8 \\\n  --bs 4\n";
  RecipePatch patch = change_foreign_recipe(script, where(), {{{"per_device_train_batch_size", "2"}}});
  EXPECT_EQ(patch.text, "python train.py \\\n  --base google/gemma-2b \\\n  --rank 8 \\\n  --bs 2\n");
  EXPECT_EQ(read(patch.text).recipe.batch, 2);
  patch = change_foreign_recipe(script, where(), {{{"optim", "adamw_bnb_8bit"}, {"max_length", "64"}}});
  EXPECT_EQ(patch.text, script);
  EXPECT_EQ(patch.unsaid.size(), 2U);
}

TEST_F(StartedScript, what_is_not_there_or_does_not_train_is_left_alone) {
  const std::string script =
      "python train.py --model_name_or_path google/gemma-2b --per_device_train_batch_size 3 --lora_r 8\n";
  const auto as_before = [&](const ForeignRecipe& recipe) {
    EXPECT_EQ(recipe.models.front(), "google/gemma-2b");
    EXPECT_EQ(recipe.recipe.batch, 3);
    EXPECT_TRUE(says(recipe, "no flag says max_length: train.py's own defaults are not read"));
  };
  as_before(read(script));
  put("train.py", "print('hello')\n");
  as_before(read(script));
  put("train.py", "x = '''never closed\n");
  as_before(read(script));
}

TEST_F(StartedScript, files_that_ask_one_another_have_an_end) {
  for (const auto& [own, other] : {std::pair<std::string, std::string>{"a", "b"}, {"b", "c"}, {"c", "a"}})
    put(own + ".py", "from " + other + " import f_" + other + ", X_" + other + "\nX_" + own + " = f_" + other + "(X_" +
                         other + ") + X_" + other + "\ndef f_" + own + "(x=f_" + other + "(X_" + other +
                         ")):\n    return f_" + other + "(x=x) + f_" + other + "(x=X_" + own + ")\n");
  put("train.py",
      "from a import *\nfrom b import *\nfrom c import *\nmodel = AutoModelForCausalLM.from_pretrained(X_a)\n"
      "Trainer(model=model, args=TrainingArguments(per_device_train_batch_size=f_a(x=f_b(x=f_c(x=X_c)))))\n");
  const auto begin = std::chrono::steady_clock::now();
  ForeignRecipe recipe = read("python train.py --per_device_train_batch_size 3\n");
  EXPECT_TRUE(recipe.models.empty());
  // Many keys, many flags that only a shell knows.
  std::string keys = "a:\n", flags = "python own.py --config many.yaml";
  for (int i = 0; i < 12'000; ++i) keys += "  k" + std::to_string(i) + ": 1\n";
  for (int i = 0; i < 3'000; ++i) flags += " --f" + std::to_string(i) + " $1";
  put("many.yaml", keys);
  put("own.py",
      "model = AutoModelForCausalLM.from_pretrained(args.name)\nTrainer(model=model, args=TrainingArguments('o'))\n");
  EXPECT_TRUE(read(flags + "\n").models.empty());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(kSanitized ? 120 : 20));
}

}  // namespace

}  // namespace snug::testing
