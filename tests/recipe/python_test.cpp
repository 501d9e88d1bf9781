// Scripts and notebooks in Python: what their literal arguments say, and what only Python knows.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "recipe/dialects/changes.h"
#include "recipe/dialects/notebook.h"
#include "recipe/dialects/python_values.h"
#include "recipe/support_dialects.h"

namespace snug::testing {

namespace {

using dialects::PythonValue;
using dialects::PythonValues;

// What `x = …` says at the end of the source; "?" for what only Python knows.
std::string worth(const std::string& source) {
  const auto tokens = dialects::python_tokens(source, "x.py");
  PythonValues values(tokens);
  size_t at = tokens.size();
  while (!(tokens[at - 1].is("=") && tokens[at - 2].is_word("x"))) --at;
  const PythonValue value = values.value(at);
  if (value.kind == PythonValue::Kind::none) return "None";
  if (value.kind == PythonValue::Kind::list) {
    std::string text = "[";
    for (const PythonValue& item : value.items) text += (text.size() > 1 ? "," : "") + item.text;
    return text + "]";
  }
  return value.known() ? value.text : "?";
}

TEST(PythonValues, are_what_python_makes_of_them) {
  const struct {
    const char *source, *value;
  } cases[] = {
      {"x = 2048", "2048"},
      {"size = '7b'\nx = 'llama-{}-hf'.format(size)", "llama-7b-hf"},
      {"x = 'llama-{}-{}'.format(1, unknown)", "?"},
      {"x = '{:d}'.format(1)", "?"},
      {"x = getattr(torch, 'float16')", "float16"},
      {"x = 2_048  # tokens", "2048"},
      {"x = 2 * 16 + 1", "33"},
      {"x = 7 // 2", "3"},
      {"x = -1", "-1"},
      {"x = 2 ** 10", "1024"},
      {"x = 2e-4", "2e-4"},
      {"x = 'a' \"b\"", "ab"},
      {"x = r'a\\n'", "a\\n"},
      {"x = \"\"\"two\nlines\"\"\"", "two\nlines"},
      {"x = f'plain'", "plain"},
      {"x = f'{a}'", "?"},
      {"a = '7B'\nx = f'Qwen/Qwen2.5-{a}'", "Qwen/Qwen2.5-7B"},
      {"x = f'{a + 1}'", "?"},
      {"x = f'{{a}}'", "?"},
      {"a = 1\nif False:\n  a = 2\nx = a", "1"},
      {"if torch.cuda.is_bf16_supported():\n  a = 1\nelse:\n  a = 2\nx = a", "1"},
      {"b = 'c'\nif b == 'a':\n  a = 1\nelif b == 'c':\n  a = 2\nelif b == 'd':\n  a = 3\nelse:\n  a = 4\nx = a", "2"},
      {"if unknown:\n  a = 1\nelse:\n  a = 2\nx = a", "?"},
      {"if unknown:\n  a = 2\nelse:\n  a = 2\nx = a", "2"},
      {"a = 1\nif unknown:\n  a = 2\nx = a", "?"},
      {"a = 1\nif unknown:\n  a = 2\n  x = a", "2"},
      {"if unknown:\n  a = 1\nelse:\n  a = 2\na = 3\nx = a", "3"},
      {"try:\n  a = 1\nexcept ImportError:\n  a = 2\nx = a", "1"},
      {"for i in b:\n  pass\nelse:\n  a = 5\nx = a", "5"},
      {"if a:\n  a = 1\nx = a", "1"},
      {"def f():\n  return {'r': 3}\nc = f()\nx = c['r']", "3"},
      {"def f():\n  c = dict(r=4)\n  return c\nx = f()['r']", "4"},
      {"def f():\n  c = dict(r=4)\n  return c\nd = f()\nx = d.get('r', 5)", "4"},
      {"def f(a):\n  return a\na = 1\nx = f(2)", "2"},
      {"def f(a):\n  if a:\n    return 1\n  return 2\nx = f(unknown)", "?"},
      {"def f():\n  return 3\nx = model.f()", "?"},
      {"x = Path(__file__).parent / 'a' / 'b'", "a/b"},
      {"root = Path('c')\nx = str(root.resolve() / 'b')", "c/b"},
      {"x = [5, 6][1]", "6"},
      {"c = Namespace(**{'r': 4})\nx = c.r", "4"},
      {"x = 'A-B'.lower()", "a-b"},
      {"c = {'r': 1}\nx = c.get('s', 5)", "5"},
      {"x = c.get('s', 5)", "?"},
      {"c = {'a': {'r': 6}}\nd = dict(c[str('a')])\nx = d['r']", "6"},
      {"c = {'r': 1}\nd = dict(c, r=2)\nx = d['r']", "2"},
      {"x = env_str('MODEL', 'gpt2')", "gpt2"},
      {"x = input('Model: ') or 'gpt2'", "gpt2"},
      {"x = sys.argv[1] if len(sys.argv) > 1 else 'gpt2'", "gpt2"},
      {"x = 1 if 'mistral' in 'mistral-7b' else 2", "1"},
      {"x = 1 if 'a' not in ['a', 'b'] else 2", "2"},
      {"x = True", "true"},
      {"x = not True", "false"},
      {"x = None", "None"},
      {"x = ['q_proj', 'v_proj',]", "[q_proj,v_proj]"},
      {"x = (1)", "1"},
      {"x = (1,)", "[1]"},
      {"x = torch.bfloat16", "bfloat16"},
      {"x = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16", "bfloat16"},
      {"x = not is_bfloat16_supported()", "false"},
      {"a = 4\nb = a * 2\nx = b", "8"},
      {"a, b = 3, 'c'\nx = b", "c"},
      {"a = b = 5\nx = a", "5"},
      {"a: int = 6\nx = a", "6"},
      {"a = 1\nx = a\na = 2", "1"},
      {"def f(rank: int = 12):\n  x = rank", "12"},
      {"class C:\n  size = 3\nx = C.size", "3"},
      {"class A:\n  r: int = field(default=32, metadata={'help': 'rank'})\nx = args.r", "32"},
      {"p.add_argument('--batch-size', type=int, default=4)\nx = args.batch_size", "4"},
      {"p.add_argument('--packing', action='store_true')\nx = args.packing", "false"},
      {"x = os.environ.get('B', 2)", "2"},
      {"x = int(os.getenv('B', '8'))", "8"},
      {"c = {'lr': 1, 'r': 9}\nx = c['r']", "9"},
      {"c = dict(r=9)\nx = c['r']", "9"},
      {"x = a or 5\na = None", "5"},
      {"x = 3 if 2 > 1 else 4", "3"},
      {"x = 3 if unknown else 3", "3"},
      {"x = 3 if unknown else 4", "?"},
      {"x = len(rows)", "?"},
      {"x = rows[0].size", "?"},
      {"x = [a for a in b]", "?"},
      {"x = lambda a: 3", "?"},
      {"a = b\nb = a\nx = a", "?"},
      {"def f(m):\n  x = m\nf('a')", "a"},
      {"def main():\n  name = 'a'\n  f(1, m=name)\ndef f(n, m):\n  x = m\nmain()", "a"},
      {"def f(n, m='a'):\n  x = m\nf(1, 'b')", "b"},
      {"def f(n, m='a'):\n  x = m\nf(1)", "a"},
      {"def f(n, m='a'):\n  x = m\nf(1, unknown)", "a"},
      {"def f(m):\n  x = m\nf('a')\nf('b')", "?"},
      {"def f(m):\n  x = m\nif False:\n  f('a')\nf('b')", "b"},
      {"def f(m):\n  f(m)\n  x = m", "?"},
      {"def f(m):\n  x = m\nf(*all)", "?"},
      {"def f(m):\n  pass\nf('a')\nx = m", "?"},
      {"def f(m):\n  x = m\nother.f('a')", "?"},
      {"import other\nclass C:\n  def f(self, m):\n    x = m\nother.f('a')\nc.f('b')", "b"},
      {"class C:\n  def __init__(self, m):\n    x = m\nC('a')", "a"},
      {"for m in ['a', 'b']:\n  x = m", "a"},
      {"m = 'c'\nfor m in ['a', 'b']:\n  pass\nx = m", "c"},
      {"for m in enumerate(['a']):\n  x = m", "?"},
      {"all = {'a': 1}\nfor m in all.items():\n  x = m", "?"},
      {"for m in []:\n  x = m", "?"},
      {"for i, m in enumerate(['a', 'b'], 1):\n  x = m", "a"},
      {"all = [{'id': 'a'}, {'id': 'b'}]\ndef f(c):\n  x = c['id']\nfor m in all:\n  f(m)", "a"},
      {"all = {'a': 1, 'b': 2}\nfor k, v in all.items():\n  x = k", "a"},
      {"all = {'a': 1, 'b': 2}\nfor k, v in all.items():\n  x = v", "1"},
      {"for k, v in pairs:\n  x = v", "?"},
      {"x = x", "?"},
  };
  for (const auto& c : cases) EXPECT_EQ(worth(c.source), c.value) << c.source;
}

TEST(PythonValues, end_with_what_is_too_deep_or_too_much) {
  EXPECT_EQ(worth("x = " + std::string(5000, '(') + "1" + std::string(5000, ')')), "?");
  EXPECT_EQ(worth("x = " + std::string(5000, '-') + "1"), "?");
  std::string chain = "a0 = 1\n";
  for (int i = 1; i < 60; ++i)
    chain += "a" + std::to_string(i) + " = a" + std::to_string(i - 1) + " + a" + std::to_string(i - 1) + "\n";
  EXPECT_EQ(worth(chain + "x = a59"), "?");
  EXPECT_THROW(dialects::python_tokens("x = 'no end", "x.py"), Error);
}

constexpr const char* kUnsloth = R"(
from unsloth import FastLanguageModel, is_bfloat16_supported
import torch
max_seq_length = 4096 # Choose any!
dtype = None
load_in_4bit = True
model, tokenizer = FastLanguageModel.from_pretrained(
    model_name = "unsloth/Llama-3.2-1B-Instruct", # or another
    max_seq_length = max_seq_length,
    dtype = dtype,
    load_in_4bit = load_in_4bit,
)
model = FastLanguageModel.get_peft_model(
    model,
    r = 32,
    target_modules = ["q_proj", "k_proj", "v_proj", "o_proj",],
    lora_alpha = 64,
    lora_dropout = 0, # Supports any, but = 0 is optimized
    use_gradient_checkpointing = "unsloth",
    random_state = 3407,
)
from trl import SFTTrainer
from transformers import TrainingArguments
trainer = SFTTrainer(
    model = model,
    train_dataset = dataset,
    dataset_text_field = "text",
    max_seq_length = max_seq_length,
    packing = False,
    args = TrainingArguments(
        per_device_train_batch_size = 3,
        gradient_accumulation_steps = 5,
        max_steps = 60,
        fp16 = not is_bfloat16_supported(),
        bf16 = is_bfloat16_supported(),
        optim = "adamw_8bit",
        seed = 3407,
    ),
)
trainer.train()
model, tokenizer = FastLanguageModel.from_pretrained(model_name = "lora_model", load_in_4bit = False)
)";

TEST(PythonScripts, of_unsloth_say_all_that_a_notebook_does) {
  const ForeignRecipe read = *read_foreign_recipe(kUnsloth, "train.py");
  EXPECT_EQ(read.dialect, Dialect::unsloth);
  EXPECT_EQ(read.models.front(), "unsloth/Llama-3.2-1B-Instruct");
  const Recipe& recipe = read.recipe;
  EXPECT_EQ(recipe.method, Method::lora);
  EXPECT_TRUE(recipe.quantize.in_4bit);
  EXPECT_EQ(recipe.batch, 3);
  EXPECT_EQ(recipe.accumulation, 5);
  EXPECT_EQ(recipe.seq_len, 4096);
  EXPECT_EQ(recipe.lora.r, 32);
  EXPECT_EQ(recipe.lora.alpha, 64);
  EXPECT_EQ(recipe.lora.target_modules, (std::vector<std::string>{"q_proj", "k_proj", "v_proj", "o_proj"}));
  EXPECT_TRUE(recipe.bf16);
  EXPECT_TRUE(recipe.gradient_checkpointing);
  EXPECT_TRUE(read.named(KeyFate::unknown).empty());
}

// The config that the trainer is given counts, whatever others stand there; defaults are those of the classes.
TEST(PythonScripts, of_trl_follow_what_the_trainer_is_given) {
  const ForeignRecipe read = *read_foreign_recipe(R"(
import argparse, torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig
from peft import LoraConfig
from trl import SFTConfig, SFTTrainer
parser = argparse.ArgumentParser()
parser.add_argument("--model-id", default="meta-llama/Llama-3.1-8B")
args = parser.parse_args()
other = SFTConfig(per_device_train_batch_size=64)
bnb = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                         bnb_4bit_compute_dtype=torch.bfloat16)
def load(name):
    return AutoModelForCausalLM.from_pretrained(args.model_id, quantization_config=bnb, torch_dtype=torch.bfloat16,
                                                attn_implementation="flash_attention_2", device_map="auto")
model = load(args.model_id)
peft_config = LoraConfig(r=4 * 4, target_modules="all-linear", task_type="CAUSAL_LM")
config = SFTConfig(output_dir="out", per_device_train_batch_size=2, max_length=len(rows), gradient_accumulation_steps=4,
                   **{"optim": "paged_adamw_8bit"})
trainer = SFTTrainer(model=model, args=config, train_dataset=data, peft_config=peft_config)
)",
                                                  "sft.py");
  EXPECT_EQ(read.dialect, Dialect::trl);
  EXPECT_EQ(read.models.front(), "meta-llama/Llama-3.1-8B");
  const Recipe& recipe = read.recipe;
  EXPECT_EQ(recipe.batch, 2);
  EXPECT_EQ(recipe.accumulation, 4);
  EXPECT_EQ(value_of(recipe, "optim"), "paged_adamw_8bit");
  EXPECT_TRUE(recipe.quantize.in_4bit);
  EXPECT_EQ(recipe.lora.r, 16);
  EXPECT_EQ(recipe.lora.alpha, 8);  // LoraConfig's own, not that of TRL's command line
  EXPECT_EQ(recipe.lora.target_modules, std::vector<std::string>{"all-linear"});
  EXPECT_TRUE(recipe.gradient_checkpointing);  // SFTConfig's
  EXPECT_NE(std::ranges::find(read.notes, "only Python knows max_length: what it stands for is not read"), read.notes.end());
}

