// Scripts that train in a loop of their own, also in files beside them.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "recipe/support_dialects.h"

namespace snug::testing {

namespace {

constexpr const char* kLoop =
    "def fit(model, data, rows: int = 4):\n"
    "    train_loader = DataLoader(data, batch_size=rows, shuffle=True)\n"
    "    model.train()\n"
    "    for batch in train_loader:\n"
    "        loss = model(**batch).loss\n"
    "        loss.backward()\n";

class PythonLoop : public RecipeFolder {};

TEST_F(PythonLoop, in_a_module_is_given_what_the_script_gives_it) {
  put("loop.py", kLoop);
  put("run.py",
      "from loop import fit\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B', "
      "torch_dtype=torch.bfloat16)\nfit(model, load(), rows=6)\n");
  const ForeignRecipe recipe = read("run.py");
  EXPECT_EQ(model_of(recipe), "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(recipe.recipe.batch, 6);
  EXPECT_EQ(recipe.recipe.method, Method::full);
  EXPECT_TRUE(says(recipe, "it trains in a loop of its own: planned as the Trainer's, with what it loads"));
}

TEST_F(PythonLoop, that_no_function_of_the_script_reaches_is_none) {
  put("loop.py", kLoop);
  put("ask.py",
      "from loop import other\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B')\n"
      "print(model.generate())\n");
  EXPECT_THROW(read("ask.py"), Error);
}

TEST_F(PythonLoop, of_a_class_that_is_called_trainer_and_of_lightning_are_loops) {
  put("trainer.py",
      "class Trainer:\n    def __init__(self, model, data):\n        self.loader = DataLoader(data, batch_size=5)\n"
      "    def train(self):\n        self.step().backward()\n");
  const std::string loads = "model = GPT2LMHeadModel.from_pretrained('gpt2')\n";
  put("own.py", "from trainer import Trainer\n" + loads + "Trainer(model=model, data=load()).train()\n");
  EXPECT_EQ(read("own.py").recipe.batch, 5);
  EXPECT_EQ(model_of(read("own.py")), "gpt2");

  put("lightning.py",
      "from pytorch_lightning import Trainer, LightningModule\nclass Chat(LightningModule):\n"
      "    def __init__(self):\n        self.model = GPT2LMHeadModel.from_pretrained('gpt2')\n"
      "    def training_step(self, batch, index):\n        return self.model(**batch).loss\n"
      "    def train_dataloader(self):\n        return DataLoader(self.data, batch_size=12)\n"
      "Trainer(max_epochs=3).fit(Chat())\n");
  const ForeignRecipe lightning = read("lightning.py");
  EXPECT_EQ(lightning.recipe.batch, 12);
  EXPECT_TRUE(says(lightning, "it trains in a loop of its own: planned as the Trainer's, with what it loads"));

  // One that is made of transformers' is a Trainer.
  put("trainer.py", "class Trainer(transformers.Trainer):\n    pass\n");
  put("own.py", "from trainer import Trainer\n" + loads +
                    "Trainer(model=model, args=TrainingArguments('o', per_device_train_batch_size=7)).train()\n");
  EXPECT_EQ(read("own.py").recipe.batch, 7);
}

TEST_F(PythonLoop, with_a_lora_of_its_own_is_planned_as_pefts) {
  put("lora.py",
      "def apply_lora(model, rank):\n    for weight in model.parameters():\n        weight.requires_grad = False\n");
  put("run.py",
      "from lora import apply_lora\nparser.add_argument('--rank', type=int, default=12)\n"
      "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B')\napply_lora(model, args.rank)\n"
      "for batch in batches:\n    model(**batch).loss.backward()\n");
  const ForeignRecipe recipe = read("run.py");
  EXPECT_EQ(recipe.recipe.method, Method::lora);
  EXPECT_EQ(recipe.recipe.lora.r, 12);
  EXPECT_TRUE(says(recipe, "its LoRA is the script's own: planned as PEFT's"));
  EXPECT_TRUE(says(recipe, "only Python knows per_device_train_batch_size: what it stands for is not read"));
  // That of a process is none of LoRA's.
  put("run.py",
      "from lora import apply_lora\nrank = 0\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B')\n"
      "apply_lora(model, other())\nfor batch in batches:\n    model(**batch).loss.backward()\n");
  EXPECT_TRUE(says(read("run.py"), "only Python knows lora_r: what it stands for is not read"));
}

TEST_F(PythonLoop, of_several_modules_that_load_a_model_the_first_that_is_used_counts) {
  put("load.py",
      "def load(name):\n    quantization = BitsAndBytesConfig(load_in_4bit=True)\n"
      "    return AutoModelForCausalLM.from_pretrained(name, quantization_config=quantization)\n"
      "def unused():\n    return AutoModelForCausalLM.from_pretrained('google/gemma-2b')\n");
  put("merge.py",
      "def merge(name):\n    other = BitsAndBytesConfig(load_in_8bit=True)\n"
      "    return AutoModelForCausalLM.from_pretrained(name)\n");
  put("tune.py",
      "def tune(model):\n    trainer = SFTTrainer(model=model, args=SFTConfig('o', per_device_train_batch_size=3),\n"
      "                         peft_config=LoraConfig(r=16))\n    trainer.train()\n");
  put("main.py",
      "from load import load\nfrom tune import tune\nfrom merge import merge\nbase = 'Qwen/Qwen2.5-0.5B'\n"
      "tune(load(base))\nmerge(base)\n");
  const ForeignRecipe recipe = read("main.py");
  EXPECT_EQ(model_of(recipe), "Qwen/Qwen2.5-0.5B");
  EXPECT_TRUE(recipe.recipe.quantize.in_4bit);
  EXPECT_EQ(recipe.recipe.lora.r, 16);
}

TEST_F(PythonLoop, adapters_of_a_model_that_judges_are_not_the_trained_ones) {
  put("judge.py",
      "class Judge:\n    def __init__(self):\n        base = AutoModelForCausalLM.from_pretrained('gpt2')\n"
      "        self.model = PeftModel.from_pretrained(base, 'judge-adapter')\n");
  put("run.py",
      "from judge import Judge\njudge = Judge()\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B')\n"
      "GRPOTrainer(model=model, args=GRPOConfig('o', per_device_train_batch_size=4)).train()\n");
  EXPECT_EQ(read("run.py").recipe.method, Method::full);
  EXPECT_EQ(model_of(read("run.py")), "Qwen/Qwen2.5-0.5B");
  // Wrapped by the class itself it is.
  put("wrap.py",
      "model = PeftModelForCausalLM(AutoModelForCausalLM.from_pretrained('gpt2'), LoraConfig(r=4))\n"
      "Trainer(model=model, args=TrainingArguments('o')).train()\n");
  EXPECT_EQ(read("wrap.py").recipe.method, Method::lora);
  EXPECT_EQ(read("wrap.py").recipe.lora.r, 4);
}

}  // namespace

}  // namespace snug::testing