TEST(PythonScripts, around_transformers_have_its_defaults) {
  const ForeignRecipe read = *read_foreign_recipe(R"(
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
model = AutoModelForCausalLM.from_pretrained("openai-community/gpt2", load_in_8bit=True)
model = prepare_model_for_kbit_training(model)
model = get_peft_model(model, LoraConfig(r=8, lora_alpha=32, target_modules=["c_attn"], lora_dropout=0.05))
trainer = Trainer(model=model, args=TrainingArguments("out", fp16=True), train_dataset=data)
)",
                                                  "train.py");
  EXPECT_EQ(read.dialect, Dialect::hugging_face);
  EXPECT_EQ(read.recipe.batch, 8);
  EXPECT_TRUE(read.recipe.fp16);
  EXPECT_TRUE(read.recipe.quantize.in_8bit);
  EXPECT_TRUE(read.recipe.gradient_checkpointing);  // which preparing switches on
  EXPECT_EQ(read.recipe.lora.alpha, 32);
}

// Lengths are the tokenizer's where the trainer has none; what stands under a condition is taken where it holds.
constexpr const char* kOwnLoop = R"(
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, Trainer, TrainingArguments
from peft import LoraConfig, get_peft_model
p = argparse.ArgumentParser()
p.add_argument("--use-lora", action="store_true")
p.add_argument("--quantize", action="store_true")
p.add_argument("--bits", type=int)
args = p.parse_args()
tokenizer = AutoTokenizer.from_pretrained("gpt2")
bnb = None
if args.quantize:
    bnb = BitsAndBytesConfig(load_in_4bit=True)
model = AutoModelForCausalLM.from_pretrained("gpt2", quantization_config=bnb)
def rows(row):
    return tokenizer(row["text"], truncation=True, max_length=384)
if CONDITION:
    model = get_peft_model(model, LoraConfig(r=4))
class Weighted(Trainer):
    pass
trainer = WeightedTrainer(model=model, args=TrainingArguments(output_dir="out", per_device_train_batch_size=2))
trainer.train()
tokenizer("prompt", max_length=4096)
)";

std::string with_condition(const std::string& condition) {
  std::string source = kOwnLoop;
  source.replace(source.find("CONDITION"), 9, condition);
  return source;
}

bool is_said(const ForeignRecipe& recipe, const std::string& words) {
  return std::ranges::any_of(recipe.notes, [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

TEST(PythonScripts, are_read_under_their_conditions) {
  const ForeignRecipe without = foreign(with_condition("args.use_lora"), "x.py");
  EXPECT_EQ(value_of(without.recipe, "method"), "full");
  EXPECT_EQ(value_of(without.recipe, "load_in_4bit"), "false");
  EXPECT_EQ(value_of(without.recipe, "max_length"), "384");
  EXPECT_FALSE(is_said(without, "use_peft"));
  const ForeignRecipe with = foreign(with_condition("not args.use_lora"), "x.py");
  EXPECT_EQ(value_of(with.recipe, "method"), "lora");
  EXPECT_EQ(value_of(with.recipe, "lora_r"), "4");
  EXPECT_FALSE(is_said(with, "use_peft"));
  const ForeignRecipe perhaps = foreign(with_condition("config.lora"), "x.py");
  EXPECT_EQ(value_of(perhaps.recipe, "method"), "lora");
  EXPECT_TRUE(is_said(perhaps, "only Python knows use_peft"));
}

TEST(PythonScripts, say_where_an_adapter_or_a_length_is_made_elsewhere) {
  const ForeignRecipe recipe = foreign(R"(
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from peft import get_peft_model
from settings import ADAPTER
model = get_peft_model(AutoModelForCausalLM.from_pretrained("gpt2"), ADAPTER)
trainer = Trainer(model=model, args=TrainingArguments(output_dir="out"))
trainer.train()
)",
                                       "x.py");
  EXPECT_EQ(value_of(recipe.recipe, "method"), "lora");
  EXPECT_TRUE(is_said(recipe, "only Python knows lora_r"));
  EXPECT_TRUE(is_said(recipe, "only Python knows max_length"));
  const ForeignRecipe on = foreign(R"(
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from peft import PeftModel
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained("gpt2"), "adapter", is_trainable=True)
trainer = Trainer(model=model, args=TrainingArguments(output_dir="out"))
trainer.train()
)",
                                   "x.py");
  EXPECT_EQ(value_of(on.recipe, "method"), "lora");
  EXPECT_TRUE(is_said(on, "only Python knows lora_r"));
}

TEST(PythonScripts, of_preferences_are_told_from_fine_tuning) {
  const ForeignRecipe read = *read_foreign_recipe(R"(
from trl import DPOConfig, DPOTrainer
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
ref_model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B")
trainer = DPOTrainer(model=model, ref_model=ref_model, args=DPOConfig(per_device_train_batch_size=2))
)",
                                                  "dpo.py");
  EXPECT_EQ(read.stage, "dpo");
  EXPECT_EQ(read.models.front(), "Qwen/Qwen2.5-0.5B");
}

// A function that stands below the trainer was called above it; what is downloaded is what was asked for.
TEST(PythonScripts, load_in_functions_below_and_from_downloads) {
  const ForeignRecipe below = read_foreign_recipe(R"(
NAME = "google/gemma-2b-it"
def main():
    model, tokenizer = get_model()
    trainer = SFTTrainer(model=model, args=TrainingArguments("out", per_device_train_batch_size=3))
    trainer.train()
def get_model():
    with timed("load"):
        return AutoModelForCausalLM.from_pretrained(NAME, load_in_8bit=True), AutoTokenizer.from_pretrained(NAME)
main()
)",
                                                  "below.py")
                                  .value();
  EXPECT_EQ(below.models.front(), "google/gemma-2b-it");
  EXPECT_EQ(below.recipe.batch, 3);
  for (const char* call : {"snapshot_download('Qwen/Qwen3-0.6B', cache_dir='/x')", "snapshot_download(repo_id=NAME)",
                           "snapshot_download(revision='master', model_id=NAME)"}) {
    const ForeignRecipe read = read_foreign_recipe(std::string("NAME = 'Qwen/Qwen3-0.6B'\nfolder = ") + call + R"(
model = AutoModelForCausalLM.from_pretrained(folder)
trainer = Trainer(model=model, args=TrainingArguments("out", per_device_train_batch_size=3))
)",
                                                   "downloaded.py")
                                   .value();
    ASSERT_FALSE(read.models.empty()) << call;
    EXPECT_EQ(read.models.front(), "Qwen/Qwen3-0.6B") << call;
  }
}

// A tokenizer by any name is who is told how to truncate; texts that are joined and cut have the blocks' length.
TEST(PythonScripts, rows_are_as_long_as_whoever_makes_them_says) {
  const auto length = [](const std::string& rows) {
    return foreign(rows +
                       "model = AutoModelForCausalLM.from_pretrained('google/gemma-2b')\n"
                       "Trainer(model=model, args=TrainingArguments('out')).train()\n",
                   "r.py")
        .recipe.seq_len;
  };
  EXPECT_EQ(length("def f(e): return tok(e['text'], max_length=512, truncation=True, padding='max_length')\n"), 512);
  EXPECT_EQ(length("def f(e): return g(e['text'], max_length=512)\n"), 0);
  EXPECT_EQ(length("p.add_argument('--block_size', type=int, default=256)\n"), 256);
}

// A model that a loop takes from a list is handed on; which of several is planned, is said.
TEST(PythonScripts, that_go_through_a_list_are_planned_with_its_first) {
  const std::string script = R"(
def finetune(config):
    model = AutoModelForCausalLM.from_pretrained(config["id"])
    Trainer(model=model, args=TrainingArguments("out", per_device_train_batch_size=config["batch"])).train()
for i, config in enumerate(MODELS, 1):
    finetune(config)
)";
  const ForeignRecipe read =
      foreign("MODELS = [{'id': 'google/gemma-2b', 'batch': 3}, {'id': 'a/b', 'batch': 5}]" + script, "r.py");
  EXPECT_EQ(read.models.front(), "google/gemma-2b");
  EXPECT_EQ(read.recipe.batch, 3);
  EXPECT_NE(std::ranges::find(read.notes, "model_name_or_path is the first of several that a loop goes over"),
            read.notes.end());
  const ForeignRecipe one = foreign("MODELS = [{'id': 'google/gemma-2b', 'batch': 3}]" + script, "r.py");
  EXPECT_EQ(one.models.front(), "google/gemma-2b");
  EXPECT_EQ(std::ranges::find(one.notes, "model_name_or_path is the first of several that a loop goes over"),
            one.notes.end());
}

// Rows that are tokens before TRL's trainer sees them are as long as the tokenizer was asked for; what it is asked for
// itself comes first, and its own length stays where nobody says one.
TEST(PythonScripts, of_trl_are_given_rows_that_were_tokenized_before) {
  const auto length = [](const std::string& tokenized, const std::string& asked) {
    const ForeignRecipe read =
        read_foreign_recipe("model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B')\n" + tokenized +
                                "trainer = SFTTrainer(model, TrainingArguments('out')" + asked + ")\n",
                            "rows.py")
            .value();
    return value_of(read.recipe, "max_length");
  };
  const std::string rows = "def rows(r):\n    return tokenizer(r['text'], truncation=True, max_length=768)\n";
  EXPECT_EQ(length(rows, ""), "768");
  EXPECT_EQ(length(rows, ", max_seq_length=512"), "512");
  EXPECT_EQ(length("", ""), "auto");
}

TEST(PythonScripts, that_train_nothing_are_refused_in_a_line) {
  for (const char* source : {"", "print('hello')", "model = AutoModelForCausalLM.from_pretrained('x')\nmodel.generate()"}) {
    try {
      static_cast<void>(read_foreign_recipe(source, "other.py"));
      FAIL() << source;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("other.py"), std::string::npos);
    }
  }
}

// What stands in one place is changed there, also where a name was bound; what is new goes to the trainer's settings.
TEST(PythonScripts, are_changed_in_place) {
  const std::vector<RecipeChange> changes = {{"per_device_train_batch_size", "1"},
                                             {"max_length", "2048"},
                                             {"optim", "paged_adamw_8bit"},
                                             {"gradient_checkpointing", "true"}};
  const RecipePatch patch = change_foreign_recipe(kUnsloth, "train.py", changes);
  EXPECT_TRUE(patch.unsaid.empty());
  EXPECT_NE(patch.text.find("per_device_train_batch_size = 1,"), std::string::npos);
  EXPECT_NE(patch.text.find("max_seq_length = 2048 # Choose any!"), std::string::npos);
  EXPECT_NE(patch.text.find("optim = \"paged_adamw_8bit\","), std::string::npos);
  const std::string plain =
      "from transformers import Trainer, TrainingArguments\n"
      "model = AutoModelForCausalLM.from_pretrained('openai-community/gpt2')\n"
      "trainer = Trainer(model, TrainingArguments(\n    'out',\n    per_device_train_batch_size=8,\n))\n";
  const RecipePatch added =
      change_foreign_recipe(plain, "t.py", std::vector<RecipeChange>{{"gradient_checkpointing", "true"}});
  EXPECT_TRUE(added.unsaid.empty());
  EXPECT_NE(added.text.find("per_device_train_batch_size=8,\n    gradient_checkpointing = True,\n))"), std::string::npos)
      << added.text;
}

TEST(Notebooks, are_the_python_of_their_cells) {
  const std::string notebook =
      R"({"cells": [{"cell_type": "markdown", "source": ["# Title\n"]},)"
      R"({"cell_type": "code", "source": ["%%capture\n", "!pip install trl\n", "x = 1"]},)"
      R"({"cell_type": "code", "source": "%%bash\npip list"}, {"cell_type": "code", "source": "y = 2\n"}], "nbformat": 4})";
  EXPECT_EQ(dialects::code_of_notebook(notebook, "n.ipynb").code, "x = 1\ny = 2\n");
  for (const char* broken : {"", "[]", "{\"cells\": 3}", "{"})
    EXPECT_THROW(dialects::code_of_notebook(broken, "n.ipynb"), Error) << broken;
  const RecipePatch patch = change_foreign_recipe(
      R"x({"cells": [{"cell_type": "code", "source": "m = AutoModelForCausalLM.from_pretrained('gpt2')\nt = Trainer(m, )x"
      R"x(TrainingArguments('o', per_device_train_batch_size=4))"}]})x",
      "n.ipynb", std::vector<RecipeChange>{{"per_device_train_batch_size", "2"}, {"max_grad_norm", "1"}});
  EXPECT_TRUE(patch.diff.empty());
  ASSERT_EQ(patch.unsaid.size(), 1U);
  EXPECT_EQ(patch.unsaid[0].key, "per_device_train_batch_size");
}

}  // namespace

}  // namespace snug::testing
